"""What a run of the loop knows: plain data only, so that a saved state stays small and can be read again.

The conversation is messages with what they were understood as, and a summary before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import Conversing, blank_fields
from rag.models.usage import CallBudget
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.history import SUMMARY_OF, Memory, exchanges_of, turns_of
from rag.reasoning.reasoner import Reasoner
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord
from rag.types import Passage, RunMode

MAX_REWRITES = 3

Change = Any  # what langgraph takes for `messages`: messages, and removals, which its type leaves out

MAX_TURN = 2_000  # characters of one message that a decision sees


class PassageRef(TypedDict):
    """A passage as the state keeps it: where it stood in the search, without its text."""

    id: str
    score: float
    ranks: dict[str, int]
    scores: dict[str, float]


class StepRecord(TypedDict):
    node: str
    ms: float
    detail: dict[str, Any]


class LoopState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets at entry.

    `passages` is what the answer is written from, in context order; `found` holds what every search
    of this question brought, `graded` the ids that were judged, `relevant` how many the last grading
    let through; `query` is what a rewrite wants searched next; `exhausted` says that none is left; `broken`
    is why the model failed, after which it is not asked again.
    `standalone` is the question complete in itself, once a model or the person said so; `before` are the
    questions whose words are searched for too where nobody did; `summary` holds what was said before the
    oldest of the messages.
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
    """What a run works with: never saved. `search`, for a query and the questions
    before it, and `passages_of` block and are called in threads."""

    reasoner: Reasoner
    search: Callable[[str, Sequence[str]], Sequence[Passage]]
    passages_of: Callable[[Sequence[str]], Sequence[Passage]]
    budget: CallBudget
    answerable: Callable[[], float] = lambda: 1.0  # of the searches so far, see rag.retrieval.answerable
    sure: Callable[[], bool] = lambda: False  # whether one of them surely found the answer
    fast: bool = False
    condenser: ChatReasoner | None = None
    quoter: ExtractiveReasoner | None = None
    verifiers: Sequence[Verifier] = ()  # the best first; where none answers, rules judge
    options: RunOptions = field(default_factory=RunOptions)


def fresh(question: str, mode: RunMode) -> LoopState:
    """The fields of a question that nothing is known about yet."""
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


def leftovers(messages: Sequence[AnyMessage]) -> list[Change]:
    """What of an earlier question is no part of the conversation: calls of tools, and what they returned."""
    keep = {message.id for turn in turns_of(messages) for message in turn.messages}
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in keep]


def conversation(state: LoopState, memory: Memory) -> list[AnyMessage]:
    """What is remembered of what was said before the question, each message within bounds, the summary first.

    Questions without an answer are left out: many services take questions and answers in turn only.
    """
    before: list[AnyMessage] = []
    if summary := state.get("summary", ""):
        before = [HumanMessage(SUMMARY_OF), AIMessage(summary)]
    turns = turns_of(state["messages"][:-1])
    seen = turns[memory.begins([turn.exchange for turn in turns]) :]
    kept = [message for turn in seen if turn.answered for message in turn.messages]
    clipped = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in kept)
    return [*before, *clipped]


def is_long(state: LoopState, memory: Memory) -> bool:
    return bool(memory.summed_up(exchanges_of(state["messages"][:-1])))
