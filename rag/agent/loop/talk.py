"""The conversation as the state keeps it: messages with what they were understood as, and a summary before them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage

from rag.agent.conversing.condense import Exchange
from rag.agent.conversing.memory import HISTORY_TOKENS, SUMMARY_OF, overflowing, summary_by_rules
from rag.agent.loop.state import LoopContext, LoopState
from rag.errors import ModelError

log = logging.getLogger(__name__)

Change = Any  # what langgraph takes for `messages`: messages, and removals, which its type leaves out

MAX_TURN = 2_000  # characters of one message that a decision sees
_MEANT: Final = "standalone"


def said(question: str, standalone: str = "", id: str | None = None) -> HumanMessage:  # noqa: A002 - the message's name
    """The person's message, with what it was understood as where that differs; an `id` replaces the one that has it."""
    understood = {_MEANT: standalone} if standalone and standalone != question else {}
    return HumanMessage(question, additional_kwargs=understood, id=id)


def messages_of(exchanges: Sequence[Exchange]) -> list[AnyMessage]:
    """Messages for a conversation that was kept elsewhere; a question without an answer stands alone."""
    messages: list[AnyMessage] = []
    for one in exchanges:
        messages.append(said(one.question, one.standalone))
        if one.answer.strip():
            messages.append(AIMessage(one.answer))
    return messages


@dataclass(frozen=True, slots=True)
class _Turn:
    asked: HumanMessage
    answered: AIMessage | None

    @property
    def exchange(self) -> Exchange:
        meant = str(self.asked.additional_kwargs.get(_MEANT, ""))
        return Exchange(self.asked.text, self.answered.text if self.answered else "", meant)

    @property
    def messages(self) -> list[AnyMessage]:
        return [self.asked, self.answered] if self.answered else [self.asked]


def _turns(messages: Sequence[BaseMessage]) -> list[_Turn]:
    """Each question with the first answer after it, if one came before the next question."""
    found: list[_Turn] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            found.append(_Turn(message, None))
        elif isinstance(message, AIMessage) and message.text and found and found[-1].answered is None:
            found[-1] = _Turn(found[-1].asked, message)
    return found


def exchanges_of(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """The questions among the messages with their answers, oldest first.

    One that nothing answered has an empty answer: the next may still point back to it.
    """
    return [turn.exchange for turn in _turns(messages)]


def leftovers(messages: Sequence[AnyMessage]) -> list[Change]:
    """What of an earlier question is no part of the conversation: calls of tools, and what they returned."""
    keep = {message.id for turn in _turns(messages) for message in turn.messages}
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in keep]


def conversation(state: LoopState) -> list[AnyMessage]:
    """What was said before the question, each message within bounds, the summary first.

    Questions without an answer are left out: many services take questions and answers in turn only.
    """
    before: list[AnyMessage] = []
    if summary := state.get("summary", ""):
        before = [HumanMessage(SUMMARY_OF), AIMessage(summary)]
    spoken = [turn.messages for turn in _turns(state["messages"][:-1]) if turn.answered]
    kept = [message for messages in spoken for message in messages]
    clipped = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in kept)
    return [*before, *clipped]


async def summed_up(state: LoopState, context: LoopContext) -> tuple[str, list[Change]]:
    """The summary with the exchanges that no longer fit, and the removal of their messages."""
    before, turns = state.get("summary", ""), _turns(state["messages"][:-1])
    surplus = turns[: overflowing([turn.exchange for turn in turns])]
    if not surplus:
        return before, []
    removed: list[Change] = [RemoveMessage(id=m.id) for turn in surplus for m in turn.messages if m.id]
    told = [turn.exchange for turn in surplus if turn.answered]
    return (await _summary(before, told, context) if told else before), removed


async def _summary(before: str, told: Sequence[Exchange], context: LoopContext) -> str:
    tokens = HISTORY_TOKENS // 2
    try:
        with context.budget.keeping(2):
            summary = await context.summariser.summarise(before, told, tokens)
    except ModelError as error:
        log.info("a conversation is summed up by rules (%s)", error.code)
        summary = ""
    return summary or summary_by_rules(before, told, tokens)


def is_long(state: LoopState) -> bool:
    return bool(overflowing(exchanges_of(state["messages"][:-1])))
