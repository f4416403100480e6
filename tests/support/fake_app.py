"""A fake `rag.app.App` for tests of pages, without waiting or fetching.

An import advances by one stage each time it is polled; a run shows its first `visible_events` events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, BinaryIO, get_args

from qdrant_client import QdrantClient

from rag.access import Person
from rag.app.chat_models import ChatModels, ChatOptions
from rag.app.libraries import Libraries, Models, Reranking
from rag.app.moves import LibraryMove
from rag.app.overviews import Overview
from rag.app.roles import Roles
from rag.app.transfer import Transfer
from rag.config import Settings
from rag.conversations.conversations import Conversations, PageStamp, TurnHandle, TurnRequest, TurnView
from rag.conversations.feedback import Feedback
from rag.conversations.memory import NoteStore
from rag.errors import ModelError, RagError, StoreError
from rag.ingest.schedule import ScheduleView
from rag.retrieval.page_map import PageMap
from rag.retrieval.retriever import LibraryGroup
from rag.runs.run import Hooks, Question
from rag.store.sql.database import Database
from rag.store.sql.small_tables import Schedule
from rag.text import is_chinese
from rag.types import (
    Answer,
    Citation,
    Decision,
    Event,
    IngestResult,
    Notice,
    Outcome,
    Page,
    PageVersion,
    Passage,
    Retrieval,
    RunMode,
    Stage,
    ToolUse,
    Usage,
)
from rag.web.search import WebSearch
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
    decision: Decision = ""

    @property
    def url(self) -> str:
        return self.source


@dataclass
class FakeJob:
    id: str
    library: str
    items: list[FakeItem]
    created_at: str = "2026-03-05T09:30:00+00:00"
    finished_at: str = ""
    state: str = "running"
    chunker: str = ""
    kind: str = "pages"
    title: str = ""
    discovery: str = ""
    bulk: int = 0
    pages: dict[str, int] = field(default_factory=dict)
    notice: Notice | None = None
    options: dict[str, Any] = field(default_factory=dict)
    rate: float | None = None
    seconds_left: float | None = None

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(item.result.status if item.result else "" for item in self.items))

    @property
    def total(self) -> int:
        return len(self.items)

    @property
    def done(self) -> int:
        return sum(item.result is not None for item in self.items)

    @property
    def current(self) -> tuple[FakeItem, ...]:
        return tuple(item for item in self.items if item.result is None and item.stage != "waiting")


class FakeLibrary:
    def __init__(self) -> None:
        self.stored: list[Page] = []
        self.past: dict[str, list[PageVersion]] = {}
        self.excluded: set[str] = set()

    def pages(self) -> list[Page]:
        return [replace(page, text="") for page in self.stored]

    def page(self, url_hash: str) -> Page | None:
        return next((page for page in self.stored if page.url_hash == url_hash), None)

    def chunks(self, url_hash: str) -> list[Passage]:
        page = self.page(url_hash)
        return [make_passage(page, "four hours" if page.language == "en" else "四个小时")] if page else []

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        every = [make_passage(page, quote) for page in self.stored for quote in (*ENGLISH_QUOTES, *CHINESE_QUOTES)
                 if quote in page.text]  # fmt: skip
        return list({passage.id: passage for passage in every if passage.id in ids}.values())

    def versions(self, url_hash: str) -> list[PageVersion]:
        page = self.page(url_hash)
        if page is None:
            return []
        now = PageVersion(url_hash, page.version, page.title, page.text, page.text_hash, page.updated_at)
        return [*self.past.get(url_hash, []), now]

    def excluded_pages(self) -> set[str]:
        return set(self.excluded)

    def set_excluded(self, url_hashes: Sequence[str], excluded: bool) -> None:
        self.excluded = self.excluded | {*url_hashes} if excluded else self.excluded - {*url_hashes}

    def remove(self, url_hashes: Sequence[str]) -> int:
        kept = [page for page in self.stored if page.url_hash not in url_hashes]
        removed = len(self.stored) - len(kept)
        self.stored[:] = kept
        return removed

    def clear(self) -> int:
        return self.remove([page.url_hash for page in self.stored])

    def page_count(self) -> int:
        return len(self.stored)

    def stored_pages(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {page.url_hash: page for page in self.stored if page.url_hash in url_hashes}

    resolve = stored_pages

    def find_known(self, url_hashes: Sequence[str]) -> set[str]:
        return set(self.stored_pages(url_hashes))

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return {url_hash: page.text for url_hash, page in self.stored_pages(url_hashes).items()}

    def chunk_count(self) -> int:
        return sum(page.chunks for page in self.stored)


class FakeJobs:
    """Imports whose sources end as `ends` says, by default as added; `decided` records the user's decisions."""

    def __init__(self) -> None:
        self.by_id: dict[str, FakeJob] = {}
        self.ends: dict[str, IngestResult] = {}
        self.decided: list[tuple[str, int, Decision]] = []
        self.rechecked: list[dict[str, Any]] = []
        self.unread_files = 0

    def add(self, sources: Sequence[str], library: str, **fields: Any) -> str:
        items = [FakeItem(*pair) for pair in enumerate(sources)]
        fields.setdefault("title", sources[0] if sources else "")
        job = FakeJob(f"job{len(self.by_id) + 1}", library, items, **fields)
        self.by_id[job.id] = job
        return job.id

    def recheck(
        self,
        library: str,
        url_hashes: Sequence[str] | None = None,
        site: str | None = None,
        *,
        owner: str = "",
        title: str = "",
    ) -> str:
        self.rechecked.append({"library": library, "url_hashes": url_hashes, "site": site})
        options = {"url_hashes": url_hashes, "site": site or ""}
        name = title or site or ""
        return self.add(list(url_hashes or ["all"]), library, kind="recheck", title=name, options=options)

    def of(self, owner: str | None) -> FakeJobs:
        return self

    def job(self, job_id: str) -> FakeJob:
        if job_id not in self.by_id:
            raise StoreError("job_unknown")
        job = self.by_id[job_id]
        if job.state == "running":
            self._advance(job)
        return job

    def _advance(self, job: FakeJob) -> None:
        for item in job.items:
            if item.result is None:
                item.stage = STAGES[min(STAGES.index(item.stage) + 1, len(STAGES) - 1)]
            if item.stage == "done" and item.result is None:
                item.result = self.ends.get(item.source) or _added(item.source)
        if all(item.result for item in job.items):
            job.state = "done"

    def jobs(self, library: str, limit: int = 20, offset: int = 0) -> list[FakeJob]:
        found = [job for job in reversed(self.by_id.values()) if job.library == library]
        return found[offset : offset + limit]

    def items(self, job_id: str, offset: int = 0, limit: int = 100, statuses: Sequence[str] = ()) -> list[FakeItem]:
        items = self.by_id[job_id].items
        chosen = [i for i in items if not statuses or (i.result.status if i.result else "") in statuses]
        return chosen[offset : offset + limit]

    def cancel(self, job_id: str) -> None:
        self.by_id[job_id].state = "cancelled"

    def pause(self, job_id: str) -> None:
        self.by_id[job_id].state = "paused"

    def resume(self, job_id: str) -> None:
        self.by_id[job_id].state = "running"

    def retry_failed(self, job_id: str) -> str:
        for item in self.by_id[job_id].items:
            if item.result and item.result.status == "failed":
                item.result, item.stage = None, "waiting"
        self.by_id[job_id].state = "running"
        return job_id

    def count_unread_files(self, library: str) -> int:
        return self.unread_files

    def reread_files(self, library: str) -> list[str]:
        self.unread_files = 0
        return list(self.by_id)[-1:]

    def decide(self, job_id: str, position: int, decision: Decision) -> None:
        self.decided.append((job_id, position, decision))
        item = self.by_id[job_id].items[position]
        self.ends.pop(item.source, None)
        item.result, item.stage, item.decision = None, "waiting", decision
        self.by_id[job_id].state = "running"

    def delete(self, job_id: str) -> None:
        del self.by_id[job_id]


class FakeSchedules:
    def __init__(self) -> None:
        self.views: list[ScheduleView] = []

    def set(
        self, library: str, *, every_hours: int, site: str = "", url_hashes: Sequence[str] = (), owner: str = ""
    ) -> str:
        scope: Any = "pages" if url_hashes else "site" if site else "all"
        name = f"schedule{len(self.views) + 1}"
        made, due = "2026-03-05T09:30:00+00:00", "2026-03-06T09:30:00+00:00"
        schedule = Schedule(name, library, owner, made, scope, site, tuple(url_hashes), every_hours, due)
        self.views.append(ScheduleView(schedule, None))
        return name

    def remove(self, schedule_id: str) -> None:
        self.views = [view for view in self.views if view.schedule.id != schedule_id]

    def schedules(self, library: str) -> list[ScheduleView]:
        return [view for view in self.views if view.schedule.library == library]


class FakeImports:
    """Imports that are recorded in `jobs.by_id`, with the settings of a site's import as the job's options."""

    def __init__(self) -> None:
        self.jobs = FakeJobs()
        self.schedules = FakeSchedules()
        self.web_search: WebSearch | None = None

    @property
    def jobs_by_id(self) -> dict[str, FakeJob]:
        return self.jobs.by_id

    def add_urls(
        self, sources: list[str], *, library: str, owner: str = "", force: bool = False, chunker: str = ""
    ) -> str:
        return self.jobs.add(sources, library, chunker=chunker, options={"force": force})

    def add_files(self, files: list[tuple[str, bytes]], *, library: str, owner: str = "", chunker: str = "") -> str:
        return self.jobs.add([name for name, _ in files], library, chunker=chunker)

    def add_examples(self, *, library: str, owner: str = "", chunker: str = "") -> str:
        return self.jobs.add(["examples/lighthouse.html", "examples/灯塔.html"], library, chunker=chunker)

    def add_site(
        self, start: str, kind: str, *, library: str, owner: str = "", chunker: str = "", **limits: Any
    ) -> str:
        found = [f"{start.rstrip('/')}/{n}" for n in (1, 2)]
        return self.jobs.add(found, library, kind=kind, title=start, chunker=chunker, options=limits)


class FakeOverviews:
    """Overviews that describe each page by its title, and suggest `questions`."""

    def __init__(self) -> None:
        self.questions: tuple[str, ...] = ()
        self.open: Callable[[str], FakeLibrary] = lambda name: FakeLibrary()

    def get(self, library: str, url_hashes: Sequence[str], reasoner: object, language: str) -> Future[Overview]:
        known = self.open(library).stored_pages(list(url_hashes))
        pages = [(known[one], f"About {known[one].title}.") for one in url_hashes if one in known]
        return _done(Overview(tuple(pages), self.questions))


class FakeDeletions:
    """Deletions of which the latest can be undone immediately."""

    def __init__(self) -> None:
        self.open: Callable[[str], FakeLibrary] = lambda name: FakeLibrary()
        self.jobs = FakeJobs()
        self.latest: tuple[str, list[Page]] = ("", [])

    def record(self, name: str, url_hashes: Sequence[str]) -> str:
        self.latest = (name, [one for one in self.open(name).stored if one.url_hash in url_hashes])
        return "removal"

    def undo(self, token: str, owner: str = "") -> str:
        name, pages = self.latest
        self.open(name).stored += pages
        return self.jobs.add([page.url for page in pages], name)


class FakeMaps:
    """Maps that are ready immediately: `found` for every library."""

    def __init__(self) -> None:
        self.found: PageMap | None = None

    def get(self, library: str, pages: Sequence[Page]) -> Future[PageMap | None]:
        return _done(self.found)

    def latest(self, library: str) -> PageMap | None:
        return self.found


class FakeTransfers:
    """Transfers that complete after two polls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_id: dict[str, Transfer] = {}
        self.uploads: list[tuple[str, str, bytes]] = []

    def export(self, library: str, owner: str = "") -> str:
        return self._begin("export", library)

    def import_file(self, stream: BinaryIO, name: str, library: str, owner: str = "") -> str:
        self.uploads.append((name, library, stream.read()))
        return self._begin("import", library)

    def _begin(self, kind: Any, library: str) -> str:
        transfer = Transfer(f"transfer{len(self.by_id) + 1}", kind, library, "running", total=2)
        self.by_id[transfer.id] = transfer
        return transfer.id

    def transfer(self, transfer_id: str, owner: str = "") -> Transfer | None:
        found = self.by_id.get(transfer_id)
        if found and found.state == "running" and found.done:
            file = self.folder / f"{found.library}.pagelight"
            file.write_bytes(b"the file of a library")
            self.by_id[found.id] = replace(found, state="done", done=2, path=file, size=21, pages=2)
        elif found and found.state == "running":
            self.by_id[found.id] = replace(found, done=1)
        return found


class FakeMoves:
    """Moves that complete after three polls."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str]] = []
        self._moves: dict[str, LibraryMove] = {}

    def begin(self, library: str, model: str) -> LibraryMove:
        self.started.append((library, model))
        self._moves[library] = LibraryMove(library, model, total=8)
        return self._moves[library]

    def go_back(self, library: str) -> LibraryMove:
        return self.begin(library, "back")

    def move(self, library: str) -> LibraryMove | None:
        found = self._moves.get(library)
        if found and found.is_running:
            done = found.done + 4
            more: dict[str, Any] = {"state": "done", "asked": 5, "found": 4} if done > 8 else {"done": done}
            self._moves[library] = replace(found, **more)
        return found

    def forget(self, library: str) -> None:
        self._moves.pop(library, None)


class FakeModels:
    reranker: Any = None

    def __init__(self) -> None:
        self.is_ready = True
        self.reranking = Reranking(Settings(_env_file=None))
        self.load_error: Notice | None = None

    def ready(self) -> bool:
        return self.is_ready

    def problem(self) -> Notice | None:
        return self.load_error

    def end_delay(self) -> None:
        pass


class FakeChats(ChatModels):
    """Chat models without a network: the key `wrong` and the model `none-such` are refused, two models are listed."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.tested: list[ChatOptions] = []

    def test(self, options: ChatOptions | None = None) -> Notice:
        assert options
        self.tested.append(options)
        if options.api_key == "wrong":
            raise ModelError("chat_wrong_key")
        if "none-such" in (options.model, options.fast_model):
            raise ModelError("chat_unknown_model", model="none-such")
        return Notice("chat_works", {"model": options.model})

    def list_models(self, options: ChatOptions) -> list[str]:
        return ["qwen3:32b", "qwen3:8b"]


class FakeRuns:
    """Runs that end when their last event is first shown, which saves the answer in the conversation."""

    def __init__(self, answer_for: Callable[[str, Any], Answer]) -> None:
        self.answers: dict[str, Answer] = {}
        self.ends: dict[str, Callable[[Answer], object]] = {}
        self.cancelled: list[str] = []
        self._answer_for = answer_for

    def start(self, question: Question, *, hooks: Hooks, **_: Any) -> str:
        run_id = f"run{len(self.answers) + 1}"
        self.answers[run_id] = self._answer_for(question.text, question.mode)
        self.ends[run_id] = hooks.on_answer or list
        return run_id

    def can_resume(self, mode: str) -> bool:
        return False

    def is_running(self, run_id: str) -> bool:
        return run_id in self.answers and run_id in self.ends

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)

    def run(self, run_id: str) -> Answer:
        if run_id not in self.answers:
            raise RagError("run_unknown")
        return self.answers[run_id]

    def end(self, run_id: str) -> None:
        if done := self.ends.pop(run_id, None):
            done(self.answers[run_id])


class _Forgetful:
    def delete(self, conversation_id: str) -> None:
        """Do nothing: only the conversations themselves are stored."""


@dataclass
class FakeApp:
    """A fake app; `asked`, `searched` and `cancelled` record its calls; conversations are real ones, in a file.

    Answers have `standalone` as the rewritten question, and `suggestions` as follow-ups.
    """

    settings: Settings = field(default_factory=lambda: Settings(_env_file=None, rag_data_dir=Path("/tmp/data")))
    visible_events: int = 1000
    outcome: Outcome = "answered"
    answer_text: str = ""
    tools: tuple[ToolUse, ...] = ()
    cited: tuple[Citation, ...] = ()
    notes: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    searched: list[dict[str, Any]] = field(default_factory=list)
    standalone: str = ""
    suggestions: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    outage_notice: Notice | None = None
    stored: dict[str, FakeLibrary] = field(default_factory=dict)
    page_maps: FakeMaps = field(default_factory=FakeMaps)
    overviews: FakeOverviews = field(default_factory=FakeOverviews)
    deletions: FakeDeletions = field(default_factory=FakeDeletions)
    imports: FakeImports = field(default_factory=FakeImports)
    models: FakeModels = field(default_factory=FakeModels)
    moves: FakeMoves = field(default_factory=FakeMoves)
    transfers: FakeTransfers = field(default_factory=lambda: FakeTransfers(Path(mkdtemp())))

    def add_sample_pages(self) -> FakeApp:
        """Add an English and a Chinese page; return the app."""
        self.library("main").stored[:] = [
            make_page(1, "Keeping a lighthouse", ENGLISH, "en"),
            make_page(2, "灯塔的看守", CHINESE, "zh", "灯塔.example"),
        ]
        return self

    def library(self, name: str | None = None) -> FakeLibrary:
        return self.stored.setdefault(name or "main", FakeLibrary())

    def library_view(self, names: str | Sequence[str]) -> Any:
        return LibraryGroup([self.library(name) for name in ([names] if isinstance(names, str) else names)])  # type: ignore[misc]

    def page(self, library: str, url_hash: str) -> Page | None:
        return self.library(library).page(url_hash)

    def remove_library(self, name: str) -> None:
        self.libraries.remove(name)

    def remove_pages(self, name: str, url_hashes: list[str]) -> int:
        return self.library(name).remove(url_hashes)

    def summary(self, library: str, page: Page, language: str) -> Mapping[str, Any] | None:
        found = self.database.summaries.find(library, page.url_hash, page.text_hash, language)
        return {**found["data"], "made": found["created_at"], "by": found["author"]} if found else None

    def reasoner(self, library: str, chat: Any = None) -> Any:
        return SimpleNamespace(name="extractive")

    def ask(self, question: Question, **how: Any) -> str:
        """Start a run, and save its answer as the page's summary."""
        self.asked.append({"question": question.text, "library": question.library, "mode": question.mode})
        run_id = self.runs.start(question, hooks=Hooks())
        answer = self.runs.answers[run_id]
        page = self.library(question.library).page(question.scope.pages[0])
        kept = {"text": answer.text, "citations": [asdict(one) for one in answer.citations], "statements": []}
        language = "zh" if is_chinese(question.text) else "en"
        where = (question.library, page.url_hash, page.text_hash, language)
        self.database.summaries.save(*where, "extractive", kept)
        return run_id

    # questions

    def __post_init__(self) -> None:
        self.overviews.open = self.deletions.open = self.library
        self.deletions.jobs = self.imports.jobs
        self.database = Database(Path(mkdtemp()) / "app.sqlite3")
        self.runs = FakeRuns(lambda question, mode: self._answer(question, mode, self.asked[-1]["library"]))
        self.conversations = Conversations(self.database, self.runs, _Forgetful())  # type: ignore[arg-type]
        self.feedback = Feedback(self.database, self.conversations)
        self.chats = FakeChats(self.settings)
        self.memory = NoteStore(Path(mkdtemp()) / "remembered.sqlite3")
        models = Models(self.settings)  # loads nothing: the built-in model's dimension is known
        self.libraries = Libraries(QdrantClient(":memory:"), self.settings, models)
        self.roles = Roles(self.database.grants, None)

    def for_person(self, person: Person | None) -> FakeApp:
        self.roles = Roles(self.database.grants, person)
        return self

    def set_excluded(self, name: str, url_hashes: list[str], excluded: bool) -> None:
        self.library(name).set_excluded(url_hashes, excluded)

    def clear_library(self, name: str) -> None:
        self.library(name).clear()

    @property
    def cancelled(self) -> list[str]:
        return self.runs.cancelled

    def converse(
        self,
        question: Question,
        *,
        conversation_id: str = "",
        owner: str = "",
        person: str = "",
        **how: Any,
    ) -> TurnHandle:
        asked = {"question": question.text, "library": question.library, "mode": question.mode}
        asked |= {"owner": owner, "person": person, "conversation_id": conversation_id, "filters": question.scope}
        options = {one.name: getattr(question.options, one.name) for one in fields(question.options)}
        options["libraries"] = question.libraries
        self.asked.append({**asked, **options, **how})
        known = self.library(question.library).stored_pages
        asking = TurnRequest(
            question, None, None, owner, conversation_id,  # type: ignore[arg-type]
            settings=how.get("settings", {}), suggest=False,
            stamps=lambda hashes: {key: PageStamp.of(page) for key, page in known(hashes).items()},
        )  # fmt: skip
        begun = self.conversations.ask(asking)
        if self.suggestions:
            self.database.conversations.add_extra(begun.turn_id, {"suggestions": list(self.suggestions)})
        return begun

    def save_note(self, turn_id: str, **how: Any) -> None:
        self.notes.append(turn_id)

    def turns(self, owner: str = "") -> list[TurnView]:
        """Return the turns of the latest conversation."""
        latest = self.conversations.conversations("main", owner)[0]
        return self.conversations.turns(latest.id, owner)

    @property
    def newest(self) -> str:
        """The id of the latest turn."""
        return self.turns()[-1].id

    def _page_for(self, question: str, library: str) -> Page | None:
        """Return the first page in the question's language."""
        pages = self.library(library).stored
        return next((page for page in pages if (page.language == "zh") == is_chinese(question)), None)

    def _answer(self, question: str, mode: Any, library: str) -> Answer:
        chinese, page = is_chinese(question), self._page_for(question, library)
        if page is None or self.outcome in ("not_in_pages", "failed"):
            passages = (make_passage(page, "四个小时" if chinese else "four hours"),) if page else ()
            outcome: Outcome = "failed" if self.outcome == "failed" else "not_in_pages"
            searches = (make_search(question, page),) if page else ()
            notice = Notice("run_failed" if outcome == "failed" else outcome)
            return Answer(question, mode, outcome, "", passages=passages, notice=notice, searches=searches)
        quotes = CHINESE_QUOTES if chinese else ENGLISH_QUOTES
        marked = [f"{quote} [{number}]" for number, quote in enumerate(quotes, 1)]
        if self.tools:
            return Answer(question, "tool", "answered", self.answer_text, tools=self.tools)
        text = self.answer_text or ("" if chinese else " ").join(marked)
        return Answer(
            question, mode, self.outcome, text,
            citations=self.cited or tuple(make_citation(page, quote, n) for n, quote in enumerate(quotes, 1)),
            passages=tuple(make_passage(page, quote) for quote in quotes),
            steps=make_steps(question, page), reasoner="extractive",
            searches=(make_search(question, page),), answerable=0.87,
            notice=Notice("best_found", {"searches": 3}) if self.outcome == "caveat" else None,
            standalone=self.standalone, usage=self.usage, seconds=1.25,
        )  # fmt: skip

    def search(self, question: str, *, library: str, **options: Any) -> Retrieval:
        self.searched.append({"question": question, "library": library, **options})
        page = self._page_for(question, library)
        return make_search(question, page) if page else Retrieval(question, "mmr", (), (), ("sparse",))

    def count_running(self, *modes: RunMode) -> int:
        return 0 if modes else len(self.runs.ends)

    def events(self, run_id: str, since: int = 0, wait: float = 0.0, owner: str = "") -> list[Event]:
        answer = self.runs.run(run_id)
        events: list[tuple[Any, Any]] = [("standalone", answer.standalone)] if answer.standalone else []
        for step in answer.steps:
            events.append(("step", {"node": step.node, "state": "started"}))
            if step.node == "generate":
                events += [("token", answer.text[i : i + 12]) for i in range(0, len(answer.text), 12)]
            events.append(("step", {"node": step.node, "state": "finished", "ms": step.ms, "detail": step.detail}))
        events.append(("answer", answer))
        shown = [Event(n, kind, data) for n, (kind, data) in enumerate(events)][: self.visible_events]
        if shown[-1:] and shown[-1].kind == "answer":
            self.runs.end(run_id)
        return shown[since:]

    def cancel(self, run_id: str, owner: str = "") -> None:
        self.runs.cancel(run_id)

    def answer(self, run_id: str, owner: str = "") -> Answer | None:
        shown = self.events(run_id)
        return self.runs.run(run_id) if shown[-1:] and shown[-1].kind == "answer" else None

    def wait(self, run_id: str, timeout: float | None = None, owner: str = "") -> Answer:
        return self.runs.run(run_id)

    def outage(self) -> Notice | None:
        return self.outage_notice

    def test_database(self) -> Notice:
        return Notice("database_works", {"libraries": len(self.libraries.infos())})


def _done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def _added(source: str) -> IngestResult:
    return IngestResult(source, source, "0" * 32, "added", "page_added", "", chunks=3, params={"chunks": 3})
