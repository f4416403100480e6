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
from rag.types import Answer, IngestResult, Notice, Outcome, Page, Passage, Retrieval, Stage
from tests.support.lighthouse import (
    CHINESE,
    CHINESE_QUOTES,
    ENGLISH,
    ENGLISH_QUOTES,
    make_citation,
    make_page,
    make_passage,
    make_search,
    make_steps,
)

STAGES: tuple[Stage, ...] = get_args(Stage)


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

    def pages(self) -> list[Page]:
        return [replace(page, text="") for page in self.stored]

    def page(self, url_hash: str) -> Page | None:
        return next((page for page in self.stored if page.url_hash == url_hash), None)

    def chunks(self, url_hash: str) -> list[Passage]:
        page = self.page(url_hash)
        return [make_passage(page, "four hours" if page.language == "en" else "四个小时")] if page else []

    def remove(self, url_hashes: Sequence[str]) -> int:
        kept = [page for page in self.stored if page.url_hash not in url_hashes]
        removed = len(self.stored) - len(kept)
        self.stored[:] = kept
        return removed

    def clear(self) -> int:
        return self.remove([page.url_hash for page in self.stored])

    def page_count(self) -> int:
        return len(self.stored)

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {page.url_hash: page for page in self.stored if page.url_hash in url_hashes}

    def chunk_count(self) -> int:
        return sum(page.chunks for page in self.stored)


class FakeImports:
    """Every source ends as `ends` says, by default as added."""

    def __init__(self) -> None:
        self.jobs_by_id: dict[str, FakeJob] = {}
        self.ends: dict[str, IngestResult] = {}

    def find_urls(self, pasted: str) -> tuple[list[str], int]:
        return find_urls(pasted)

    def add_urls(self, sources: list[str], *, library: str, force: bool = False, chunker: str = "") -> str:
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

    def cancel(self, job_id: str) -> None:
        self.jobs_by_id[job_id].state = "cancelled"


class FakeModels:
    def __init__(self) -> None:
        self.is_ready = True
        self.why_not: Notice | None = None
        self.tested: list[Any] = []

    def ready(self) -> bool:
        return self.is_ready

    def problem(self) -> Notice | None:
        return self.why_not

    def test_chat(self, chat: Any) -> Notice:
        self.tested.append(chat)
        if chat.api_key == "wrong":
            raise ModelError("chat_wrong_key")
        return Notice("chat_works", {"model": chat.model})


@dataclass
class FakeApp:
    """`asked`, `searched` and `cancelled` record what a page asked for."""

    settings: Settings = field(default_factory=lambda: Settings(_env_file=None, rag_data_dir=Path("/tmp/data")))
    released: int = 1000
    outcome: Outcome = "answered"
    answer_text: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    searched: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    libraries: dict[str, FakeLibrary] = field(default_factory=lambda: {"main": FakeLibrary()})
    runs: dict[str, Answer] = field(default_factory=dict)
    imports: FakeImports = field(default_factory=FakeImports)
    models: FakeModels = field(default_factory=FakeModels)

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
            searches = (make_search(question, page),) if page else ()
            notice = Notice(code)
            return Answer(question, mode, outcome, "", passages=passages, notice=notice, searches=searches)
        quotes = CHINESE_QUOTES if chinese else ENGLISH_QUOTES
        marked = [f"{quote} [{number}]" for number, quote in enumerate(quotes, 1)]
        text = self.answer_text or ("" if chinese else " ").join(marked)
        return Answer(
            question, mode, self.outcome, text,
            citations=tuple(make_citation(page, quote, n) for n, quote in enumerate(quotes, 1)),
            passages=tuple(make_passage(page, quote) for quote in quotes),
            steps=make_steps(question, page), reasoner="extractive",
            searches=(make_search(question, page),), answerable=0.87,
            notice=Notice("best_found", {"searches": 3}) if self.outcome == "caveat" else None,
        )  # fmt: skip

    def search(self, question: str, *, library: str, **how: Any) -> Retrieval:
        self.searched.append({"question": question, "library": library, **how})
        chinese = any("\u4e00" <= sign <= "\u9fff" for sign in question)
        pages = self.library(library).stored
        page = next((p for p in pages if (p.language == "zh") == chinese), None)
        return make_search(question, page) if page else Retrieval(question, "mmr", (), (), ("sparse",))

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

    def test_database(self) -> Notice:
        return Notice("database_works", {"libraries": len(self.libraries)})


def _added(source: str) -> IngestResult:
    return IngestResult(source, source, "0" * 32, "added", "page_added", "", chunks=3, params={"chunks": 3})
