"""What a run of tool mode knows, as plain data, and what it works with."""

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
    """As `ToolUse`."""

    name: str
    argument: str
    result: str
    seconds: float
    failed: NoticeRecord | None


class ToolState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets.

    `drafted` is what the model made of the results; `problem` why it did not.
    """

    uses: list[UseRecord]
    passages: list[dict[str, Any]]
    drafted: str
    problem: NoticeRecord | None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a run works with: never saved."""

    work: Work
    reasoner: Reasoner
    rules: ExtractiveReasoner
    budget: CallBudget
    answerable: Callable[[], float] = lambda: 1.0
    condenser: ChatReasoner | None = None
    verifiers: Sequence[Verifier] = ()
    options: RunOptions = field(default_factory=RunOptions)


def fresh(question: str) -> dict[str, Any]:
    """The fields of a question of which nothing is known."""
    return {**blank_fields(question), "uses": [], "passages": [], "drafted": "", "problem": None}
