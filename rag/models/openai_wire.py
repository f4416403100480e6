"""Replies that differ from OpenAI's protocol, converted to its form."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import Any, Final, Self

from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from openai import APIStatusError
from pydantic import model_validator

from rag.models.openai_chat import ServerChat
from rag.models.refusals import NOT_UNDERSTOOD, refuses_form

_MAX_BODY: Final = 4_000_000  # bytes of a reply that is no stream
_WAYS: Final = ("tools", "response_format")


class NotOfferedError(ModelInvalidRequestError):
    """The server does not offer a feature of the request, whatever its status."""

    def __init__(self, error: APIStatusError) -> None:
        super().__init__(str(error))
        self.status_code = error.status_code


class WireChat(ChatOpenAI):
    """ChatOpenAI for replies that differ from the protocol."""

    @model_validator(mode="after")
    def _read_replies(self) -> Self:
        if not isinstance(self.async_client, _StreamingEndpoint):
            self.async_client = _StreamingEndpoint(self.async_client)
        return self

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        """Raise a separate error for a refusal, whose status for a failed server would cause a repeat."""
        try:
            return await super()._agenerate(*args, **kwargs)
        except APIStatusError as error:
            has_form = any(way in kwargs for way in _WAYS)
            if has_form and error.status_code not in NOT_UNDERSTOOD and refuses_form(error, self):
                raise NotOfferedError(error) from error
            raise


class AnyServerChat(ServerChat, WireChat):
    """The attempts of ServerChat around the reading of WireChat."""


class _StreamingEndpoint:
    """A wrapper of the client's endpoint that reads its streams here."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._endpoint, name)

    async def create(self, **payload: Any) -> Any:
        reply = await self._endpoint.create(**payload)
        return _Stream(reply) if payload.get("stream") else reply


class _Stream:
    """The chunks of one stream in the form of the protocol, with a finish reason if it ended properly.

    A server may ignore that a stream was requested and send one whole reply, name each piece `message` instead of
    `delta`, or never send a finish reason. `[DONE]` tells the end of a stream from a lost connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._watch = _EventDecoder(getattr(stream, "_decoder", None))
        if self._watch.is_active:  # a private name of the client; without it, only odd replies go unnoticed
            stream._decoder = self._watch
        if hasattr(stream, "_cast_to"):
            stream._cast_to = object  # plain data: a model for each piece took two thirds of the time
        self._began = False
        self._reason = ""

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        async for chunk in self._stream:
            yield self._read(chunk if isinstance(chunk, dict) else chunk.model_dump(warnings=False))
        whole = self._watch.whole_reply()
        if whole is not None:
            yield self._read(whole)
        if (self._watch.done or whole is not None) and not self._reason:
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    def _read(self, chunk: dict[str, Any]) -> dict[str, Any]:
        for choice in (chunk.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            self._began = self._began or bool(delta.get("content"))
            message = choice.get("message")
            # A server that sends both repeats its pieces in the message.
            choice["delta"] = _as_delta(message) if message and not (self._began or delta.get("tool_calls")) else delta
            self._reason = choice.get("finish_reason") or self._reason
        return chunk


def _as_delta(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with numbered calls, as in the pieces of a stream."""
    calls = message.get("tool_calls") or []
    return {**message, "tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]}


class _EventDecoder:
    """A decoder of server-sent events that notes if the last one came, and keeps a reply without any."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self.is_active = decoder is not None
        self._has_events = False
        self._body = b""
        self.done = False

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for event in self._decoder.aiter_bytes(self._record(chunks)):
            self._has_events, self._body = True, b""
            self.done = self.done or event.data.startswith("[DONE]")
            yield event

    async def _record(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        first = True
        async for chunk in chunks:
            if first:  # a byte order mark would hide the first event
                chunk, first = chunk.removeprefix(BOM_UTF8), False
            if not self._has_events and len(self._body) < _MAX_BODY:
                self._body += chunk
            yield chunk

    def whole_reply(self) -> dict[str, Any] | None:
        if self._has_events or not self._body:
            return None
        try:
            reply = json.loads(self._body)
        except (ValueError, RecursionError):
            return None
        return (
            reply if isinstance(reply, dict) and isinstance(reply.get("choices"), list) and reply["choices"] else None
        )
