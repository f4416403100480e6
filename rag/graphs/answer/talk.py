"""The conversation as the state keeps it: messages with what they were understood as, and a summary before them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from rag.errors import ModelError
from rag.graphs.answer.state import LoopContext, LoopState
from rag.reasoning.history import HISTORY_TOKENS, SUMMARY_OF, overflowing, summary_by_rules
from rag.reasoning.messages import exchanges_of, turns_of
from rag.types import Exchange

log = logging.getLogger(__name__)

Change = Any  # what langgraph takes for `messages`: messages, and removals, which its type leaves out

MAX_TURN = 2_000  # characters of one message that a decision sees


def leftovers(messages: Sequence[AnyMessage]) -> list[Change]:
    """What of an earlier question is no part of the conversation: calls of tools, and what they returned."""
    keep = {message.id for turn in turns_of(messages) for message in turn.messages}
    return [RemoveMessage(id=message.id) for message in messages if message.id and message.id not in keep]


def conversation(state: LoopState) -> list[AnyMessage]:
    """What was said before the question, each message within bounds, the summary first.

    Questions without an answer are left out: many services take questions and answers in turn only.
    """
    before: list[AnyMessage] = []
    if summary := state.get("summary", ""):
        before = [HumanMessage(SUMMARY_OF), AIMessage(summary)]
    spoken = [turn.messages for turn in turns_of(state["messages"][:-1]) if turn.answered]
    kept = [message for messages in spoken for message in messages]
    clipped = ((HumanMessage if isinstance(m, HumanMessage) else AIMessage)(m.text[:MAX_TURN]) for m in kept)
    return [*before, *clipped]


async def summed_up(state: LoopState, context: LoopContext) -> tuple[str, list[Change]]:
    """The summary with the exchanges that no longer fit, and the removal of their messages."""
    before, turns = state.get("summary", ""), turns_of(state["messages"][:-1])
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
