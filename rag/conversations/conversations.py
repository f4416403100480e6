"""Conversations: asked, kept, listed, continued, branched, removed. Every read is the owner's alone."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

from rag.conversations.checkpoints import Checkpoints
from rag.conversations.followups import Likely, propose
from rag.errors import RagError
from rag.ingest.paste import located_urls
from rag.models.usage import Spent, sum_of
from rag.process import Process
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.history import MAX_STANDALONE, searched_with
from rag.reasoning.questions import question_problem
from rag.reasoning.reasoner import Reasoner
from rag.retrieval.scoped_search import ScopedSearch
from rag.runs.options import Question
from rag.runs.run import Hooks, Run
from rag.runs.runs import FRESH, Resumed, Runs
from rag.runs.serialization import answer_from, compress_searches, decompress_searches, from_json, to_json
from rag.store.sql.conversation_table import Conversation, Turn, TurnState
from rag.store.sql.database import Change, Database
from rag.text import unmarked
from rag.tracing import Span
from rag.types import Answer, Exchange, Notice, Page, Retrieval, Usage, Wait
from rag.web.url_key import split_url

log = logging.getLogger(__name__)

WISH: Final = "wish"
"""The reasoner of an answer to a message that asks nothing, but that something be remembered."""
_REPORTS: Final = frozenset({"save", "remove", "small_talk", "unknown"})
"""Routes of messages that get a report or a reply, not an answer."""
_WORD: Final = re.compile(r"\w")
_SPOKEN: Final = frozenset({"answered", "caveat", "conversation"})


@dataclass(frozen=True, slots=True)
class PageStamp:
    """Which text of a page an answer was written from."""

    version: int
    text_hash: str
    date: str = ""

    @classmethod
    def of(cls, page: Page) -> PageStamp:
        return cls(page.version, page.text_hash, page.modified or page.published)


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """Everything a question of a conversation is asked with.

    `settings` is kept with the turn (mode, strategy, model, scope …; JSON values). `stamps` tells which
    versions of pages (by url_hash) are in the library now; `likely` how likely passages answer a
    question. `suggest` proposes further questions once the answer is there; `kept` is told of it, with its turn's id.
    `dispatch` sets a run on the way that its message goes, and tells of it (JSON values).
    """

    question: Question
    reasoner: Reasoner
    retriever: ScopedSearch
    owner: str = ""
    conversation_id: str = ""
    quoter: ExtractiveReasoner | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    stamps: Callable[[Sequence[str]], Mapping[str, PageStamp]] | None = None
    likely: Likely | None = None
    suggest: bool = True
    kept: Callable[[str, Answer], object] | None = None
    dispatch: Callable[[Run], AsyncIterator[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True)
class TurnHandle:
    conversation_id: str
    turn_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as it is shown. A running one has a `run_id` to attach to, an interrupted one what it had written.

    `stamps` are the pages of its citations as they were; `suggestions` come some time after the answer.
    `searches` is how many `Conversations.searches` knows. A running one with `waits` goes on at a person's reply.
    `scores` are the metrics of an answer that was scored. `route` is what was told of its
    way, empty for a plain question. A `pinned` one is listed above its conversation.
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
    can_go_on: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    route: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the message is a question for the pages."""
        return str(self.route.get("route", "ask")) == "ask"

    @property
    def can_regenerate(self) -> bool:
        """Whether its answer is finished, and answers a question."""
        report = self.route.get("route") in _REPORTS or (self.answer is not None and self.answer.reasoner == WISH)
        return self.state == "done" and not report


class Conversations:
    """Safe to share between threads. `owner` is the signed-in person's id, or empty for what all share.

    Methods raise RagError("conversation_unknown") for what is not there or somebody else's.
    """

    def __init__(self, database: Database, runs: Runs, checkpoints: Checkpoints) -> None:
        self._table = database.conversations
        self._changes = database.changes
        self._spans = database.spans
        self._feedback = database.feedback
        self._runs = runs
        self._checkpoints = checkpoints
        self._process = Process()
        self._asides: set[Future[None]] = set()
        self._askings: dict[str, TurnRequest] = {}  # by turn, of those that go on: whoever replied last

    def close(self) -> None:
        """Give up what follows answers: once the database is closed, none of it could be kept."""
        for aside in list(self._asides):
            aside.cancel()

    def recover(self) -> int:
        """Mark the turns of processes that are gone; returns how many. Called once at start."""
        dead = [turn.id for turn in self._table.running() if not self._is_alive(turn)]
        self._table.interrupt(dead)
        return len(dead)

    def ask(self, asking: TurnRequest) -> TurnHandle:
        """Begin to answer, in a new conversation or the one of `conversation_id`; returns at once.

        Raises RagError("turn_running") while the conversation's last question is being answered.
        """
        conversation_id, turn_id, turns = self._add(
            asking.question, asking.owner, asking.conversation_id, asking.settings
        )
        return self._begin(asking, conversation_id, turn_id, turns)

    def put(
        self, question: Question, answer: Answer, owner: str, conversation_id: str, settings: Mapping[str, Any]
    ) -> TurnHandle:
        """Keep a message whose answer is there already; no run makes it. Raises as `ask` does."""
        conversation_id, turn_id, _ = self._add(question, owner, conversation_id, settings)
        self._table.finish_turn(turn_id, to_json(answer))
        return TurnHandle(conversation_id, turn_id, "")

    def _add(
        self, question: Question, owner: str, conversation_id: str, settings: Mapping[str, Any]
    ) -> tuple[str, str, list[TurnView]]:
        """Add a turn; returns the ids of its conversation and its own, and the turns before it."""
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

    def reply(self, turn_id: str, reply: Mapping[str, Any], asking: TurnRequest) -> TurnHandle:
        """Go on with a turn that waits for a person: an answer (JSON values) to each of its `waits`, by their ids.

        It goes on with the model of `asking`, which is whoever's replies, also where its process has ended meanwhile.
        Raises RagError("turn_not_waiting") where none of them is answered, or somebody else was first.
        """
        turn, kept = self.turn(turn_id, asking.owner), self._table.turn(turn_id, asking.owner)
        before = [one for one in self.turns(turn.conversation_id, asking.owner) if one.id != turn_id]
        here = turn.run_id if self._runs.is_running(turn.run_id) else ""
        answered = any(wait.id in reply for wait in turn.waits)
        if kept is None or not answered or not self._table.take_up(turn_id, self._process.name, here):
            raise RagError("turn_not_waiting")
        if any(isinstance(said, Mapping) and said.get("web") == "conversation" for said in reply.values()):
            self._table.add_extra(turn_id, {"web_for": turn.conversation_id})
        if here:
            self._askings[turn_id] = asking
            self._runs.reply(here, reply, asking.reasoner, asking.retriever)
            return TurnHandle(turn.conversation_id, turn_id, here)
        spans = self._spans.of_turn(turn_id, asking.owner)
        resumed = Resumed(reply, Spent(**kept.waits["spent"]), spans)
        return self._begin(asking, turn.conversation_id, turn_id, before, resumed)

    def go_on(self, turn_id: str, asking: TurnRequest) -> TurnHandle:
        """Go on with a turn that was cut off, from its last step; it must be its conversation's last.

        Raises RagError("turn_not_waiting") for one that cannot, or that somebody else took up.
        """
        turn = self.turn(turn_id, asking.owner)
        turns = self.turns(turn.conversation_id, asking.owner)
        possible = turn.can_go_on and turns[-1].id == turn_id
        if not possible or not self._table.take_up(turn_id, self._process.name):
            raise RagError("turn_not_waiting")
        resumed = Resumed(spans=self._spans.of_turn(turn_id, asking.owner), cut_off=True)
        return self._begin(asking, turn.conversation_id, turn_id, turns[:-1], resumed)

    def question(self, turn_id: str, owner: str = "") -> Question:
        """What the turn was asked with. Raises RagError("turn_unknown")."""
        found = self._table.turn(turn_id, owner)
        if found is None or "asked" not in found.extra:
            raise RagError("turn_unknown")
        return from_json(Question, found.extra["asked"])

    def again(self, turn_id: str, mode: str = "", owner: str = "") -> Question:
        """Return the turn's question to ask it once more, in another `mode` if given, with its scope and options.

        It means what it meant then: its first answer is no context for it. Raises RagError("turn_unknown").
        """
        turn, asked = self.turn(turn_id, owner), self.question(turn_id, owner)
        options, answer = asked.options, turn.answer
        standalone = options.standalone or (answer.standalone if answer else "")
        if not standalone and not turn.route and not (answer and searched_with(answer.steps)):
            standalone = turn.question[:MAX_STANDALONE]
        options = replace(
            options,
            route=options.route if turn.route.get("by") == "person" else "",
            standalone=standalone,
            without=(*options.without, "mode") if mode else options.without,
        )
        before = asked.mode if turn.is_plain else "fast"
        return replace(asked, text=turn.question, mode=mode or before, options=options)

    def lets_web(self, conversation_id: str, owner: str = "") -> bool:
        """Whether the person let the questions of this very conversation go to the web; not those of its branches."""
        turns = self._table.turns(conversation_id, owner) if conversation_id else []
        return any(turn.extra.get("web_for") == conversation_id for turn in turns)

    def ledger(self, conversation_id: str, owner: str = "") -> Sequence[Mapping[str, Any]]:
        """What the conversation's last report was written from, as its trail has it; empty without one."""
        turns = self._table.turns(conversation_id, owner) if conversation_id else []
        kept = (turn.answer.get("trail", {}).get("ledger", ()) for turn in reversed(turns))
        return next(filter(None, kept), ())

    def pin_answer(self, turn_id: str, pinned: bool, owner: str = "") -> None:
        """List a turn above its conversation, or no longer. Raises RagError("turn_unknown")."""
        self._table.add_extra(self.turn(turn_id, owner).id, {"pinned": pinned})

    def change(self, turn_id: str, change: Change, owner: str = "") -> None:
        """Change something of a run that goes on; its nodes read it when they are next at work.

        Raises RagError("turn_unknown") for a turn that has ended.
        """
        if not self._changes.add(turn_id, owner, change):
            raise RagError("turn_unknown")

    def _begin(
        self,
        asking: TurnRequest,
        conversation_id: str,
        turn_id: str,
        before: Sequence[TurnView],
        resumed: Resumed = FRESH,
    ) -> TurnHandle:
        self._askings[turn_id] = asking
        run_id = self._runs.start(
            asking.question,
            reasoner=asking.reasoner,
            retriever=asking.retriever,
            history=_exchanges(before),
            quoter=asking.quoter,
            owner=asking.owner,
            thread=conversation_id,
            hooks=Hooks(
                done=lambda answer: self._finish(conversation_id, turn_id, self._askings.pop(turn_id), answer),
                text=lambda text: self._table.touch_turn(turn_id, text),
                waits=lambda waits, spent: self._table.put_aside(turn_id, _aside(waits, spent)),
                spans=lambda spans: self._spans.save(turn_id, spans),
                changes=lambda: self._changes.of_turn(turn_id),
                dispatch=partial(self._dispatch, conversation_id, turn_id, asking) if asking.dispatch else None,
            ),
            resumed=resumed,
        )
        self._table.touch_turn(turn_id, "", run_id=run_id)
        return TurnHandle(conversation_id, turn_id, run_id)

    async def _dispatch(self, conversation_id: str, turn_id: str, asking: TurnRequest, run: Run) -> None:
        """Set the run on its way; what is told of that is kept with the turn before the run goes on."""
        assert asking.dispatch is not None
        async for told in asking.dispatch(run):
            kept = {"route": told, "asked": asdict(run.question), "settings": {"mode": run.question.mode}}
            await asyncio.to_thread(self._table.add_extra, turn_id, kept)
            if titles := {row["source"]: row["title"] for row in told.get("saved", ()) if row.get("title")}:
                name = (
                    " · ".join(titles.values()) if told["route"] == "save" else title_of(asking.question.text, titles)
                )
                before = title_of(asking.question.text)
                await asyncio.to_thread(self._table.rename, conversation_id, asking.owner, name, before)
            run.add("route", told)

    def _finish(self, conversation_id: str, turn_id: str, asking: TurnRequest, answer: Answer) -> None:
        """Store the answer, with the versions of the pages that it cites; then propose what to ask next."""
        hashes = list(dict.fromkeys(citation.url_hash for citation in answer.citations))
        stamps = asking.stamps(hashes) if asking.stamps and hashes else {}
        kept = {url_hash: asdict(stamp) for url_hash, stamp in stamps.items()}
        extra = {"stamps": kept, "searches": len(answer.searches), **({"unread": True} if answer.trail else {})}
        if not self._table.finish_turn(turn_id, to_json(answer), extra, searches=compress_searches(answer.searches)):
            self._checkpoints.forget(conversation_id)  # removed while it was answered: nothing of it stays
            return
        if asking.kept:
            asking.kept(turn_id, answer)
        if asking.suggest:
            prices = asking.question.options.prices

            def keep(extra: Mapping[str, Any]) -> None:
                self._table.add_extra(turn_id, extra)

            aside = propose(answer, asking.reasoner, asking.likely, keep, prices=prices)
            self._asides.add(aside)
            aside.add_done_callback(self._asides.discard)

    def conversations(self, library: str, owner: str = "", search: str = "", limit: int = 200) -> list[Conversation]:
        """The owner's conversations in the library, latest first; `search` looks into questions and answers."""
        return self._table.conversations(library, owner, search, limit)

    def branches(self, conversation_id: str, owner: str = "") -> list[Conversation]:
        """The conversations that go on from a question of this one, asked differently."""
        return self._table.branches(conversation_id, owner)

    def unread(self, library: str, owner: str = "") -> list[str]:
        """The conversations with a report that was finished and not looked at since."""
        return self._table.unread(library, owner)

    def opened(self, conversation_id: str, owner: str = "") -> None:
        """What the conversation holds has been looked at."""
        self._table.opened(conversation_id, owner)

    def conversation(self, conversation_id: str, owner: str = "") -> Conversation:
        found = self._table.conversation(conversation_id, owner)
        if found is None:
            raise RagError("conversation_unknown")
        return found

    def turns(self, conversation_id: str, owner: str = "") -> list[TurnView]:
        """The turns, oldest first. One whose process is gone is marked as interrupted."""
        self.conversation(conversation_id, owner)
        return [self._view(turn) for turn in self._table.turns(conversation_id, owner)]

    def newest(self, conversation_id: str, owner: str = "") -> TurnView | None:
        """The last turn without its answer, for whoever looks often whether there is another, or it has ended."""
        turn = self._table.last_turn(conversation_id, owner)
        return self._view(replace(turn, answer={})) if turn else None

    def turn(self, turn_id: str, owner: str = "") -> TurnView:
        found = self._table.turn(turn_id, owner)
        if found is None:
            raise RagError("turn_unknown")
        return self._view(found)

    def searches(self, turn_id: str, owner: str = "") -> tuple[Retrieval, ...]:
        """How the passages of a turn's answer were found; of the candidates' texts the openings."""
        return decompress_searches(self._table.searches(turn_id, owner))

    def spans(self, turn_id: str, owner: str = "") -> list[Span]:
        """What happened while a turn was answered, for some weeks."""
        return self._spans.of_turn(turn_id, owner)

    def state(self, conversation_id: str, namespace: str, owner: str = "") -> dict[str, Any]:
        """What a graph within one of its runs knew in the end, by its `checkpoint_ns`; nothing where it is not kept."""
        self.conversation(conversation_id, owner)
        return self._checkpoints.values(conversation_id, namespace) if namespace else {}

    def cited(self, library: str, url_hash: str, owner: str = "") -> list[TurnView]:
        """The owner's turns whose answers cite the page, latest first."""
        return [self._view(turn) for turn in self._table.cited(library, owner, url_hash)]

    def most_cited(self, library: str, owner: str = "") -> list[str]:
        """Hashes of the pages that the owner's latest answers cite most."""
        return self._table.most_cited(library, owner)

    def rename(self, conversation_id: str, title: str, owner: str = "") -> None:
        if not self._table.rename(conversation_id, owner, " ".join(title.split())):
            raise RagError("conversation_unknown")

    def pin(self, conversation_id: str, pinned: bool, owner: str = "") -> None:
        """Keep it above the others, or no longer. Raises RagError where it is not there."""
        if not self._table.pin(conversation_id, owner, pinned):
            raise RagError("conversation_unknown")

    def share(self, conversation_id: str, owner: str = "") -> str:
        """Return the conversation's link, by which `linked` finds it."""
        link = self.conversation(conversation_id, owner).link or secrets.token_urlsafe(16)
        self._table.set_link(conversation_id, owner, link)
        return link

    def unshare(self, conversation_id: str, owner: str = "") -> None:
        """Make its link lead nowhere."""
        if not self._table.set_link(conversation_id, owner, ""):
            raise RagError("conversation_unknown")

    def linked(self, link: str) -> tuple[Conversation, list[TurnView]]:
        """The conversation with this link and its answered turns, for whoever may read all `linked_libraries`."""
        found = self._table.linked(link)
        if found is None:
            raise RagError("conversation_unknown")
        turns = [self._view(turn) for turn in self._table.turns(found.id, found.owner)]
        return found, [turn for turn in turns if turn.answer is not None]

    def linked_libraries(self, link: str) -> list[str]:
        """The libraries that the answers of a linked conversation were written from."""
        conversation, turns = self.linked(link)
        cited = {one.library for turn in turns if turn.answer for one in turn.answer.citations}
        searched = {name for turn in turns for name in turn.settings.get("scope", {}).get("libraries", ())}
        return sorted({conversation.library, *cited, *searched} - {""})

    def delete(self, conversation_id: str, owner: str = "") -> None:
        """Remove it for good: turns, feedback, checkpoints. What runs in it is stopped."""
        for turn in self.turns(conversation_id, owner):
            if turn.state == "running" and self._runs.is_running(turn.run_id):
                self._runs.cancel(turn.run_id)
        self._table.delete(conversation_id, owner)
        self._checkpoints.forget(conversation_id)

    def forget_memories(self, library: str) -> None:
        """Remove the checkpoints of all conversations in a library that is about to go for good."""
        for conversation_id in self._table.of_library(library):
            self._checkpoints.forget(conversation_id)

    def branch(self, conversation_id: str, turn_id: str, owner: str = "", *, including: bool = True) -> str:
        """Begin another conversation that goes on from this turn, or from before it; returns its id.

        The turns are copied; what the model remembers is made anew from them at its first question.
        """
        source = self.conversation(conversation_id, owner)
        turns = self._table.turns(conversation_id, owner)
        place = next((at for at, turn in enumerate(turns) if turn.id == turn_id), None)
        if place is None:
            raise RagError("turn_unknown")
        kept = [turn for turn in turns[: place + including] if turn.state != "running"]
        return self._table.branch(source, kept, source.title, turn_id)

    def usage(self, conversation_id: str, owner: str = "") -> Usage:
        """What all its answers used together, the proposed questions included."""
        self.conversation(conversation_id, owner)
        turns = self._table.turns(conversation_id, owner)
        answers = [answer_from(turn.answer).usage for turn in turns if turn.answer]
        asides = [Usage(**turn.extra["suggestion_usage"]) for turn in turns if turn.extra.get("suggestion_usage")]
        return sum_of([*answers, *asides])

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
            answer=_answer(turn),
            settings=extra.get("settings", {}),
            stamps={key: PageStamp(**kept) for key, kept in extra.get("stamps", {}).items()},
            suggestions=tuple(extra.get("suggestions", ())),
            rating=self._feedback.rating_of(turn.id, turn.owner),
            searches=extra.get("searches", 0),
            waits=tuple(Wait(**one) for one in turn.waits.get("asks", ())),
            scores=extra.get("scores", {}),
            route=extra.get("route", {}),
            pinned=bool(extra.get("pinned")),
            can_go_on=turn.state == "interrupted" and self._runs.can_go_on(_mode_of(turn)),
        )

    def _is_alive(self, turn: Turn) -> bool:
        if turn.waits:
            return True
        if turn.process == self._process.name:
            return not turn.run_id or self._runs.is_running(turn.run_id)
        return self._process.may_be_alive(turn.process, turn.seen_at)


def _aside(waits: Sequence[Wait], spent: Spent) -> dict[str, Any]:
    return {"asks": [asdict(wait) for wait in waits], "spent": asdict(spent)}


def _answer(turn: Turn) -> Answer | None:
    """The stored answer; for one that was cut off by the end of its process, what it had written.

    Nothing checked the marks of such a text, so they are not shown.
    """
    if turn.answer:
        return answer_from(turn.answer)
    if turn.state != "interrupted":
        return None
    text = unmarked(turn.text).strip()
    return Answer(
        turn.question, _mode_of(turn), "caveat" if text else "failed", text, notice=Notice("turn_interrupted")
    )


def _mode_of(turn: Turn) -> str:
    return str(turn.extra.get("settings", {}).get("mode", "fast"))


def _exchanges(turns: Sequence[TurnView]) -> list[Exchange]:
    """What was said, for a conversation of which the checkpointer knows nothing.

    What nothing answered stays as a question: the next may point back to it. What was only saved asked nothing.
    """
    told = [(turn.answer, str(turn.route.get("route", ""))) for turn in turns if turn.answer is not None]
    asked = [one for one in told if not question_problem(one[0].question) and one[0].reasoner != WISH]
    return [_exchange(*one) for one in asked]


def _exchange(answer: Answer, route: str) -> Exchange:
    found = answer.mode != "summary" or answer.outcome in _SPOKEN
    aside = answer.mode in ("save", "remove") or not found or (answer.mode == "tool" and route != "web")
    return Exchange(answer.question, answer.text if answer.outcome in _SPOKEN else "", answer.standalone, aside)


def title_of(message: str, titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the title of a conversation that begins with `message`: a link is named by its page's title, or its site.

    `titles` are the pages' titles by link.
    """
    names, between, end = [], [], 0
    for start, stop, address in located_urls(message):
        names.append(titles.get(address) or split_url(address).hostname or address)
        between.append(message[end:start])
        end = stop
    between.append(message[end:])
    if names and not any(_WORD.search(text) for text in between):
        return " · ".join(dict.fromkeys(names))
    pieces = (text + name for text, name in zip_longest(between, names, fillvalue=""))
    return " ".join("".join(pieces).split())


def is_outdated(turn: TurnView, now: Mapping[str, PageStamp]) -> dict[str, str]:
    """Of the pages that the turn cites, those that are `newer` now or `gone`, by url_hash."""
    found = {}
    for url_hash, stamp in turn.stamps.items():
        current = now.get(url_hash)
        if current is None:
            found[url_hash] = "gone"
        elif current.text_hash != stamp.text_hash:
            found[url_hash] = "newer"
    return found
