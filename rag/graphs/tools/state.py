"""What a run of tool mode knows, as plain data, and what it works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Condenser, Reasoner
from rag.runs.kept import NoticeRecord
from rag.runs.options import RunOptions
from rag.runs.usage import CallBudget
from rag.tools.tool import Work
from rag.types import Outcome


class UseRecord(TypedDict):
    """As `ToolUse`."""

    name: str
    argument: str
    result: str
    seconds: float
    failed: NoticeRecord | None


class ToolState(TypedDict, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets.

    `drafted` is what the model made of the results; `problem` why it did not.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    summary: str
    question: str
    standalone: str
    uses: list[UseRecord]
    passages: list[dict[str, Any]]
    drafted: str
    problem: NoticeRecord | None
    text: str
    citations: list[dict[str, Any]]
    statements: list[dict[str, Any]]
    outcome: Outcome | None
    notice: NoticeRecord | None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a run works with: never saved."""

    work: Work
    reasoner: Reasoner
    rules: ExtractiveReasoner
    budget: CallBudget
    answerable: Callable[[], float] = lambda: 1.0
    condenser: Condenser | None = None
    verifiers: Sequence[Verifier] = ()
    options: RunOptions = field(default_factory=RunOptions)


def fresh(question: str) -> dict[str, Any]:
    """The fields of a question of which nothing is known."""
    empty: dict[str, Any] = {key: [] for key in ("uses", "passages", "citations", "statements")}
    return {
        **empty,
        "question": question,
        "standalone": "",
        "drafted": "",
        "problem": None,
        "text": "",
        "outcome": None,
        "notice": None,
    }


def asked(state: Mapping[str, Any]) -> str:
    return str(state.get("standalone") or state["question"])
