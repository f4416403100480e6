"""The route of a message: by rules in clear cases, else by a classifier, or the fast chat model if that is unsure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from pydantic import BaseModel, Field

from rag.errors import ModelError
from rag.patterns import lazy_regex
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import asks, is_about_conversation
from rag.routing.classifier import Message, Route, RouteBy, Routed, explain, find_choice, likelihoods, read_message
from rag.tools.calculator import expression_of
from rag.types import Notice

log = logging.getLogger(__name__)

SURE: Final = 0.5
"""Minimum probability of a route other than a question."""
_SURE_OF: Final[dict[Route, float]] = {"web": 0.7, "unknown": 0.7}
"""Higher limits for routes that would send a question to the web, or refuse it."""
_SURE_CALCULATION: Final = 0.3
"""Minimum probability of a calculation, which no page has: takes 94 % of test calculations and 0.2 % of questions."""
_UNSURE: Final = 0.8
WAITS: Final = 3.0
"""Seconds to wait for a model's choice of the route."""
_WORD: Final = lazy_regex(r"\w")

AskModel = Callable[[Message], Awaitable[tuple[Route, str]]]
"""A function that asks a chat model for a route and a short reason. Raises ModelError."""


class Router:
    """A router of messages; `chosen` returns people's earlier choices, as (masked text, route), latest first."""

    def __init__(self, chosen: Callable[[], Iterable[tuple[str, Route]]] = tuple) -> None:
        self._chosen = chosen

    def route(self, text: str, *, attached: bool = False) -> Routed:
        """Return the route without a chat model. May block."""
        message = read_message(text, attached=attached)
        return self._route_by_rules(message) or self._route_by_classifier(message)

    async def ask(self, text: str, model: AskModel, *, attached: bool = False) -> Routed:
        """Return the route, by the model if the classifier is unsure."""
        routed = self.route(text, attached=attached)
        if routed.by != "classifier" or routed.confidence >= _UNSURE:
            return routed
        try:
            async with asyncio.timeout(WAITS):
                route, reason = await model(read_message(text, attached=attached))
        except (ModelError, TimeoutError) as error:
            log.info("a message is routed without the model (%s)", type(error).__name__)
            return routed
        return replace(routed, route=route, by="model", reason=Notice("route_model", {"why": reason}), confidence=1.0)

    def _route_by_rules(self, message: Message) -> Routed | None:
        if message.is_wordless and (message.addresses or message.attached):
            return _route_by(message, "save", "rules", "route_only_addresses", count=len(message.addresses))
        if earlier := find_choice(message, self._chosen()):
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

    def _route_by_classifier(self, message: Message) -> Routed:
        chances = likelihoods(message)
        best = max(chances, key=lambda route: chances[route])
        best = "calculate" if chances["calculate"] >= _SURE_CALCULATION else best
        is_unsure = best not in ("ask", "calculate") and chances[best] < _SURE_OF.get(best, SURE)
        if chances["ask"] > 0 and (is_unsure or (best == "unknown" and asks(message.text))):
            best = "ask"
        words = explain(message, best)
        code = f"route_{best}" if words or best == "ask" else "route_likely"
        return _route_by(
            message, best, "classifier", code, chances[best], words=", ".join(f"“{word}”" for word in words)
        )


def _route_by(
    message: Message, route: Route, by: RouteBy, code: str, confidence: float = 1.0, **params: object
) -> Routed:
    return Routed(route, by, Notice(code, params), confidence, message.addresses, message.words)


_MAX_CHARACTERS = 2_000  # characters of a message
_MAX_REASON = 160


class RouteReply(BaseModel):
    """The way of one message."""

    route: Route = Field(description="the one that fits; ask where in doubt")
    confidence: float = Field(default=1.0, description="0 to 1")
    reason: str = Field(default="", description="why, in a few words, in the message's language")


def model_asker(chat: ChatReasoner) -> AskModel:
    """Return a function that asks this model; if the model is unsure, the route is `ask`."""

    async def ask(message: Message) -> tuple[Route, str]:
        reply = await chat.fill(RouteReply, requests.route(chat.texts, message.text[:_MAX_CHARACTERS]))
        is_sure = reply.confidence >= 0.5
        return (reply.route if is_sure else "ask"), " ".join(reply.reason.split())[:_MAX_REASON]

    return ask
