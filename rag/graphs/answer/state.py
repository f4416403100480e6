"""State of a run of the answer loop: plain data only, so that saved states stay small and readable by later versions.

The conversation consists of a summary of older messages, and the recent ones with their standalone versions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import ConversationState, blank_fields, summary_messages
from rag.models.usage import CallBudget
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.history import Memory, exchanges_of, turns_of
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord
from rag.types import Passage, RunMode

MAX_REWRITES = 3
MAX_TURN = 2_000  # characters of one message in a request
MAX_PASSAGES = 10
UNGRADED = "ungraded"

Change = Any  # values that langgraph accepts for `messages`: messages, and removals, which its type omits
Result = tuple["LoopState", dict[str, Any]]
"""A state update, and the step's decision for the trace."""


class PassageRef(TypedDict):
    """A passage in the state: its ranks and scores in the search, without its text."""

    id: str
    score: float
    ranks: dict[str, int]
    scores: dict[str, float]


class StepRecord(TypedDict):
    node: str
    ms: float
    detail: dict[str, Any]


class LoopState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets at entry.

    `passages` are the passages for the answer, in context order; `found` are the results of all searches of this
    question, `graded` the ids of graded passages, `relevant` is how many the last grading passed; `query` is the next
    search of a rewrite; `exhausted` is whether no query is left; `broken` is why the model failed, after which it is
    not called again. `standalone` is the complete question, if a model or the user provided one; else `before` are
    earlier questions whose words are also searched for. `summary` covers everything before the oldest message.
    """

    before: list[str]
    run_mode: RunMode
    query: str
    passages: list[PassageRef]
    found: list[PassageRef]
    graded: list[str]
    relevant: int
    exhausted: bool
    broken: NoticeRecord | None
    loop_step: int
    tried: list[str]
    steps: list[StepRecord]
    composed: str


@dataclass(frozen=True, slots=True)
class LoopContext:
    """Runtime context of a run; never saved. `search`, for a query and earlier questions, and `passages_of` block and
    are called in threads."""

    reasoner: Reasoner
    search: Callable[[str, Sequence[str]], Sequence[Passage]]
    passages_of: Callable[[Sequence[str]], Sequence[Passage]]
    budget: CallBudget
    answerable: Callable[[], float] = lambda: 1.0  # of the searches so far, see rag.retrieval.answerable
    is_sure: Callable[[], bool] = lambda: False  # whether one of them surely found the answer
    is_fast: bool = False
    condenser: ChatReasoner | None = None
    quoter: ExtractiveReasoner | None = None
    verifiers: Sequence[Verifier] = ()  # best first; rules apply if none works
    options: RunOptions = field(default_factory=RunOptions)


def blank_state(question: str, mode: RunMode) -> LoopState:
    """Return the initial fields of a new question."""
    return {
        **blank_fields(question),
        "before": [],
        "run_mode": mode,
        "query": "",
        "passages": [],
        "found": [],
        "graded": [],
        "relevant": 0,
        "exhausted": False,
        "broken": None,
        "loop_step": 0,
        "tried": [],
        "steps": [],
        "composed": "",
    }


def reference(passage: Passage) -> PassageRef:
    return {
        "id": passage.id,
        "score": passage.score,
        "ranks": dict(passage.ranks),
        "scores": dict(passage.scores),
    }


async def read_passages(
    refs: Sequence[PassageRef], passages_of: Callable[[Sequence[str]], Sequence[Passage]]
) -> list[Passage]:
    """Read the passages of `refs`, in their order and with their ranks; skip passages deleted since."""
    passages = await asyncio.to_thread(passages_of, [ref["id"] for ref in refs]) if refs else ()
    by_id = {passage.id: passage for passage in passages}
    return [
        replace(by_id[ref["id"]], score=ref["score"], ranks=ref["ranks"], scores=ref["scores"])
        for ref in refs
        if ref["id"] in by_id
    ]


def removals(messages: Sequence[AnyMessage]) -> list[Change]:
    """Return removals of messages that are not part of the conversation: tool calls and their results."""
    kept_ids = {message.id for turn in turns_of(messages) for message in turn.messages}
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in kept_ids]


def earlier_messages(state: LoopState, memory: Memory) -> list[AnyMessage]:
    """Return the conversation before the question: the summary, then messages, each shortened to MAX_TURN.

    Questions without an answer are omitted, since many services require alternating questions and answers.
    """
    turns = turns_of(state["messages"][:-1])
    recent = turns[memory.first_visible([turn.exchange for turn in turns]) :]
    messages = [message for turn in recent if turn.answer for message in turn.messages]
    shortened = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in messages)
    return [*summary_messages(state), *shortened]


def needs_summary(state: LoopState, memory: Memory) -> bool:
    return bool(memory.count_summarised(exchanges_of(state["messages"][:-1])))
