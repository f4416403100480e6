"""A follow-up becomes a question that stands alone: by a chat model, or by rules where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from rag.agent.condensing import chinese as in_chinese
from rag.agent.condensing import english as in_english
from rag.agent.questions import is_small_talk
from rag.text import is_chinese

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


def needs_context(question: str) -> bool:
    """Whether the question points back: a pronoun that nothing in it explains, or a part that is left out.

    Cheap and a little eager: a question that it passes over is searched for as it stands.
    """
    return in_chinese.points_back(question) if is_chinese(question) else in_english.points_back(question)


def by_rules(question: str, history: Sequence[Exchange]) -> str:
    """Resolve pronouns and ellipsis with the last question that was about something.

    A question that stands alone comes back as it is, and so does one that no rule fits.
    """
    frame: Exchange | None = None
    for exchange in history:
        if not is_small_talk(exchange.meant):
            meant = exchange.standalone or _resolved(exchange.question, frame)
            frame = Exchange(exchange.question, exchange.answer, meant)
    return _resolved(question, frame)


def _resolved(question: str, frame: Exchange | None) -> str:
    if frame is None or not needs_context(question):
        return question
    chinese, framed_in_chinese = is_chinese(question), is_chinese(frame.meant)
    if chinese:
        topic = None if framed_in_chinese else in_english.topic(frame.meant, frame.answer)
        return in_chinese.resolved(question, frame.meant, topic)[:MAX_STANDALONE]
    topic = in_chinese.topic(frame.meant) if framed_in_chinese else None
    return in_english.resolved(question, frame.meant, frame.answer, topic)[:MAX_STANDALONE]


class RuleCondenser:
    """Condenses by rules, for a reasoner that cannot do it itself."""

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        return by_rules(question, history)
