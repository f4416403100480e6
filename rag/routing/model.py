"""What a chat model says of a message whose way rules and classifier do not know for sure."""

from __future__ import annotations

from pydantic import BaseModel, Field

from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.routing.message import Message
from rag.routing.router import AskModel
from rag.routing.routes import Route

_LONGEST = 2_000  # characters of a message
_WHY = 160


class RouteReply(BaseModel):
    """The way of one message."""

    route: Route = Field(description="the one that fits; ask where in doubt")
    confidence: float = Field(default=1.0, description="0 to 1")
    reason: str = Field(default="", description="why, in a few words, in the message's language")


def asked_of(chat: ChatReasoner) -> AskModel:
    """Asks this model; one that is not sure itself says `ask`."""

    async def ask(message: Message) -> tuple[Route, str]:
        reply = await chat.filled(RouteReply, requests.route(chat.texts, message.text[:_LONGEST]))
        sure = reply.confidence >= 0.5
        return (reply.route if sure else "ask"), " ".join(reply.reason.split())[:_WHY]

    return ask
