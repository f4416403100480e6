"""The `Reasoner` protocol, with implementations by a chat model and by rules.

Also the analysis of questions and conversations, independent of the graphs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from rag.types import Passage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

RESET: Final = "\x00"
"""A piece of an answer that tells the reader to discard all pieces before it."""


class Reasoner(Protocol):
    """The interface that graphs use, regardless of the implementation.

    Only `ChatReasoner` can also condense follow-ups, summarise, suggest questions and fill schemas. Every method raises
    ModelError, and nothing else, if its model fails. One reasoner serves many concurrent runs and has no state of any
    one run. Work that uses a processor for more than a few milliseconds belongs in a thread: all runs share one event
    loop.
    """

    name: str

    @property
    def kind(self) -> Literal["extractive", "chat"]:
        """The kind of answers: "extractive" quotes, "chat" writes."""
        ...

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Return a message with tool calls, or with a direct answer that needs no page (small talk)."""
        ...

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Return whether each passage is relevant: leniently, and in one call for all of them."""
        ...

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """Return a query that is not in `tried`; an empty or repeated one means that none is left."""
        ...

    def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield the answer in pieces, with marks `[n]`, the 1-based indexes in `passages`.

        Yields nothing if the passages do not answer. A piece may be RESET.
        """
        ...
