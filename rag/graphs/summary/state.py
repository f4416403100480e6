"""State of a summary run: plain data, with a reducer for the notes that are written in parallel."""

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
    """A part of a summary: its heading as Markdown, its passages by number, and quotes that summarise it."""

    heading: str
    numbers: list[int]
    quotes: str


class SummaryState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets.

    `page` is the hash of the only page, if its summary may be stored. `told` is the notice about what is covered,
    `batches` are the numbers of passages that are read together. `composed` is `quoted` if rules replaced the model.
    """

    page: str
    parts: list[PartRecord]
    passages: list[dict[str, Any]]
    batches: list[list[int]]
    notes: Annotated[list[str], operator.add]
    told: NoticeRecord | None
    composed: str


class NoteInput(TypedDict):
    """The passages of one request, by number, and the question."""

    question: str
    passages: list[dict[str, Any]]
    numbers: list[int]


@dataclass(frozen=True, slots=True)
class SummaryContext:
    """Runtime context of a run; never saved. `writer` is the name of the reasoner."""

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


def blank_state(question: str) -> dict[str, Any]:
    """Return the initial fields of a new question."""
    empty: dict[str, Any] = {"page": "", "parts": [], "passages": [], "batches": [], "notes": Overwrite([])}
    return {**blank_fields(question), **empty, "told": None, "composed": ""}
