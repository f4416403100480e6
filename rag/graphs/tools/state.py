"""State of a run of the tool mode, as plain data, and its runtime context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import Conversing, blank_fields
from rag.models.usage import CallBudget
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Reasoner
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord
from rag.tools.tool import Work


class UseRecord(TypedDict):
    """A `ToolUse` as plain data."""

    name: str
    argument: str
    result: str
    seconds: float
    failed: NoticeRecord | None


class ToolState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets.

    `drafted` is the model's text on the results; `problem` why there is none.
    """

    uses: list[UseRecord]
    passages: list[dict[str, Any]]
    drafted: str
    problem: NoticeRecord | None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Runtime context of a run; never saved."""

    work: Work
    reasoner: Reasoner
    rules: ExtractiveReasoner
    budget: CallBudget
    answerable: Callable[[], float] = lambda: 1.0
    condenser: ChatReasoner | None = None
    verifiers: Sequence[Verifier] = ()
    options: RunOptions = field(default_factory=RunOptions)


def blank_state(question: str) -> dict[str, Any]:
    """Return the initial fields of a new question."""
    return {**blank_fields(question), "uses": [], "passages": [], "drafted": "", "problem": None}
