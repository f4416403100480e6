"""A follow-up: completed by a chat model into a question that stands alone, or searched with those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from rag.agent.questions import is_small_talk
from rag.retrieval.following import TURNS
from rag.types import Step

MAX_STANDALONE: Final = 600  # characters


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer. `standalone` is what the question was understood as, empty if as it stands."""

    question: str
    answer: str
    standalone: str = ""

    @property
    def meant(self) -> str:
        return self.standalone or self.question


@runtime_checkable
class Condenser(Protocol):
    """What can tell what a follow-up means."""

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        """The question complete in itself, in its own language. Raises ModelError."""
        ...


def questions_before(history: Sequence[Exchange]) -> list[str]:
    """The last questions that a search takes in, oldest first, without small talk, each as it was understood."""
    return [one.meant[:MAX_STANDALONE] for one in history if not is_small_talk(one.meant)][-TURNS:]


def searched_with(steps: Sequence[Step]) -> list[str]:
    """The questions before it that a question was searched for with, as its steps tell, oldest first."""
    return next((list(step.detail["before"]) for step in steps if step.detail.get("before")), [])
