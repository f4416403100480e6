"""The route of a message: rules where it is plain, a classifier elsewhere, the fast chat model where that is unsure."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from pydantic import BaseModel, Field

from rag.errors import ModelError
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import is_about_conversation
from rag.routing.classifier import Message, Route, RouteBy, Routed, because, chosen_before, likelihoods, read_message
from rag.tools.calculator import expression_of
from rag.types import Notice

log = logging.getLogger(__name__)

SURE: Final = 0.5
"""How likely a route must be that is taken in the place of a question."""
_SURE_OF: Final[dict[Route, float]] = {"web": 0.6, "unknown": 0.6}
"""Where a question would leave the house for nothing, or be refused."""
_RECKONED: Final = 0.3
"""No page holds a sum: of messages held out this takes 94 % of the sums, and 0.2 % of the questions."""
_UNSURE: Final = 0.8
WAITS: Final = 3.0
"""Seconds that a message waits for a model's opinion of its way."""
_WORD: Final = re.compile(r"\w")

AskModel = Callable[[Message], Awaitable[tuple[Route, str]]]
"""What a chat model says: a route, and why in a few words. Raises ModelError."""


class Router:
    """Routes messages; `chosen` tells what people chose for earlier ones, as (masked text, route), latest first."""

    def __init__(self, chosen: Callable[[], Iterable[tuple[str, Route]]] = tuple) -> None:
        self._chosen = chosen

    def route(self, text: str, *, attached: bool = False) -> Routed:
        """The route without a chat model. May block."""
        message = read_message(text, attached=attached)
        return self._ruled(message) or self._likely(message)

    async def ask(self, text: str, model: AskModel, *, attached: bool = False) -> Routed:
        """The same, where it is unsure as the model says."""
        routed = self.route(text, attached=attached)
        if routed.by != "classifier" or routed.confidence >= _UNSURE:
            return routed
        try:
            async with asyncio.timeout(WAITS):
                route, why = await model(read_message(text, attached=attached))
        except (ModelError, TimeoutError) as error:
            log.info("a message is routed without the model (%s)", type(error).__name__)
            return routed
        return replace(routed, route=route, by="model", reason=Notice("route_model", {"why": why}), confidence=1.0)

    def _ruled(self, message: Message) -> Routed | None:
        if message.wordless and (message.addresses or message.attached):
            return _route_by(message, "save", "rules", "route_only_addresses", count=len(message.addresses))
        if earlier := chosen_before(message, self._chosen()):
            return _route_by(message, earlier, "person", "route_chosen_before")
        if message.addresses or message.attached:
            return None
        if not _WORD.search(message.text):
            return _route_by(message, "unknown", "rules", "route_no_words")
        if expression := expression_of(message.text):
            return _route_by(message, "calculate", "rules", "route_expression", expression=expression)
        if is_about_conversation(message.text):
            return _route_by(message, "small_talk", "rules", "route_conversation")
        return None

    def _likely(self, message: Message) -> Routed:
        likely = likelihoods(message)
        best = max(likely, key=lambda route: likely[route])
        best = "calculate" if likely["calculate"] >= _RECKONED else best
        if best not in ("ask", "calculate") and likely[best] < _SURE_OF.get(best, SURE) and likely["ask"] > 0:
            best = "ask"
        words = because(message, best)
        code = f"route_{best}" if words or best == "ask" else "route_likely"
        return _route_by(
            message, best, "classifier", code, likely[best], words=", ".join(f"“{word}”" for word in words)
        )


def _route_by(
    message: Message, route: Route, by: RouteBy, code: str, confidence: float = 1.0, **params: object
) -> Routed:
    return Routed(route, by, Notice(code, params), confidence, message.addresses, message.words)


_LONGEST = 2_000  # characters of a message
_WHY = 160


class RouteReply(BaseModel):
    """The way of one message."""

    route: Route = Field(description="the one that fits; ask where in doubt")
    confidence: float = Field(default=1.0, description="0 to 1")
    reason: str = Field(default="", description="why, in a few words, in the message's language")


def model_asker(chat: ChatReasoner) -> AskModel:
    """Asks this model; one that is not sure itself says `ask`."""

    async def ask(message: Message) -> tuple[Route, str]:
        reply = await chat.filled(RouteReply, requests.route(chat.texts, message.text[:_LONGEST]))
        sure = reply.confidence >= 0.5
        return (reply.route if sure else "ask"), " ".join(reply.reason.split())[:_WHY]

    return ask
