"""A follow-up becomes a question that stands alone: by a chat model, or by rules where there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from rag.agent.condensing import chinese as in_chinese
from rag.agent.condensing import chinese_gaps as in_chinese_gaps
from rag.agent.condensing import chinese_phrases as in_chinese_phrases
from rag.agent.condensing import english as in_english
from rag.agent.condensing import english_about as in_english_about
from rag.agent.condensing import english_gaps as in_english_gaps
from rag.agent.questions import is_small_talk
from rag.text import is_chinese

MAX_STANDALONE: Final = 600  # characters
_MAX_ANSWER: Final = 1_000  # characters of it in which a name is looked for
_ASKS_IN_CHINESE: Final = re.compile(r"[吗呢]|什么|怎么|如何|哪|谁|多少|[这那它他她其前后]")


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


def _in_chinese(question: str) -> bool:
    """Whether it asks in Chinese; `Kubernetes 呢？` does, though most of its letters are Latin."""
    return is_chinese(question) or bool(_ASKS_IN_CHINESE.search(question))


def needs_context(question: str) -> bool:
    """Whether the question points back: a pronoun that nothing in it explains, or a part that is left out.

    Cheap and a little eager: a question that it passes over is searched for as it stands. One that is longer than
    a completed one may be says enough by itself.
    """
    if len(question) > MAX_STANDALONE:
        return False
    return in_chinese_gaps.points_back(question) if _in_chinese(question) else in_english_gaps.points_back(question)


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
    before, answer = frame.meant[:MAX_STANDALONE], frame.answer[:_MAX_ANSWER]
    framed_in_chinese = _in_chinese(before)
    chinese = _in_chinese(question)
    if (in_chinese_gaps if chinese else in_english_gaps).says_nothing_new(question):
        return before
    if chinese:
        known = (
            in_chinese_phrases.about(before, answer) if framed_in_chinese else in_english_about.about(before, answer)
        )
        return in_chinese.resolved(question, before if framed_in_chinese else "", known)[:MAX_STANDALONE]
    foreign = in_chinese_phrases.about(before, answer) if framed_in_chinese else None
    return in_english.resolved(question, before, answer, foreign)[:MAX_STANDALONE]


class RuleCondenser:
    """Condenses by rules, for a reasoner that cannot do it itself."""

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        return by_rules(question, history)
