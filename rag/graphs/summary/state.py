"""What a run of summary mode knows: plain data, with a reducer for the notes that are taken side by side."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import Conversing, blank_fields
from rag.models.usage import CallBudget
from rag.reasoning.chat import ChatReasoner
from rag.retrieval.page_reader import PageReader
from rag.runs.options import Question, RunOptions
from rag.runs.serialization import NoticeRecord
from rag.types import Passage


class PartRecord(TypedDict):
    """A part of a summary: what stands above it as Markdown, its passages by number, and the quotes that tell it."""

    heading: str
    numbers: list[int]
    quotes: str


class SummaryState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets.

    `page` is the one page that is told of, by its hash, where there is but one and all of it may be kept. `told` is
    the notice of what is covered, `batches` the numbers of the passages that are read together. `composed` is `quoted`
    where rules wrote for a model.
    """

    page: str
    parts: list[PartRecord]
    passages: list[dict[str, Any]]
    batches: list[list[int]]
    notes: Annotated[list[str], operator.add]
    told: NoticeRecord | None
    composed: str


class NoteInput(TypedDict):
    """The passages of one request, by number, and what was asked."""

    question: str
    passages: list[dict[str, Any]]
    numbers: list[int]


@dataclass(frozen=True, slots=True)
class SummaryContext:
    """What a run works with: never saved; `writer` is the name of what writes."""

    reader: PageReader | None
    asked: Question
    budget: CallBudget
    writer: str
    search: Callable[[str], Sequence[Passage]]
    model: ChatReasoner | None = None
    condenser: ChatReasoner | None = None
    verifiers: Sequence[Verifier] = field(default=())

    @property
    def options(self) -> RunOptions:
        return self.asked.options


def fresh(question: str) -> dict[str, Any]:
    """The fields of a question that nothing is known about yet."""
    nothing: dict[str, Any] = {"page": "", "parts": [], "passages": [], "batches": [], "notes": Overwrite([])}
    return {**blank_fields(question), **nothing, "told": None, "composed": ""}
