"""A chat model with a queue of replies, without a network; it records every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field


class QueueModel(BaseChatModel):
    """A model whose calls take the next reply: a message, an exception to raise, or for a stream a list of pieces.

    An exception among the pieces ends the stream. Otherwise it ends with `reason` as the finish reason, if set.
    """

    replies: list[Any] = Field(default_factory=list)
    requests: list[tuple[list[BaseMessage], dict[str, Any]]] = Field(default_factory=list)
    kind: str = "queue"
    reason: str = "stop"
    model_name: str = "queue-model"

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[tool if isinstance(tool, type) else tool.name for tool in tools], **kwargs)

    def _next(self, messages: list[BaseMessage], options: dict[str, Any]) -> Any:
        self.requests.append((messages, options))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        reply = self._next(messages, options)
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in self._next(messages, options):
            if isinstance(piece, Exception):
                raise piece
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        if self.reason:
            ending = AIMessageChunk("", response_metadata={"finish_reason": self.reason})
            yield ChatGenerationChunk(message=ending)
