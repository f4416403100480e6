"""What servers really send over OpenAI's protocol, put into the form that the protocol says."""

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
    """The server does not offer what the request asked for, whatever status it says that with."""

    def __init__(self, error: APIStatusError) -> None:
        super().__init__(str(error))
        self.status_code = error.status_code


class WireChat(ChatOpenAI):
    """ChatOpenAI for replies that are not quite what the protocol says."""

    @model_validator(mode="after")
    def _read_replies(self) -> Self:
        if not isinstance(self.async_client, _Endpoint):
            self.async_client = _Endpoint(self.async_client)
        return self

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        """A refusal that comes as a failure of the server would be repeated: it is given its own name."""
        try:
            return await super()._agenerate(*args, **kwargs)
        except APIStatusError as error:
            asked = any(way in kwargs for way in _WAYS)
            if asked and error.status_code not in NOT_UNDERSTOOD and refuses_form(error, self):
                raise NotOfferedError(error) from error
            raise


class AnyServerChat(ServerChat, WireChat):
    """The tries of the one around the reading of the other."""


class _Endpoint:
    """The client's way to ask, whose streams are read here."""

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
    """The chunks of one stream, as the protocol says they look, with a reason to finish where it ended in order.

    A server may ignore that a stream was asked for and send one whole reply, name each piece `message`
    instead of `delta`, or never say why it finished. `[DONE]` tells the end of a stream from a lost connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._watch = _Watch(getattr(stream, "_decoder", None))
        if self._watch.sees:  # a name of the client's own; without it only what is odd goes unnoticed
            stream._decoder = self._watch
        if hasattr(stream, "_cast_to"):
            stream._cast_to = object  # plain data: making a model of each piece took two thirds of its time
        self._spoke = False
        self._reason = ""

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        async for chunk in self._stream:
            yield self._read(chunk if isinstance(chunk, dict) else chunk.model_dump(warnings=False))
        whole = self._watch.whole()
        if whole is not None:
            yield self._read(whole)
        if (self._watch.done or whole is not None) and not self._reason:
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    def _read(self, chunk: dict[str, Any]) -> dict[str, Any]:
        for choice in (chunk.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            self._spoke = self._spoke or bool(delta.get("content"))
            message = choice.get("message")
            # A server that sends both repeats in the message what its pieces said.
            choice["delta"] = _as_delta(message) if message and not (self._spoke or delta.get("tool_calls")) else delta
            self._reason = choice.get("finish_reason") or self._reason
        return chunk


def _as_delta(message: dict[str, Any]) -> dict[str, Any]:
    """A message's calls have no places; those of a stream's pieces do."""
    calls = message.get("tool_calls") or []
    return {**message, "tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]}


class _Watch:
    """A decoder of server-sent events that is watched: whether the last one came, and what came instead of any."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self.sees = decoder is not None
        self._begun = False
        self._body = b""
        self.done = False

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for event in self._decoder.aiter_bytes(self._kept(chunks)):
            self._begun, self._body = True, b""
            self.done = self.done or event.data.startswith("[DONE]")
            yield event

    async def _kept(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        first = True
        async for chunk in chunks:
            if first:  # with a byte order mark the first line is no event
                chunk, first = chunk.removeprefix(BOM_UTF8), False
            if not self._begun and len(self._body) < _MAX_BODY:
                self._body += chunk
            yield chunk

    def whole(self) -> dict[str, Any] | None:
        """The reply that came as one, if one did."""
        if self._begun or not self._body:
            return None
        try:
            reply = json.loads(self._body)
        except (ValueError, RecursionError):
            return None
        return (
            reply if isinstance(reply, dict) and isinstance(reply.get("choices"), list) and reply["choices"] else None
        )
