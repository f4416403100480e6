"""Dispatch of messages: find and report the route, import pasted links and files, then start the run.

Also limits the concurrent questions of each user.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Any, Final, cast

from rag.app.imports import Imports
from rag.conversations.conversations import TurnHandle
from rag.dates import find_period
from rag.errors import RagError
from rag.reasoning.chat import ChatReasoner
from rag.retrieval.context import SURE_THRESHOLD
from rag.retrieval.page_names import asks_for_all, find_addresses, find_named_pages, find_nearest, topic_of, words
from rag.retrieval.retriever import CachedEvidence, PageReader, ScopedSearch
from rag.routing.router import (
    ROUTES,
    InlineOptions,
    Route,
    Router,
    Routing,
    model_asker,
    read_message,
    read_options,
    split_pasted,
    strip_save_request,
    strip_words,
)
from rag.runs.run import Question, Run
from rag.store.sql.database import Database
from rag.store.sql.job_table import JobItem
from rag.store.values import Filters
from rag.text import question_language
from rag.tools.calculator import can_calculate
from rag.tools.calendar_day import can_answer
from rag.types import SAVED, Notice, Page

MAX_UNCONFIRMED: Final = 5
"""Max. links in a message that are saved without confirmation."""
_MODE_OF: Final = {
    "save": "save",
    "remove": "remove",
    "summarise": "summary",
    "what_changed": "summary",
    **dict.fromkeys(("statistics", "calculate", "date", "web", "small_talk", "unknown"), "tool"),
}
_READERS: Final[Mapping[Route, Callable[[str], bool]]] = {"calculate": can_calculate, "date": can_answer}
"""Functions that return whether the tool of a route can handle a message."""
_SAVING: Final = ("save", "save_then_ask")
_MIN_CONFIDENCE: Final = 0.85
"""Minimum confidence that a message within a conversation is not a short follow-up."""
_MIN_NEAR_SHARE: Final = 0.6
"""Minimum share of the words of a page to remove in the name of one that is suggested instead: not one of two."""
_POLL_SECONDS: Final = 0.25
_MAX_ROWS: Final = 50  # sources listed with a turn


class AnswerLimit:
    """A limit on the running answers of each user. Thread-safe."""

    def __init__(self, is_running: Callable[[str], bool], limit: int) -> None:
        """`is_running` returns whether the run with this id is still running."""
        self._is_running = is_running
        self._limit = limit
        self._lock = threading.Lock()
        self._runs: dict[str, set[str]] = {}

    def begin(self, person: str, start: Callable[[], TurnHandle]) -> TurnHandle:
        """Call `start` within the limit, or if `person` is empty. Raises RagError("too_many_answers")."""
        if not person:
            return start()
        with self._lock:
            self._runs = {
                key: live for key, runs in self._runs.items() if (live := set(filter(self._is_running, runs)))
            }
            if len(self._runs.get(person, ())) >= self._limit:
                raise RagError("too_many_answers", most=self._limit)
            turn = start()
            self._runs.setdefault(person, set()).add(turn.run_id)
            return turn


class Dispatcher:
    """A router of one user's messages."""

    def __init__(
        self,
        imports: Imports,
        database: Database,
        searcher: Callable[[Question, Run], ScopedSearch],
        find_pages: Callable[[str, Sequence[str]], Mapping[str, Page]],
        *,
        owner: str = "",
        person: str = "",
    ) -> None:
        """`searcher` builds a question's search, `find_pages` returns a library's pages, `person` owns the jobs."""
        self._imports, self._searcher, self._find_pages, self._person = imports, searcher, find_pages, person
        self._router = Router(lambda: database.routes.for_owner(owner))  # type: ignore[arg-type,return-value]

    def route(self, text: str, *, has_files: bool = False) -> Routing:
        """Return the route of a message, without a chat model."""
        return self._router.route(text, has_files=has_files)

    async def dispatch(self, run: Run) -> AsyncIterator[dict[str, Any]]:
        """Route the run; yield its route, then updates. Nothing for a plain question.

        Raises RagError if saving cannot start.
        """
        options, text = run.question.options, run.question.text
        splits = not options.saving and options.route in ("", *_SAVING)
        head, body = split_pasted(text) if splits else (text, "")
        question = replace(run.question, text=head)
        routed = await self._route(run, question, has_files=bool(body or question.options.saving))
        saves = routed.route in _SAVING
        text = strip_save_request(routed.rest) or question.text if saves else question.text
        without = question.options.without
        removes = routed.route == "remove"
        if removes:  # pages outside the filters can be removed too
            inline_options, question = InlineOptions(text), replace(question, scope=Filters())
        else:
            inline_options = await asyncio.to_thread(read_options, text, date.today(), saves=saves, without=without)
        question = self._apply_options(question, routed, inline_options)
        if routed.route == "ask" and not inline_options.values:
            run.question = question
            return
        run.switch_to(question, self._searcher(question, run))
        decision: dict[str, Any] = {
            "route": routed.route,
            "by": routed.by,
            "reason": asdict(routed.reason),
            "addresses": list(routed.addresses),
            "wishes": dict(inline_options.wording),
            "without": list(question.options.without),
        }
        yield decision
        if removes:
            pages = await asyncio.to_thread(_pages_to_remove, run)
            run.state |= pages
            yield {**decision, **pages}
        if saves:
            async for update in self._save(run, question, routed, inline_options, body):
                yield {**decision, **update}

    async def _save(
        self, run: Run, question: Question, routed: Routing, inline_options: InlineOptions, body: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Import the message's links and files, then answer its question from these first, or report the import."""
        report = replace(question, mode="save")
        if len(routed.addresses) > MAX_UNCONFIRMED and not question.options.confirmed:
            run.switch_to(report, self._searcher(report, run))
            yield {"confirm": len(routed.addresses)}
            return
        job = await asyncio.to_thread(self._start_job, question, routed, inline_options, body)
        yield {"job": job}
        items = await self._wait_for(job, run)
        rows = [_row(item) for item in items]
        hashes = [row["url_hash"] for row in rows if row["url_hash"]]
        pages = await asyncio.to_thread(self._find_pages, question.library, hashes)
        titles = {url_hash: page.title for url_hash, page in pages.items()}
        run.state["saved"] = [{**row, "title": titles.get(row["url_hash"], "")} for row in rows]
        saved = tuple(row["url_hash"] for row in run.state["saved"] if row["status"] in SAVED)
        following = report
        if saved and routed.route == "save_then_ask":  # a summary of the new pages, or an answer from these first
            following = replace(question, options=replace(question.options, first=saved))
            if self._router.route(question.text).route == "summarise":
                scope = replace(question.scope, pages=saved)
                following = replace(question, mode=_MODE_OF["summarise"], scope=scope)
        run.switch_to(following, self._searcher(following, run))
        yield {"job": job, "saved": run.state["saved"]}

    async def _route(self, run: Run, question: Question, *, has_files: bool) -> Routing:
        reasoner = run.reasoner
        if route := question.options.route:
            message = read_message(question.text, has_files=has_files)
            return Routing(cast(Route, route), "person", Notice("route_person"), 1.0, message.addresses, message.words)
        model = model_asker(reasoner) if isinstance(reasoner, ChatReasoner) else None
        if model is None:
            routed = await asyncio.to_thread(self._router.route, question.text, has_files=has_files)
        else:
            routed = await self._router.ask(question.text, model, has_files=has_files)
        if routed.by == "classifier" and routed.route in _READERS:
            routed = await asyncio.to_thread(self._skip_unusable, routed, question.text, has_files)
        if routed.by != "classifier" or routed.route not in ("unknown", "small_talk"):
            return routed
        is_ask = bool(run.history) and routed.confidence < _MIN_CONFIDENCE
        if not is_ask and routed.route == "unknown":  # maybe a name from the pages that the classifier never saw
            found = await asyncio.to_thread(self._searcher(question, run).search, question.text)
            is_ask = isinstance(found, CachedEvidence) or found.answerable >= SURE_THRESHOLD
        return replace(routed, route="ask") if is_ask else routed

    def _skip_unusable(self, routed: Routing, text: str, has_files: bool) -> Routing:
        """Return the next likely route if the tool of this one can't read the text."""
        unusable = [route for route, can_read in _READERS.items() if not can_read(text)]
        return self._router.route(text, has_files=has_files, without=unusable) if routed.route in unusable else routed

    def _apply_options(self, question: Question, routed: Routing, inline_options: InlineOptions) -> Question:
        """Return the question with its route and the options found in the message."""
        values, scope = inline_options.values, question.scope
        since, until = values.get("days", (None, None))
        if routed.route == "what_changed" and (period := find_period(question.text, date.today())):
            since, until = period.since, period.until
        scope = replace(
            scope,
            languages=(values["language"],) if "language" in values else scope.languages,
            since=since.isoformat() if since else scope.since,
            until=until.isoformat() if until else scope.until,
        )
        options = replace(
            question.options,
            route=routed.route,
            strategy=values.get("strategy") or question.options.strategy,
            locale=question_language(routed.rest) if routed.rest.strip() else question.options.locale,
        )
        asks = routed.route in ("ask", "save_then_ask")
        mode = values.get("mode", question.mode) if asks else _MODE_OF[routed.route]
        return replace(question, text=inline_options.rest, mode=mode, scope=scope, options=options)

    def _start_job(self, question: Question, routed: Routing, inline_options: InlineOptions, body: str) -> str:
        """Start a job that imports the links or pasted text; return its id. Attached files already have one."""
        if question.options.saving:
            return question.options.saving
        extra: dict[str, Any] = {
            name: inline_options.values[name] for name in ("chunker", "chunk_size") if name in inline_options.values
        }
        extra |= {"library": question.library, "owner": self._person}
        if body:
            name = re.sub(r"[^\w -]+", " ", body.partition("\n")[0])[:60].strip() or "text"
            return self._imports.jobs.submit_files([(f"{name}.txt", body.encode())], **extra)
        return self._imports.add_urls(routed.addresses, **extra)

    async def _wait_for(self, job: str, run: Run) -> Sequence[JobItem]:
        """Wait for the sources and return their results. The wait doesn't count against the run's time."""
        # Poll the database: another process may be running the job.
        while (await asyncio.to_thread(self._imports.jobs.job, job)).state == "running":
            await asyncio.sleep(_POLL_SECONDS)
            run.seconds_waited += _POLL_SECONDS
        return await asyncio.to_thread(self._imports.jobs.items, job, 0, _MAX_ROWS)


def _pages_to_remove(run: Run) -> dict[str, Any]:
    """Return the pages to remove after confirmation: those that the message names, or the conversation's recent ones if
    it names none; else those whose names or passages have its topic."""
    reader, text = run.cache.retriever.reader, run.question.text
    listed = list(reader.list_pages(dated=False)) if reader else []
    topic = topic_of(strip_words(text, "remove"))
    has_name = bool(topic or find_addresses(text) or asks_for_all(text))
    recent = [page for page in listed if page.url_hash in run.recent_pages and not has_name]
    if pages := find_named_pages(text, listed) or recent:
        return {"remove": [_page_row(page, reader) for page in pages]}
    found = run.cache.search(topic) if listed and topic else []
    nearby = [one.url_hash for one in found if words(topic) <= words(f"{one.title} {one.text}")]
    near = find_nearest(topic, listed, nearby, min_share=_MIN_NEAR_SHARE)
    return {"near": [_page_row(page, reader) for page in near]}


def _page_row(page: Page, reader: PageReader | None) -> dict[str, str]:
    """Return a page as JSON values, with its library if several are searched."""
    passages = reader.passages(page.url_hash) if reader else ()
    library = next((passage.library for passage in passages), "")
    return {"url_hash": page.url_hash, "title": page.title or page.url, "library": library}


def _row(item: JobItem) -> dict[str, Any]:
    result = item.result
    if result is None:
        return {"source": item.source, "url": item.url, "url_hash": item.url_hash, "status": "", "notice": None}
    return {
        "source": result.source,
        "url": result.url,
        "url_hash": result.page_hash,
        "status": result.status,
        "notice": asdict(result.notice),
    }


def record_route(database: Database, library: str, owner: str, text: str, route: str) -> None:
    """Store the user's route for a misrouted message. Raises RagError("route_unknown_name")."""
    if route not in ROUTES:
        raise RagError("route_unknown_name", route=route)
    database.routes.add(library, owner, read_message(text).masked, route)
