"""What thinks in a run: one protocol, whatever stands behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from rag.types import Passage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

RESET: Final = "\x00"
"""A piece of an answer that says: discard what came so far, it was not part of the answer."""


class Reasoner(Protocol):
    """What the graphs ask; they never ask which implementation answers.

    What only a chat model does (complete a follow-up, plan, judge, suggest) is asked of `ChatReasoner`.
    Every method raises ModelError, and nothing else, when the model behind it does not answer. One
    reasoner serves many runs at once and keeps nothing of them. Work that keeps a processor busy for
    more than a few milliseconds belongs in a thread: all runs share one event loop.
    """

    name: str

    @property
    def kind(self) -> Literal["extractive", "chat"]:
        """Whether answers are quoted or written."""
        ...

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Return a message with tool calls, or with a direct answer where no page is needed (small talk)."""
        ...

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Say for each passage whether it bears on the question: lenient, and one call for all of them."""
        ...

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """Return a query that is not among `tried`; one that is, or none, means: nothing left to try."""
        ...

    def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield the answer in pieces, marked `[n]` with 1-based places in `passages`.

        Yields nothing at all when the passages do not hold the answer. A piece may be RESET.
        """
        ...
