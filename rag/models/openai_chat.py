"""A chat client for servers that implement only parts of OpenAI's protocol, or deviate from it."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import Any, Final, Self

from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError
from pydantic import model_validator

from rag.errors import ModelError
from rag.models.servers import (
    SAMPLING,
    UNSUPPORTED_STATUSES,
    ServerKey,
    capacity_of,
    model_error,
    read_window,
    refused_parameters,
    refuses_structured_output,
    server_key,
)

log = logging.getLogger(__name__)

_OPENAI = "//api.openai.com"
_PAUSES = (0.4, 1.6, 4.0)
_MAX_PAUSE = 10.0
_REFUSAL_STATUSES = (400, 422)
_RETRY_STATUSES = (409, 429, 500, 502, 503, 520, 529)

# Fields that a server refused, by address and model; for the lifetime of the process.
_refused_fields: dict[ServerKey, frozenset[str]] = {}

_MAX_BODY: Final = 4_000_000  # bytes of a reply that is not a stream
_FEATURE_OPTIONS: Final = ("tools", "response_format")


class CompatibleChat(ChatOpenAI):
    """A ChatOpenAI that reads deviating replies, omits fields which its server rejects, and retries transient failures.

    It retries after rate limits, server errors and lost connections, until the first chunk of an answer, but not after
    a timeout (another would double the wait) or permanent errors. Asynchronous calls only.
    """

    attempts: int = 1
    is_job_limit: bool = False
    """True if `max_tokens` is a job's limit rather than a user's choice."""

    @model_validator(mode="after")
    def _read_replies(self) -> Self:
        if not isinstance(self.async_client, _StreamingEndpoint):
            self.async_client = _StreamingEndpoint(self.async_client)
        return self

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*args, **kwargs)
        if self.max_tokens and _OPENAI not in (self.openai_api_base or _OPENAI):  # OpenAI alone renamed it
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        for field in _refused_fields.get(server_key(self), frozenset()):
            payload.pop(field, None)
        return payload

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        attempts = _Attempts(self)
        while True:
            try:
                async with capacity_of(self).semaphore():
                    return await super()._agenerate(*args, **kwargs)
            except OpenAIError as error:
                # A feature may be rejected with the status of a transient failure, which would cause a retry.
                if isinstance(error, APIStatusError) and error.status_code not in UNSUPPORTED_STATUSES:
                    uses_feature = any(option in kwargs for option in _FEATURE_OPTIONS)
                    if uses_feature and refuses_structured_output(error, self):
                        raise NotOfferedError(error) from error
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        attempts, has_begun = _Attempts(self, streams=True), False
        while True:
            began, first, last, usage = time.monotonic(), 0.0, 0.0, None
            try:
                async with capacity_of(self).semaphore():
                    async for chunk in super()._astream(*args, **kwargs):
                        has_begun, last = True, time.monotonic()
                        first = first or (last if chunk.text else 0.0)
                        usage = getattr(chunk.message, "usage_metadata", None) or usage
                        yield chunk
                if first and usage:
                    capacity_of(self).record(
                        usage["input_tokens"], first - began, usage["output_tokens"] - 1, last - first
                    )
                return
            except OpenAIError as error:
                if has_begun:
                    raise
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)


class _Attempts:
    """The retry state of one request."""

    def __init__(self, model: CompatibleChat, *, streams: bool = False) -> None:
        self._key = server_key(model)
        self._capacity = capacity_of(model)
        fields = (name for name in SAMPLING if not (name == "max_tokens" and model.is_job_limit))
        self._sampling = [name for name in fields if getattr(model, name) is not None]
        self._remaining = model.attempts - 1
        self._pauses = iter(_PAUSES)
        self._streams = streams
        self._dropped: set[str] = set()

    def pause_after(self, error: OpenAIError) -> float:
        """Return the seconds to wait before the next attempt. Raises `error` if there is none."""
        status = error.status_code if isinstance(error, APIStatusError) else None
        if model_error(error).code == "chat_too_long":
            self._capacity.window = read_window(error) or self._capacity.window
            raise error
        if status in _REFUSAL_STATUSES:
            return self._drop_field(error)
        is_lost = isinstance(error, APIConnectionError) and not isinstance(error, APITimeoutError)
        is_busy = status in _RETRY_STATUSES and "insufficient_quota" not in str(error)
        if self._remaining <= 0 or not (is_lost or is_busy):
            raise error
        self._remaining -= 1
        return _retry_after(error) or next(self._pauses, _PAUSES[-1])

    def _drop_field(self, error: OpenAIError) -> float:
        """Drop the field that the server may have rejected. If there is none left to try, undo this and raise `error`.

        Raises ModelError if the server rejects a parameter that the user set, which is never dropped silently.
        """
        if names := refused_parameters(str(error), self._sampling):
            raise ModelError("chat_parameter_refused", names=names) from error
        text, field = str(error).lower(), None
        if "temperature" in text:
            field = "temperature"
        elif "max_tokens" in text or "max_completion_tokens" in text:
            field = "max_tokens"
        elif self._streams:
            is_named = "stream_options" in text or "include_usage" in text
            has_other = "response_format" in text or "tool_choice" in text
            field = "stream_options" if is_named or not has_other else None
        refused = _refused_fields.get(self._key, frozenset())
        if field is None or field in refused:
            _refused_fields[self._key] = refused - self._dropped
            raise error
        log.info("The chat server refused a request; trying without %s", field)
        self._dropped.add(field)
        _refused_fields[self._key] = refused | {field}
        return 0.0


def _retry_after(error: OpenAIError) -> float | None:
    """Return the seconds of the server's Retry-After, unless that is longer than a user would wait."""
    if not isinstance(error, APIStatusError):
        return None
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0.0 <= seconds <= _MAX_PAUSE else None


class NotOfferedError(ModelInvalidRequestError):
    """An error for a feature that the server does not offer, whatever its HTTP status."""

    def __init__(self, error: APIStatusError) -> None:
        super().__init__(str(error))
        self.status_code = error.status_code


class _StreamingEndpoint:
    """A wrapper of the client's endpoint that reads its streams by `_Stream`."""

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
    """The chunks of one stream, normalised to the protocol, with a finish reason if it ended properly.

    A server may send one whole reply although a stream was requested, name each chunk `message` instead of `delta`, or
    never send a finish reason. `[DONE]` distinguishes the end of a stream from a lost connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._watch = _EventDecoder(getattr(stream, "_decoder", None))
        if self._watch.is_active:  # a private attribute; without it, only deviating replies go unnoticed
            stream._decoder = self._watch
        if hasattr(stream, "_cast_to"):
            stream._cast_to = object  # plain data: pydantic models took two thirds of the time
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
            if message and not (self._began or delta.get("tool_calls")):  # if both are sent, it repeats the chunks
                calls = enumerate(message.get("tool_calls") or [])  # a stream's have indexes
                delta = {**message, "tool_calls": [{"index": place, **call} for place, call in calls]}
            choice["delta"] = delta
            self._reason = choice.get("finish_reason") or self._reason
        return chunk


class _EventDecoder:
    """A decoder of server-sent events that records whether `[DONE]` arrived, and buffers a reply without events."""

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
        has_choices = isinstance(reply, dict) and isinstance(reply.get("choices"), list) and reply["choices"]
        return reply if has_choices else None
