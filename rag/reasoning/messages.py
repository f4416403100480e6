"""A conversation as LangChain's messages, and the messages that call the search tool.

A question is kept with what it was understood as.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rag.types import Exchange

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

RETRIEVE: Final = "retrieve"
_MEANT: Final = "standalone"
_ASIDE: Final = "aside"


def said(
    question: str,
    standalone: str = "",
    id: str | None = None,  # noqa: A002 - the message's name
    *,
    aside: bool = False,
) -> HumanMessage:
    """The person's message, with what it was understood as where that differs; an `id` replaces the one that has it."""
    from langchain_core.messages import HumanMessage

    understood = {_MEANT: standalone} if standalone and standalone != question else {}
    return HumanMessage(question, additional_kwargs={**understood, **({_ASIDE: True} if aside else {})}, id=id)


def messages_of(exchanges: Sequence[Exchange]) -> list[AnyMessage]:
    """Messages for a conversation that was kept elsewhere; a question without an answer stands alone."""
    from langchain_core.messages import AIMessage

    messages: list[AnyMessage] = []
    for one in exchanges:
        messages.append(said(one.question, one.standalone, aside=one.aside))
        if one.answer.strip():
            messages.append(AIMessage(one.answer))
    return messages


@dataclass(frozen=True, slots=True)
class Spoken:
    """A question and what answered it, if anything did."""

    asked: HumanMessage
    answered: AIMessage | None

    @property
    def exchange(self) -> Exchange:
        kept = self.asked.additional_kwargs
        answer = self.answered.text if self.answered else ""
        return Exchange(self.asked.text, answer, str(kept.get(_MEANT, "")), bool(kept.get(_ASIDE)))

    @property
    def messages(self) -> list[AnyMessage]:
        return [self.asked, self.answered] if self.answered else [self.asked]


def turns_of(messages: Sequence[BaseMessage]) -> list[Spoken]:
    """Each question with the first answer after it, if one came before the next question."""
    from langchain_core.messages import AIMessage, HumanMessage

    found: list[Spoken] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            found.append(Spoken(message, None))
        elif isinstance(message, AIMessage) and message.text and found and found[-1].answered is None:
            found[-1] = Spoken(found[-1].asked, message)
    return found


def exchanges_of(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """The questions among the messages with their answers, oldest first.

    One that nothing answered has an empty answer: the next may still point back to it.
    """
    return [turn.exchange for turn in turns_of(messages)]


def call_for(queries: Sequence[str]) -> AIMessage:
    """Return the message that calls the tool once for each query."""
    from langchain_core.messages import AIMessage

    return AIMessage(
        content="",
        tool_calls=[
            {"name": RETRIEVE, "args": {"query": query}, "id": f"call_{uuid4().hex}", "type": "tool_call"}
            for query in queries
        ],
    )


def unreadable_call() -> AIMessage:
    """Return the message that stands for a call of which nothing can be told."""
    from langchain_core.messages import AIMessage
    from langchain_core.messages.tool import invalid_tool_call

    return AIMessage(content="", invalid_tool_calls=[invalid_tool_call(name=RETRIEVE)])
