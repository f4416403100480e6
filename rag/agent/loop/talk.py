"""The conversation as the state keeps it: messages with what they were understood as, and a summary before them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage

from rag.agent.condensing.condense import Exchange
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
    """Messages for a conversation that was kept elsewhere. A question that failed left nothing to go on from."""
    pairs = [(said(one.question, one.standalone), AIMessage(one.answer)) for one in exchanges if one.answer.strip()]
    return [message for pair in pairs for message in pair]


def exchanges_of(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """The answered questions among the messages, oldest first."""
    found: list[Exchange] = []
    asked: HumanMessage | None = None
    for message in messages:
        if isinstance(message, HumanMessage):
            asked = message
        elif isinstance(message, AIMessage) and message.text and asked is not None:
            found.append(Exchange(asked.text, message.text, str(asked.additional_kwargs.get(_MEANT, ""))))
            asked = None
    return found


def leftovers(messages: Sequence[AnyMessage]) -> list[Change]:
    """What of an earlier question is no part of the conversation: calls of tools, what they returned, no answer."""
    keep: set[str] = set()
    asked: AnyMessage | None = None
    for message in messages:
        if isinstance(message, HumanMessage):
            asked = message
        elif isinstance(message, AIMessage) and message.text and asked is not None:
            keep |= {str(asked.id), str(message.id)}
            asked = None
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in keep]


def conversation(state: LoopState) -> list[AnyMessage]:
    """What was said before the question, each message within bounds, the summary first."""
    before: list[AnyMessage] = []
    if summary := state.get("summary", ""):
        before = [HumanMessage(SUMMARY_OF), AIMessage(summary)]
    kept: list[AnyMessage] = [m for m in state["messages"][:-1] if isinstance(m, HumanMessage | AIMessage) and m.text]
    clipped = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in kept)
    return [*before, *clipped]


async def summed_up(state: LoopState, context: LoopContext) -> tuple[str, list[Change]]:
    """The summary with the exchanges that no longer fit, and the removal of their messages."""
    before, messages = state.get("summary", ""), state["messages"][:-1]
    exchanges = exchanges_of(messages)
    surplus = overflowing(exchanges)
    if not surplus:
        return before, []
    tokens = HISTORY_TOKENS // 2
    try:
        with context.budget.keeping(2):
            summary = await context.summariser.summarise(before, exchanges[:surplus], tokens)
    except ModelError as error:
        log.info("a conversation is summed up by rules (%s)", error.code)
        summary = ""
    summary = summary or summary_by_rules(before, exchanges[:surplus], tokens)
    return summary, [RemoveMessage(id=m.id) for m in messages[: 2 * surplus] if m.id]


def is_long(state: LoopState) -> bool:
    return bool(overflowing(exchanges_of(state["messages"][:-1])))
