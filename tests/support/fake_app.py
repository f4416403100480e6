"""A stand-in for `rag.app.App` for tests of pages: everything in memory, nothing waits, nothing is fetched.

An import moves one stage with each look at it; a run shows as many of its events as `released` allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from rag.agent.runs import Event
from rag.config import Settings
from rag.errors import ModelError, RagError, StoreError
from rag.ingest.paste import find_urls
from rag.types import Answer, Citation, IngestResult, Notice, Outcome, Page, Passage, Stage, Step

STAGES: tuple[Stage, ...] = get_args(Stage)

ENGLISH = """# Keeping a lighthouse

A keeper's day began at dusk.

## The lamp

The lamp was wound every four hours, day and night. A keeper who slept through a winding lost a week's pay.
Oil was carried up in cans of ten litres.

## The fog bell

- In fog the bell rang twice a minute.
- In snow it rang once a minute."""
CHINESE = """# 灯塔的看守

看守的一天从黄昏开始。

## 灯

灯每四个小时上一次发条，昼夜不停。错过一次就扣一周的工钱。灯油用十升的桶背上去。

## 雾钟

- 大雾时每分钟敲两次钟。
- 下雪时每分钟敲一次。"""
ENGLISH_QUOTES = (
    "The lamp was wound every four hours, day and night.",
    "In fog the bell rang twice a minute.",
)
CHINESE_QUOTES = ("灯每四个小时上一次发条，昼夜不停。", "大雾时每分钟敲两次钟。")


def make_page(number: int, title: str, text: str, language: str, site: str = "lighthouse.example") -> Page:
    """A page of the stand-in's library."""
    return Page(
        url=f"https://{site}/{number}",
        url_hash=f"{number:032x}",
        title=title,
        language=language,
        site=site,
        text=text,
        text_hash=f"{number}",
        source="web",
        chunks=2,
        characters=len(text),
        added_at="2026-03-05T09:30:00+00:00",
        updated_at="2026-03-05T09:30:00+00:00",
    )


def make_passage(page: Page, quote: str) -> Passage:
    """The paragraph of `page` that holds `quote`."""
    place = page.text.index(quote)
    start = page.text.rfind("\n", 0, place) + 1
    end = page.text.find("\n", place)
    end = len(page.text) if end < 0 else end
    section = ("The lamp",) if page.language == "en" else ("灯",)
    return Passage(
        f"{page.url_hash}:{start}", page.url, page.url_hash, page.title, page.site, page.language,
        section, page.text[start:end], start, end,
    )  # fmt: skip


def make_citation(page: Page, quote: str, number: int = 1) -> Citation:
    """A citation of `quote` in `page`."""
    start = page.text.index(quote)
    section = ("The lamp",) if page.language == "en" else ("灯",)
    return Citation(number, page.url, page.url_hash, page.title, quote, start, start + len(quote), section)


@dataclass
class FakeItem:
    position: int
    source: str
    stage: Stage = "waiting"
    result: IngestResult | None = None


@dataclass
class FakeJob:
    id: str
    library: str
    items: list[FakeItem]
    created_at: str = "2026-03-05T09:30:00+00:00"
    state: str = "running"
    chunker: str = ""


class FakeLibrary:
    def __init__(self) -> None:
        self.stored: list[Page] = []

    def page_count(self) -> int:
        return len(self.stored)

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {page.url_hash: page for page in self.stored if page.url_hash in url_hashes}

    def chunk_count(self) -> int:
        return sum(page.chunks for page in self.stored)


@dataclass
class FakeApp:
    """`asked`, `cancelled` and `tested` record what a page asked for."""

    settings: Settings = field(default_factory=lambda: Settings(_env_file=None, rag_data_dir=Path("/tmp/data")))
    released: int = 1000
    ready: bool = True
    outcome: Outcome = "answered"
    answer_text: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    tested: list[Any] = field(default_factory=list)
    libraries: dict[str, FakeLibrary] = field(default_factory=lambda: {"main": FakeLibrary()})
    jobs_by_id: dict[str, FakeJob] = field(default_factory=dict)
    runs: dict[str, Answer] = field(default_factory=dict)
    ends: dict[str, IngestResult] = field(default_factory=dict)

    def filled(self) -> FakeApp:
        """This stand-in with one English and one Chinese page."""
        self.library("main").stored[:] = [
            make_page(1, "Keeping a lighthouse", ENGLISH, "en"),
            make_page(2, "灯塔的看守", CHINESE, "zh", "灯塔.example"),
        ]
        return self

    def library_names(self) -> list[str]:
        return list(self.libraries)

    def library(self, name: str | None = None) -> FakeLibrary:
        return self.libraries.setdefault(name or "main", FakeLibrary())

    def models_ready(self) -> bool:
        return self.ready

    def find_urls(self, pasted: str) -> tuple[list[str], int]:
        return find_urls(pasted)

    # pages

    def pages(self, library: str) -> list[Page]:
        return [replace(page, text="") for page in self.library(library).stored]

    def page(self, library: str, url_hash: str) -> Page | None:
        return next((page for page in self.library(library).stored if page.url_hash == url_hash), None)

    def chunks(self, library: str, url_hash: str) -> list[Passage]:
        page = self.page(library, url_hash)
        return [make_passage(page, "four hours" if page.language == "en" else "四个小时")] if page else []

    def remove_pages(self, library: str, url_hashes: Sequence[str]) -> int:
        kept = [page for page in self.library(library).stored if page.url_hash not in url_hashes]
        removed = len(self.library(library).stored) - len(kept)
        self.library(library).stored[:] = kept
        return removed

    def clear(self, library: str) -> int:
        return self.remove_pages(library, [page.url_hash for page in self.library(library).stored])

    # imports

    def add_sources(self, sources: list[str], *, library: str, force: bool = False, chunker: str = "") -> str:
        return self._job(sources, library, chunker)

    def add_files(self, files: list[tuple[str, bytes]], *, library: str, chunker: str = "") -> str:
        return self._job([name for name, _ in files], library, chunker)

    def add_examples(self, *, library: str, chunker: str = "") -> str:
        return self._job(["examples/lighthouse.html", "examples/灯塔.html"], library, chunker)

    def _job(self, sources: list[str], library: str, chunker: str) -> str:
        items = [FakeItem(*pair) for pair in enumerate(sources)]
        job = FakeJob(f"job{len(self.jobs_by_id) + 1}", library, items, chunker=chunker)
        self.jobs_by_id[job.id] = job
        return job.id

    def job(self, job_id: str) -> FakeJob:
        if job_id not in self.jobs_by_id:
            raise StoreError("job_unknown")
        job = self.jobs_by_id[job_id]
        if job.state == "running":
            self._advance(job)
        return job

    def _advance(self, job: FakeJob) -> None:
        for item in job.items:
            item.stage = STAGES[min(STAGES.index(item.stage) + 1, len(STAGES) - 1)]
            if item.stage == "done":
                item.result = self.ends.get(item.source) or _added(item.source)
        if all(item.result for item in job.items):
            job.state = "done"

    def jobs(self, library: str) -> list[FakeJob]:
        return [job for job in reversed(self.jobs_by_id.values()) if job.library == library]

    def cancel_job(self, job_id: str) -> None:
        self.jobs_by_id[job_id].state = "cancelled"

    # questions

    def ask(self, question: str, **how: Any) -> str:
        self.asked.append({"question": question, **how})
        run_id = f"run{len(self.asked)}"
        self.runs[run_id] = self._answer(question, how["mode"], how["library"])
        return run_id

    def _answer(self, question: str, mode: Any, library: str) -> Answer:
        chinese = any("\u4e00" <= sign <= "\u9fff" for sign in question)
        page = next((p for p in self.library(library).stored if (p.language == "zh") == chinese), None)
        if page is None or self.outcome in ("not_in_pages", "failed"):
            passages = (make_passage(page, "四个小时" if chinese else "four hours"),) if page else ()
            code = "not_in_pages" if self.outcome != "failed" else "run_failed"
            outcome: Outcome = "failed" if self.outcome == "failed" else "not_in_pages"
            return Answer(question, mode, outcome, "", passages=passages, notice=Notice(code))
        quotes = CHINESE_QUOTES if chinese else ENGLISH_QUOTES
        marked = [f"{quote} [{number}]" for number, quote in enumerate(quotes, 1)]
        text = self.answer_text or ("" if chinese else " ").join(marked)
        return Answer(
            question, mode, self.outcome, text,
            citations=tuple(make_citation(page, quote, n) for n, quote in enumerate(quotes, 1)),
            passages=tuple(make_passage(page, quote) for quote in quotes),
            steps=_steps(question), reasoner="extractive",
            notice=Notice("best_found", {"searches": 3}) if self.outcome == "caveat" else None,
        )  # fmt: skip

    def events(self, run_id: str, since: int = 0) -> list[Event]:
        answer = self._run(run_id)
        events: list[tuple[Any, Any]] = []
        for step in answer.steps:
            events.append(("step", {"node": step.node, "state": "started"}))
            if step.node == "generate":
                events += [("token", answer.text[i : i + 12]) for i in range(0, len(answer.text), 12)]
            events.append(("step", {"node": step.node, "state": "finished", "ms": step.ms, "detail": step.detail}))
        events.append(("answer", answer))
        return [Event(n, kind, data) for n, (kind, data) in enumerate(events)][since : self.released]

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)

    def answer(self, run_id: str) -> Answer | None:
        answer = self._run(run_id)
        return answer if self.events(run_id)[-1:] and self.events(run_id)[-1].kind == "answer" else None

    def _run(self, run_id: str) -> Answer:
        if run_id not in self.runs:
            raise RagError("run_unknown")
        return self.runs[run_id]

    # tests of connections

    def test_chat(self, chat: Any) -> Notice:
        self.tested.append(chat)
        if chat.api_key == "wrong":
            raise ModelError("chat_wrong_key")
        return Notice("chat_works", {"model": chat.model})

    def test_database(self) -> Notice:
        return Notice("database_works", {"libraries": len(self.libraries)})


def _added(source: str) -> IngestResult:
    return IngestResult(source, source, "0" * 32, "added", "page_added", "", chunks=3, params={"chunks": 3})


def _steps(question: str) -> tuple[Step, ...]:
    return (
        Step("enter", 0.1, {}),
        Step("agent", 2.0, {"decision": "search", "queries": [question]}),
        Step("retrieve", 14.0, {"queries": [question], "passages": 10, "new": 10}),
        Step("grade", 6.0, {"decision": "graded", "relevant": 3, "of": 10}),
        Step("generate", 1250.0, {"decision": "answered", "passages": 3, "citations": 2}),
    )
