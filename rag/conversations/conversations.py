"""Conversations: ask, store, list, continue, branch, delete. All access is limited to the owner.

After an answer, up to three questions in the question's language are proposed that the pages can answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import uuid4

from rag.background import BACKGROUND
from rag.checking.rules import read_terms
from rag.conversations.checkpoints import Checkpoints
from rag.errors import ModelError, RagError
from rag.locales import say
from rag.process import Process
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.questions import MAX_STANDALONE, find_history, question_problem
from rag.retrieval.retriever import ScopedSearch
from rag.runs.run import (
    Hooks,
    Question,
    Run,
    answer_from_json,
    compress_searches,
    decompress_searches,
    from_json,
    log_problem,
    to_json,
)
from rag.runs.runs import NEW_RUN, ResumeState, Runs
from rag.store.sql.conversation_table import Change, Conversation, Turn, TurnState
from rag.store.sql.database import Database
from rag.text import detect_language, is_chinese, lazy_regex, question_language, strip_citations, terms, truncate
from rag.tracing import CallBudget, Meter, Prices, Span, UsageSnapshot, sum_usages
from rag.types import SAVED, Answer, Citation, Exchange, Notice, Page, Passage, Retrieval, Usage, Wait
from rag.web.url_finder import locate_urls
from rag.web.urls import split_url

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_SUGGESTIONS: Final = 3
MIN_LIKELIHOOD: Final = 0.5
"""Minimum likelihood that the passages answer a proposed question."""
_MAX_QUESTION: Final = 120  # characters of a question
_MAX_HEADING: Final = 80
_MAX_TITLE: Final = 120  # characters of a conversation's title, if not renamed
_HEADING: Final = lazy_regex(r"^[\s\d.、一二三四五六七八九十()（）]*")
_MARKUP: Final = lazy_regex(
    r"^\s*+(?:#{1,6}\s++|[-*+•>]\s++|\d{1,3}[.)、]\s*+)?+(?:\*\*|__)?+(?:(?:Q|问)\d{0,2}[:：.]\s*+)?+"
)
_MIN_WORDS: Final = 3  # "Really?" and "What's next?" mean nothing without the text above them
_LATIN_WORD: Final = lazy_regex(r"[A-Za-z][\w’'-]*")
_QUESTION: Final = lazy_regex(r"[^?？.!。！]{4,}+[?？]")
# Chinese questions need no question mark; English ones do: "Where data lies" is not a question.
_ASKS: Final = lazy_regex(r"[?？]\s*$|怎么|怎样|如何|为什么|为何|什么|多少|哪|能不能|要不要")

Likelihood = Callable[[str, Sequence[Passage]], float]
Save = Callable[[Mapping[str, Any]], object]
_SECONDS: Final = 60.0


async def suggest_questions(
    answer: Answer, reasoner: object, likelihood: Likelihood | None = None, budget: CallBudget | None = None
) -> list[str]:
    """Propose up to three follow-ups.

    `likelihood` returns the likelihood that the passages answer a question, and may block. Raises TimeoutError if this
    takes longer than a minute.
    """
    question, answered = _effective_question(answer), _questions_above_quotes(answer)
    headings = from_headings(question, _find_related(answer), in_context=True)
    related = [one for one in headings if one not in answered]
    return await _choose(answer, related, reasoner, likelihood, budget or CallBudget(1))


async def _choose(
    answer: Answer, headings: Sequence[str], reasoner: object, likelihood: Likelihood | None, budget: CallBudget
) -> list[str]:
    """Return the first questions that pass the checks, from a model if there is one, then from `headings`."""
    if answer.notice and answer.notice.code == "wish_unknown":
        language = "zh" if is_chinese(answer.question) else "en"
        return [say(Notice(f"wish_{place}"), language) for place in ("first", "second", "third")]
    if answer.outcome in ("failed", "conversation") or not answer.passages:
        return []
    question = _effective_question(answer)
    candidates: list[str] = []
    async with asyncio.timeout(_SECONDS):
        if isinstance(reasoner, ChatReasoner):
            from rag.models.calls import count_calls

            try:
                work = partial(reasoner.suggest, question, answer.text, answer.passages)
                candidates = await count_calls(budget, work)
            except ModelError as error:
                log.info("the model proposed no questions to ask next (%s)", error.code)
        candidates = [*candidates, *headings]
        return await asyncio.to_thread(_select, question, candidates, answer.passages, likelihood)


def _effective_question(answer: Answer) -> str:
    return answer.standalone or answer.question


def _questions_above_quotes(answer: Answer) -> set[str]:
    """Return the questions directly above the quotes, as on FAQ pages."""
    questions: set[str] = set()
    for passage in answer.passages:
        for citation in answer.citations:
            if _distance(passage, [citation]) == 0:
                above = passage.text[: max(0, citation.start - passage.start) + 1]
                questions.update(_find_questions(replace(passage, text=above))[-1:])
    return questions


def _find_related(answer: Answer) -> list[Passage]:
    """Return the passages of the pages that `answer` cites, those nearest to a citation first.

    Passages of cited sections come without headings, which the answer already covers.
    """
    sections = {(citation.library, citation.url_hash, citation.section) for citation in answer.citations}
    distances = [(_distance(passage, answer.citations), passage) for passage in answer.passages]
    cited = sorted(((far, one) for far, one in distances if far is not None), key=lambda pair: pair[0])
    return [
        replace(one, section=()) if (one.library, one.url_hash, one.section) in sections else one for _, one in cited
    ]


def _distance(passage: Passage, citations: Sequence[Citation]) -> int | None:
    """Return the number of characters to the nearest citation in the passage's page; None without one."""
    places = [one for one in citations if (one.library, one.url_hash) == (passage.library, passage.url_hash)]
    return min((max(0, passage.start - one.end, one.start - passage.end) for one in places), default=None)


def from_headings(question: str, passages: Sequence[Passage], *, in_context: bool = False) -> list[str]:
    """Return the headings and lines of the passages that are questions in the question's language, in order.

    Unless they are shown `in_context`, below an answer from their page, they must name something.
    """
    language = question_language(question)
    question_terms = set(terms(question))
    questions: list[str] = []
    for passage in passages:
        heading = _HEADING.sub("", passage.section[-1]).strip() if passage.section else ""
        for line in (heading, *_find_questions(passage)):
            if not 2 <= len(line) <= _MAX_HEADING or set(terms(line)) <= question_terms:
                continue
            if line.isascii() and len(line.split()) < _MIN_WORDS:
                continue
            if not (in_context or _names_something(line, passage.title)):
                continue
            if _ASKS.search(line) and detect_language(line) == language:
                questions.append(line if line.endswith(("?", "？")) else line + ("？" if language == "zh" else "?"))
    return list(dict.fromkeys(questions))


def _names_something(question: str, title: str) -> bool:
    """Return whether a question has a word of its page's title or, unless each word is capitalised, a name."""
    asked, titled = ({term.key for term in read_terms(text).terms} for text in (question, title))
    words = _LATIN_WORD.findall(question)[0 if is_chinese(question) else 1 :]
    capitalised = [word for word in words if len(word) > 1 and word[0].isupper()]
    is_title_case = len(capitalised) > len(words) / 2 and not is_chinese(question)
    return bool(asked & titled) or bool(capitalised and not is_title_case)


def _find_questions(passage: Passage) -> list[str]:
    """Return the lines of a passage that consist of one question, as on FAQ pages."""
    lines = [line for line in passage.text.splitlines() if line.strip()]
    bare = (_MARKUP.sub("", line).strip().strip("*_ ") for line in lines[:-1])  # the last line has no answer below it
    return [line for line in bare if _QUESTION.fullmatch(line)]


def _select(
    question: str, candidates: Sequence[str], passages: Sequence[Passage], likelihood: Likelihood | None
) -> list[str]:
    """Return the first three that are new, short, in the right language, and likely to be answered."""
    questions: list[str] = []
    language, seen = question_language(question), {_normalise(question)}
    for candidate in candidates:
        text = " ".join(candidate.split())
        if not text or len(text) > _MAX_QUESTION or _normalise(text) in seen or question_language(text) != language:
            continue
        seen.add(_normalise(text))
        try:
            if likelihood is None or likelihood(text, passages) >= MIN_LIKELIHOOD:
                questions.append(text)
        except RagError as error:
            log.info("a question to ask next could not be tried (%s)", error.code)
        if len(questions) == MAX_SUGGESTIONS:
            break
    return questions


def _normalise(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def questions_about(answer: Answer, reasoner: object, likelihood: Likelihood) -> list[str]:
    """Return up to three questions that the passages of `answer` can answer, from a model if any, then from the pages.

    Blocks as long as the model takes.
    """
    headings = from_headings(_effective_question(answer), answer.passages)
    try:
        return BACKGROUND.wait(_choose(answer, headings, reasoner, likelihood, CallBudget(1)))
    except TimeoutError:
        return []


def propose(
    answer: Answer, reasoner: object, likelihood: Likelihood | None, save: Save, *, prices: Prices | None = None
) -> Future[None]:
    """Start generating follow-ups; `save` is called with them and their cost, in a worker thread."""
    budget = CallBudget(1, meter=Meter(prices or Prices()))

    async def suggest_and_save() -> None:
        work = suggest_questions(answer, reasoner, likelihood, budget)
        (questions,) = await asyncio.gather(work, return_exceptions=True)
        if isinstance(questions, BaseException):
            log_problem("no questions to ask next were found", questions)
            return
        extra = {"suggestions": questions, "suggestion_usage": asdict(budget.meter.usage()) if budget.used else None}
        (problem,) = await asyncio.gather(asyncio.to_thread(save, extra), return_exceptions=True)
        if isinstance(problem, BaseException):
            log_problem("questions to ask next could not be kept", problem)

    return asyncio.run_coroutine_threadsafe(suggest_and_save(), BACKGROUND.loop())


NOTE_REASONER: Final = "wish"
"""The reasoner of the answer to a message that only asks to remember something."""
_REPORTS: Final = frozenset({"save", "remove", "small_talk", "unknown"})
"""Routes of messages that get a report or a reply, not an answer."""
_WORD: Final = lazy_regex(r"\w")
_SENTENCE_ENDS: Final = (".", "!", "?", "。", "！", "？")
_ANSWERS: Final = frozenset({"answered", "caveat", "conversation"})


@dataclass(frozen=True, slots=True)
class PageStamp:
    """The version of a page that an answer was written from."""

    version: int
    text_hash: str
    date: str = ""

    @classmethod
    def of(cls, page: Page) -> PageStamp:
        return cls(page.version, page.text_hash, page.modified or page.published)


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """Everything needed to ask a question in a conversation.

    `settings` is stored with the turn (mode, strategy, model, scope …; JSON values). `stamps` returns the current
    versions of pages by url_hash, `likelihood` the likelihood that passages answer a question. With `suggest`,
    follow-ups are proposed after the answer. `on_saved` is called with the turn's id and the saved answer. `dispatch`
    routes a run, and yields reports about it (JSON values).
    """

    question: Question
    reasoner: Reasoner
    retriever: ScopedSearch
    owner: str = ""
    conversation_id: str = ""
    quoter: ExtractiveReasoner | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    stamps: Callable[[Sequence[str]], Mapping[str, PageStamp]] | None = None
    likelihood: Likelihood | None = None
    suggest: bool = True
    on_saved: Callable[[str, Answer], object] | None = None
    dispatch: Callable[[Run], AsyncIterator[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True)
class TurnHandle:
    conversation_id: str
    turn_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn for display. A running one has a `run_id` to attach to, an interrupted one its text so far.

    `stamps` are the versions of the cited pages; `suggestions` arrive some time after the answer. `searches` is the
    length of `Conversations.searches`. A running turn with `waits` continues when the user replies. `scores` are the
    metrics of a scored answer. `route` describes its routing, empty for a plain question. A `pinned` turn is listed
    above its conversation.
    """

    id: str
    conversation_id: str
    created_at: str
    question: str
    state: TurnState
    run_id: str
    answer: Answer | None
    settings: Mapping[str, Any]
    stamps: Mapping[str, PageStamp]
    suggestions: tuple[str, ...]
    rating: int = 0
    searches: int = 0
    waits: tuple[Wait, ...] = ()
    can_resume: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    route: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the message is a question for the pages."""
        return str(self.route.get("route", "ask")) == "ask"

    @property
    def can_regenerate(self) -> bool:
        """True if its answer is finished and answers a question."""
        is_report = self.route.get("route") in _REPORTS or (
            self.answer is not None and self.answer.reasoner == NOTE_REASONER
        )
        return self.state == "done" and not is_report


class Conversations:
    """All conversations. Thread-safe. `owner` is the signed-in user's id, or "" for shared conversations.

    Methods raise RagError("conversation_unknown") for a conversation that does not exist or belongs to another user.
    """

    def __init__(self, database: Database, runs: Runs, checkpoints: Checkpoints) -> None:
        self._table = database.conversations
        self._changes = database.changes
        self._spans = database.spans
        self._feedback = database.feedback
        self._runs = runs
        self._checkpoints = checkpoints
        self._process = Process()
        self._proposals: set[Future[None]] = set()
        self._requests: dict[str, TurnRequest] = {}  # by running turn; replaced on each reply

    def close(self) -> None:
        """Cancel pending follow-ups, which could not be stored after the database is closed."""
        for proposal in list(self._proposals):
            proposal.cancel()

    def recover(self) -> int:
        """Mark the turns of dead processes as interrupted; return how many. Called once at start."""
        ids = [turn.id for turn in self._table.running() if not self._is_alive(turn)]
        self._table.interrupt(ids)
        return len(ids)

    def ask(self, request: TurnRequest) -> TurnHandle:
        """Start answering in the request's conversation, or in a new one; return immediately.

        Raises RagError("turn_running") while the conversation's last question is being answered.
        """
        conversation_id, turn_id, turns = self._add(
            request.question, request.owner, request.conversation_id, request.settings
        )
        return self._begin(request, conversation_id, turn_id, turns)

    def put(
        self, question: Question, answer: Answer, owner: str, conversation_id: str, settings: Mapping[str, Any]
    ) -> TurnHandle:
        """Store a message with its answer, without a run. Raises like `ask`."""
        conversation_id, turn_id, _ = self._add(question, owner, conversation_id, settings)
        self._table.finish_turn(turn_id, to_json(answer))
        return TurnHandle(conversation_id, turn_id, "")

    def _add(
        self, question: Question, owner: str, conversation_id: str, settings: Mapping[str, Any]
    ) -> tuple[str, str, list[TurnView]]:
        """Add a turn; return the ids of its conversation and itself, and the earlier turns."""
        turns = self.turns(conversation_id, owner) if conversation_id else []
        if turns and turns[-1].state == "running":
            raise RagError("turn_running")
        conversation_id = conversation_id or uuid4().hex
        turn_id = self._table.begin_turn(
            *(conversation_id, question.library, owner, question.text.strip()),
            title=title_of(question.text),
            process=self._process.name,
            extra={"settings": {"mode": question.mode, **settings}, "asked": asdict(question)},
        )
        return conversation_id, turn_id, turns

    def reply(self, turn_id: str, reply: Mapping[str, Any], request: TurnRequest) -> TurnHandle:
        """Resume a turn that waits for the user; `reply` maps the ids of its `waits` to answers (JSON values).

        It continues with the chat model of `request`, that of the replying user, even if its process has ended. Raises
        RagError("turn_not_waiting") if no wait is answered, or another reply was first.
        """
        turn, row = self.turn(turn_id, request.owner), self._table.turn(turn_id, request.owner)
        before = [other for other in self.turns(turn.conversation_id, request.owner) if other.id != turn_id]
        run_id = turn.run_id if self._runs.is_running(turn.run_id) else ""
        has_answer = any(wait.id in reply for wait in turn.waits)
        if row is None or not has_answer or not self._table.resume_turn(turn_id, self._process.name, run_id):
            raise RagError("turn_not_waiting")
        if any(isinstance(value, Mapping) and value.get("web") == "conversation" for value in reply.values()):
            self._table.add_extra(turn_id, {"web_for": turn.conversation_id})
        if run_id:
            self._requests[turn_id] = request
            self._runs.reply(run_id, reply, request.reasoner, request.retriever)
            return TurnHandle(turn.conversation_id, turn_id, run_id)
        spans = self._spans.for_turn(turn_id, request.owner)
        resumed = ResumeState(reply, UsageSnapshot(**row.suspension["spent"]), spans)
        return self._begin(request, turn.conversation_id, turn_id, before, resumed)

    def resume_turn(self, turn_id: str, request: TurnRequest) -> TurnHandle:
        """Resume an interrupted turn from its last step; it must be its conversation's last.

        Raises RagError("turn_not_waiting") if that is not possible, or it was already resumed.
        """
        turn = self.turn(turn_id, request.owner)
        turns = self.turns(turn.conversation_id, request.owner)
        is_possible = turn.can_resume and turns[-1].id == turn_id
        if not is_possible or not self._table.resume_turn(turn_id, self._process.name):
            raise RagError("turn_not_waiting")
        resumed = ResumeState(spans=self._spans.for_turn(turn_id, request.owner), is_interrupted=True)
        return self._begin(request, turn.conversation_id, turn_id, turns[:-1], resumed)

    def question(self, turn_id: str, owner: str = "") -> Question:
        """Return the turn's question as it was asked. Raises RagError("turn_unknown")."""
        row = _require(self._table.turn(turn_id, owner), "turn_unknown")
        return from_json(Question, _require(row.extra.get("asked"), "turn_unknown"))

    def repeat_question(self, turn_id: str, mode: str = "", owner: str = "") -> Question:
        """Return the turn's question to ask it again, in another `mode` if given, with its scope and options.

        It keeps its meaning: the first answer does not become its context. Raises RagError("turn_unknown").
        """
        turn, question = self.turn(turn_id, owner), self.question(turn_id, owner)
        options, answer = question.options, turn.answer
        standalone = options.standalone or (answer.standalone if answer else "")
        if not standalone and not turn.route and not (answer and find_history(answer.steps)):
            standalone = turn.question[:MAX_STANDALONE]
        options = replace(
            options,
            route=options.route if turn.route.get("by") == "person" else "",
            standalone=standalone,
            without=(*options.without, "mode") if mode else options.without,
        )
        before = question.mode if turn.is_plain else "fast"
        return replace(question, text=turn.question, mode=mode or before, options=options)

    def allows_web(self, conversation_id: str, owner: str = "") -> bool:
        """True if the user allowed web searches for this conversation; its branches do not inherit that."""
        turns = self._table.turns(conversation_id, owner) if conversation_id else []
        return any(turn.extra.get("web_for") == conversation_id for turn in turns)

    def ledger(self, conversation_id: str, owner: str = "") -> Sequence[Mapping[str, Any]]:
        """Return the sources of the conversation's last report, as in its trail; empty without one."""
        turns = self._table.turns(conversation_id, owner) if conversation_id else []
        ledgers = (turn.answer.get("trail", {}).get("ledger", ()) for turn in reversed(turns))
        return next(filter(None, ledgers), ())

    def pin_answer(self, turn_id: str, pinned: bool, owner: str = "") -> None:
        """Pin a turn above its conversation, or unpin it. Raises RagError("turn_unknown")."""
        self._table.add_extra(self.turn(turn_id, owner).id, {"pinned": pinned})

    def change(self, turn_id: str, change: Change, owner: str = "") -> None:
        """Store a change to a running turn, which its nodes read at their next step.

        Raises RagError("turn_unknown") for a turn that has ended.
        """
        _require(self._changes.add(turn_id, owner, change), "turn_unknown")

    def _begin(
        self,
        request: TurnRequest,
        conversation_id: str,
        turn_id: str,
        before: Sequence[TurnView],
        resumed: ResumeState = NEW_RUN,
    ) -> TurnHandle:
        self._requests[turn_id] = request
        run_id = self._runs.start(
            request.question,
            reasoner=request.reasoner,
            retriever=request.retriever,
            history=_exchanges(before),
            quoter=request.quoter,
            owner=request.owner,
            thread=conversation_id,
            hooks=Hooks(
                on_answer=lambda answer: self._finish(conversation_id, turn_id, self._requests.pop(turn_id), answer),
                on_text=lambda text: self._table.touch_turn(turn_id, text),
                on_wait=lambda waits, spent: self._table.suspend_turn(
                    turn_id, {"asks": [asdict(wait) for wait in waits], "spent": asdict(spent)}
                ),
                on_spans=lambda spans: self._spans.save(turn_id, spans),
                load_changes=lambda: self._changes.for_turn(turn_id),
                dispatch=partial(self._dispatch, conversation_id, turn_id, request) if request.dispatch else None,
            ),
            resumed=resumed,
        )
        self._table.touch_turn(turn_id, "", run_id=run_id)
        return TurnHandle(conversation_id, turn_id, run_id)

    async def _dispatch(self, conversation_id: str, turn_id: str, request: TurnRequest, run: Run) -> None:
        """Route the run, and store its routing with the turn before the run continues."""
        assert request.dispatch is not None
        async for route in request.dispatch(run):
            extra = {"route": route, "asked": asdict(run.question), "settings": {"mode": run.question.mode}}
            await asyncio.to_thread(self._table.add_extra, turn_id, extra)
            if titles := {row["source"]: row["title"] for row in route.get("saved", ()) if row.get("title")}:
                name = (
                    " · ".join(titles.values()) if route["route"] == "save" else title_of(request.question.text, titles)
                )
                before = title_of(request.question.text)
                await asyncio.to_thread(self._table.rename, conversation_id, request.owner, name, before)
            run.add("route", route)

    def _finish(self, conversation_id: str, turn_id: str, request: TurnRequest, answer: Answer) -> None:
        """Store the answer with the versions of the pages that it cites, then propose follow-ups."""
        hashes = list(dict.fromkeys(citation.url_hash for citation in answer.citations))
        stamps = request.stamps(hashes) if request.stamps and hashes else {}
        versions = {url_hash: asdict(stamp) for url_hash, stamp in stamps.items()}
        extra = {"stamps": versions, "searches": len(answer.searches), **({"unread": True} if answer.trail else {})}
        if not self._table.finish_turn(turn_id, to_json(answer), extra, searches=compress_searches(answer.searches)):
            self._checkpoints.delete(conversation_id)  # deleted while being answered: leave nothing behind
            return
        if request.on_saved:
            request.on_saved(turn_id, answer)
        if request.suggest:
            save = partial(self._table.add_extra, turn_id)
            prices = request.question.options.prices
            proposal = propose(answer, request.reasoner, request.likelihood, save, prices=prices)
            self._proposals.add(proposal)
            proposal.add_done_callback(self._proposals.discard)

    def conversations(self, library: str, owner: str = "", search: str = "", limit: int = 200) -> list[Conversation]:
        """Return the owner's conversations in the library, latest first; `search` matches questions and answers."""
        return self._table.conversations(library, owner, search, limit)

    def branches(self, conversation_id: str, owner: str = "") -> list[Conversation]:
        return self._table.branches(conversation_id, owner)

    def unread(self, library: str, owner: str = "") -> list[str]:
        """Return the conversations with a finished report that was not opened since."""
        return self._table.unread(library, owner)

    def mark_read(self, conversation_id: str, owner: str = "") -> None:
        """Record that the conversation's contents have been read."""
        self._table.mark_read(conversation_id, owner)

    def conversation(self, conversation_id: str, owner: str = "") -> Conversation:
        return _require(self._table.conversation(conversation_id, owner))

    def turns(self, conversation_id: str, owner: str = "") -> list[TurnView]:
        """Return the turns, oldest first. One whose process has died is marked as interrupted."""
        self.conversation(conversation_id, owner)
        return [self._view(turn) for turn in self._table.turns(conversation_id, owner)]

    def last_turn(self, conversation_id: str, owner: str = "") -> TurnView | None:
        """Return the last turn without its answer, for polling."""
        turn = self._table.last_turn(conversation_id, owner)
        return self._view(replace(turn, answer={})) if turn else None

    def turn(self, turn_id: str, owner: str = "") -> TurnView:
        return self._view(_require(self._table.turn(turn_id, owner), "turn_unknown"))

    def searches(self, turn_id: str, owner: str = "") -> tuple[Retrieval, ...]:
        """Return how the passages of a turn's answer were found; candidates' texts are shortened."""
        return decompress_searches(self._table.searches(turn_id, owner))

    def spans(self, turn_id: str, owner: str = "") -> list[Span]:
        """Return the trace of a turn, which is stored for some weeks."""
        return self._spans.for_turn(turn_id, owner)

    def state(self, conversation_id: str, namespace: str, owner: str = "") -> dict[str, Any]:
        """Return the final values of a graph within one of its runs, by its `checkpoint_ns`; empty if not stored."""
        self.conversation(conversation_id, owner)
        return self._checkpoints.values(conversation_id, namespace) if namespace else {}

    def find_citing_turns(self, library: str, url_hash: str, owner: str = "") -> list[TurnView]:
        """Return the owner's turns whose answers cite the page, latest first."""
        return [self._view(turn) for turn in self._table.find_citing_turns(library, owner, url_hash)]

    def most_cited(self, library: str, owner: str = "") -> list[str]:
        """Return the hashes of the pages that the owner's latest answers cite most."""
        return self._table.most_cited(library, owner)

    def rename(self, conversation_id: str, title: str, owner: str = "") -> None:
        _require(self._table.rename(conversation_id, owner, " ".join(title.split())))

    def pin(self, conversation_id: str, pinned: bool, owner: str = "") -> None:
        """Pin a conversation above the others, or unpin it. Raises RagError if it does not exist."""
        _require(self._table.pin(conversation_id, owner, pinned))

    def share(self, conversation_id: str, owner: str = "") -> str:
        """Return the conversation's link, which `find_by_link` resolves; create it if it has none."""
        link = self.conversation(conversation_id, owner).link or secrets.token_urlsafe(16)
        self._table.set_link(conversation_id, owner, link)
        return link

    def unshare(self, conversation_id: str, owner: str = "") -> None:
        """Disable its link."""
        _require(self._table.set_link(conversation_id, owner, ""))

    def find_by_link(self, link: str) -> tuple[Conversation, list[TurnView]]:
        """Return a linked conversation and its answered turns, for users who may read all `list_link_libraries`."""
        conversation = _require(self._table.find_by_link(link))
        turns = [self._view(turn) for turn in self._table.turns(conversation.id, conversation.owner)]
        return conversation, [turn for turn in turns if turn.answer is not None]

    def list_link_libraries(self, link: str) -> list[str]:
        """Return the libraries that the answers of a linked conversation were written from."""
        conversation, turns = self.find_by_link(link)
        answer_libraries = {citation.library for turn in turns if turn.answer for citation in turn.answer.citations}
        scope_libraries = {name for turn in turns for name in turn.settings.get("scope", {}).get("libraries", ())}
        return sorted({conversation.library, *answer_libraries, *scope_libraries} - {""})

    def delete(self, conversation_id: str, owner: str = "") -> None:
        """Permanently delete a conversation with its turns, feedback and checkpoints; cancel its runs."""
        for turn in self.turns(conversation_id, owner):
            if turn.state == "running" and self._runs.is_running(turn.run_id):
                self._runs.cancel(turn.run_id)
        self._table.delete(conversation_id, owner)
        self._checkpoints.delete(conversation_id)

    def delete_checkpoints(self, library: str) -> None:
        """Delete the checkpoints of all conversations in a library before it is permanently deleted."""
        for conversation_id in self._table.ids_in_library(library):
            self._checkpoints.delete(conversation_id)

    def branch(self, conversation_id: str, turn_id: str, owner: str = "", *, including: bool = True) -> str:
        """Create a conversation that continues after this turn, or before it unless `including`; return its id.

        The turns are copied; the model's memory is rebuilt from them at the first question.
        """
        source = self.conversation(conversation_id, owner)
        turns = self._table.turns(conversation_id, owner)
        place = next((at for at, turn in enumerate(turns) if turn.id == turn_id), None)
        if place is None:
            raise RagError("turn_unknown")
        selected = [turn for turn in turns[: place + including] if turn.state != "running"]
        return self._table.branch(source, selected, source.title, turn_id)

    def usage(self, conversation_id: str, owner: str = "") -> Usage:
        """Return the total usage of its answers, including proposed questions."""
        self.conversation(conversation_id, owner)
        turns = self._table.turns(conversation_id, owner)
        answers = [answer_from_json(turn.answer).usage for turn in turns if turn.answer]
        asides = [Usage(**turn.extra["suggestion_usage"]) for turn in turns if turn.extra.get("suggestion_usage")]
        return sum_usages([*answers, *asides])

    def _view(self, turn: Turn) -> TurnView:
        if turn.state == "running" and not self._is_alive(turn):
            self._table.interrupt([turn.id])
            turn = self._table.turn(turn.id, turn.owner) or turn  # it may have ended since it was read
        extra = turn.extra
        return TurnView(
            id=turn.id,
            conversation_id=turn.conversation_id,
            created_at=turn.created_at,
            question=turn.question,
            state=turn.state,
            run_id=turn.run_id,
            answer=_answer_of(turn),
            settings=extra.get("settings", {}),
            stamps={key: PageStamp(**stamp) for key, stamp in extra.get("stamps", {}).items()},
            suggestions=tuple(extra.get("suggestions", ())),
            rating=self._feedback.rating(turn.id, turn.owner),
            searches=extra.get("searches", 0),
            waits=tuple(Wait(**wait) for wait in turn.suspension.get("asks", ())),
            scores=extra.get("scores", {}),
            route=extra.get("route", {}),
            pinned=bool(extra.get("pinned")),
            can_resume=turn.state == "interrupted" and self._runs.can_resume(_mode_of(turn)),
        )

    def _is_alive(self, turn: Turn) -> bool:
        if turn.suspension:
            return True
        if turn.process == self._process.name:
            return not turn.run_id or self._runs.is_running(turn.run_id)
        return self._process.may_be_alive(turn.process, turn.seen_at)


def _require(value: T | None, code: str = "conversation_unknown") -> T:
    """Return what a table returned; raise RagError if it is nothing: missing, or another user's."""
    if not value:
        raise RagError(code)
    return value


def _answer_of(turn: Turn) -> Answer | None:
    """Return the stored answer; for one interrupted by the end of its process, its text so far.

    The citation marks of such text are unchecked, so they are removed.
    """
    if turn.answer:
        return answer_from_json(turn.answer)
    if turn.state != "interrupted":
        return None
    text = strip_citations(turn.text).strip()
    return Answer(
        turn.question, _mode_of(turn), "caveat" if text else "failed", text, notice=Notice("turn_interrupted")
    )


def _mode_of(turn: Turn) -> str:
    return str(turn.extra.get("settings", {}).get("mode", "fast"))


def _exchanges(turns: Sequence[TurnView]) -> list[Exchange]:
    """Return the earlier exchanges, for a conversation that the checkpointer does not know.

    Questions without an answer are included, since the next may refer to them; messages that only save are not.
    """
    exchanges = []
    for turn in turns:
        answer, routing = turn.answer, turn.route
        if answer is None or question_problem(answer.question) or answer.reasoner == NOTE_REASONER:
            continue
        has_answer = answer.mode != "summary" or answer.outcome in _ANSWERS
        has_tool = answer.mode == "tool" and routing.get("route") != "web"
        aside = answer.mode in ("save", "remove") or not has_answer or has_tool
        text = answer.text if answer.outcome in _ANSWERS else ""
        added = [row["url_hash"] for row in routing.get("saved", ()) if row["status"] in SAVED]
        pages = tuple(dict.fromkeys(citation.url_hash for citation in answer.citations)) or tuple(added)
        exchanges.append(Exchange(answer.question, text, answer.standalone, aside, pages))
    return exchanges


def title_of(message: str, titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the title of a conversation that begins with `message`: a link becomes its page's title, or its site.

    Links before the first word or after a sentence follow the text. `titles` are the pages' titles by link.
    """
    text, names, end, is_apart = "", list[str](), 0, True
    for start, stop, address in locate_urls(message):
        before, name = message[end:start], titles.get(address) or split_url(address).hostname or address
        is_apart = before.rstrip().endswith(_SENTENCE_ENDS) or (is_apart and not _WORD.search(before))
        text += f"{before} " if is_apart else before + name
        names += [name] if is_apart else []
        end = stop
    text = " ".join((text + message[end:]).split())
    return truncate(" · ".join(dict.fromkeys([text, *names] if _WORD.search(text) or not names else names)), _MAX_TITLE)


def find_outdated(turn: TurnView, now: Mapping[str, PageStamp]) -> dict[str, str]:
    """Return the pages cited by the turn that are `newer` now or `gone`, by url_hash."""
    changes = {}
    for url_hash, stamp in turn.stamps.items():
        current = now.get(url_hash)
        if current is None:
            changes[url_hash] = "gone"
        elif current.text_hash != stamp.text_hash:
            changes[url_hash] = "newer"
    return changes
