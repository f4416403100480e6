"""A client of OpenAI's protocol for servers that support parts of it, each in its own way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

from rag.errors import ModelError
from rag.models.failures import model_error, read_window
from rag.models.pace import Pace, pace_of
from rag.models.refusals import ServerKey, server_key
from rag.models.sampling import SAMPLING, refused_parameters

log = logging.getLogger(__name__)

_OPENAI = "//api.openai.com"
_PAUSES = (0.4, 1.6, 4.0)
_LONGEST_PAUSE = 10.0
_REFUSALS = (400, 422)
_REPEATABLE = (409, 429, 500, 502, 503, 520, 529)

# Fields that a server refused, by address and model; for the lifetime of the process.
_refused: dict[ServerKey, frozenset[str]] = {}


class ServerChat(ChatOpenAI):
    """ChatOpenAI that leaves out fields that its server answers with 400, and repeats failures that may pass.

    Repeated: rate limits, server errors and lost connections, before the first piece of an answer.
    Not repeated: a time-out (another would double the wait), and everything that would fail again. This applies to
    asynchronous calls, the only ones here.
    """

    attempts: int = 1
    job_limit: bool = False
    """True if `max_tokens` is a job's limit, not a person's choice."""

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*args, **kwargs)
        if self.max_tokens and _OPENAI not in (self.openai_api_base or _OPENAI):  # OpenAI has its own name for it
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        for field in _refused.get(server_key(self), frozenset()):
            payload.pop(field, None)
        return payload

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        attempts = _Attempts(self)
        while True:
            try:
                async with pace_of(self).gate():
                    return await super()._agenerate(*args, **kwargs)
            except OpenAIError as error:
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        attempts, has_begun = _Attempts(self, streams=True), False
        while True:
            timer = _StreamTimer()
            try:
                async with pace_of(self).gate():
                    async for chunk in super()._astream(*args, **kwargs):
                        has_begun = True
                        timer.note(chunk)
                        yield chunk
                timer.report(pace_of(self))
                return
            except OpenAIError as error:
                if has_begun:
                    raise
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)


class _StreamTimer:
    """The times of one stream: until its first word, and from there to its end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first = self._last = 0.0
        self._usage: Any = None

    def note(self, chunk: ChatGenerationChunk) -> None:
        self._last = time.monotonic()
        self._first = self._first or (self._last if chunk.text else 0.0)
        self._usage = getattr(chunk.message, "usage_metadata", None) or self._usage

    def report(self, pace: Pace) -> None:
        if self._first and self._usage:
            writing = self._last - self._first
            pace.note(self._usage["input_tokens"], self._first - self._began, self._usage["output_tokens"] - 1, writing)


class _Attempts:
    """The attempts of one request."""

    def __init__(self, model: ServerChat, *, streams: bool = False) -> None:
        self._key = server_key(model)
        self._pace = pace_of(model)
        fields = (name for name in SAMPLING if not (name == "max_tokens" and model.job_limit))
        self._sampling = [name for name in fields if getattr(model, name) is not None]
        self._remaining = model.attempts - 1
        self._pauses = iter(_PAUSES)
        self._streams = streams
        self._dropped: set[str] = set()

    def pause_after(self, error: OpenAIError) -> float:
        """Return the seconds to wait before the next attempt. Raises `error` if there is none."""
        status = error.status_code if isinstance(error, APIStatusError) else None
        if model_error(error).code == "chat_too_long":
            self._pace.window = read_window(error) or self._pace.window
            raise error
        if status in _REFUSALS:
            return self._drop_field(error)
        if self._remaining <= 0 or not _is_repeatable(error, status):
            raise error
        self._remaining -= 1
        return _retry_after(error) or next(self._pauses, _PAUSES[-1])

    def _drop_field(self, error: OpenAIError) -> float:
        """Drop the field that the server may have refused; if that was tried before, it was not the cause.

        A person's choice is never dropped silently. Raises ModelError if the server names it.
        """
        if names := refused_parameters(str(error), self._sampling):
            raise ModelError("chat_parameter_refused", names=names) from error
        field = self._find_suspect(str(error).lower())
        refused = _refused.get(self._key, frozenset())
        if field is None or field in refused:
            _refused[self._key] = refused - self._dropped
            raise error
        log.info("The chat server refused a request; trying without %s", field)
        self._dropped.add(field)
        _refused[self._key] = refused | {field}
        return 0.0

    def _find_suspect(self, text: str) -> str | None:
        if "temperature" in text:
            return "temperature"
        if "max_tokens" in text or "max_completion_tokens" in text:
            return "max_tokens"
        is_named = "stream_options" in text or "include_usage" in text
        has_other = any(word in text for word in ("response_format", "tool_choice"))
        return "stream_options" if self._streams and (is_named or not has_other) else None


def _is_repeatable(error: OpenAIError, status: int | None) -> bool:
    if status is not None:
        return status in _REPEATABLE and "insufficient_quota" not in str(error)
    return isinstance(error, APIConnectionError) and not isinstance(error, APITimeoutError)


def _retry_after(error: OpenAIError) -> float | None:
    """Return the seconds of the server's Retry-After, if a person would wait as long."""
    if not isinstance(error, APIStatusError):
        return None
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0.0 <= seconds <= _LONGEST_PAUSE else None
