"""Requests to the model services of the settings: repeats, and batches of texts.

They use the HTTP client of the settings' chat model (`http_clients.py`): its proxies and authorities, no redirects.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final, TypeVar

import httpx2

from rag.background import BACKGROUND
from rag.errors import ModelError
from rag.models.http_clients import environment_clients
from rag.text import estimate_tokens, make_encodable

MAX_REPLY_BYTES: Final = 64_000_000
_TRIES: Final = 4
_PAUSE, _LONGEST_PAUSE = 0.25, 8.0  # seconds before the first repeat, doubled each time
_REPEATABLE: Final = (429, 500, 502, 503, 504, 520, 529)
_TOO_LARGE: Final = (400, 413, 422)
_MOST_TEXTS, _MOST_TOKENS = 64, 16_000  # in a request, until a service refuses that many
_SHORTEST: Final = 200  # characters; a refused text is halved down to this length
OUTAGES: Final = frozenset({"service_timeout", "service_unreachable", "service_busy", "service_failed"})
"""Codes of failures that may pass."""

Row = TypeVar("Row")
Way = TypeVar("Way")
Result = TypeVar("Result")


class RefusedError(ModelError):
    """A service does not understand a request, or its reply has another form. `status` is that of the reply."""

    def __init__(self, code: str, status: int, **params: Any) -> None:
        super().__init__(code, status=status, **params)
        self.status = status


class Service:
    """JSON requests below one address. Safe to share between threads; must not be called in the loop of runs."""

    def __init__(self, base_url: str, key: str, setting: str) -> None:
        """`setting` names the address in errors, such as EMBEDDING_BASE_URL."""
        self._base_url = base_url.rstrip("/")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._params = {"host": httpx2.URL(base_url).netloc.decode(), "setting": setting}

    @property
    def host(self) -> str:
        return self._params["host"]

    def ask(self, path: str, body: Mapping[str, Any], seconds: float) -> Any:
        """Return the JSON of the reply to a POST to `path`, after all repeats. Raises ModelError."""
        url = self._base_url if self._base_url.endswith(path) else f"{self._base_url}{path}"
        headers = {**self._headers, "content-type": "application/json", "accept": "application/json"}
        try:
            status, content = post(url, json.dumps(body).encode(), headers, seconds=seconds)
        except TimeoutError as error:
            raise self.late_error(seconds) from error
        except ConnectionError as error:
            raise ModelError("service_unreachable", **self._params) from error
        if not 200 <= status < 300:
            raise self._status_error(status)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.unusable_error() from error

    def late_error(self, seconds: float) -> ModelError:
        """Return the error for a reply that is too late."""
        return ModelError("service_timeout", seconds=f"{seconds:g}", **self._params)

    def unusable_error(self) -> RefusedError:
        """Return the error for a reply of another form."""
        return RefusedError("service_unusable", 200, **self._params)

    def _status_error(self, status: int) -> ModelError:
        if status in (401, 403):
            key = self._params["setting"].replace("BASE_URL", "API_KEY")
            return ModelError("service_wrong_key", key=key, **self._params)
        if status == 429:
            return ModelError("service_busy", **self._params)
        if 400 <= status < 500:
            return RefusedError("service_wrong_address" if status == 404 else "service_refused", status, **self._params)
        return ModelError("service_failed", status=status, **self._params)


def post(url: str, content: bytes, headers: Mapping[str, str], *, seconds: float) -> tuple[int, bytes]:
    """Return status and body of the reply, repeating the request if that may help and there is time. Blocks.

    Raises TimeoutError, ConnectionError, and ModelError for a proxy with wrong settings.
    """
    try:
        return BACKGROUND.wait(_post(url, content, {**headers, "accept-encoding": "identity"}, seconds))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConnectionError(type(error).__name__) from error


async def _post(url: str, content: bytes, headers: Mapping[str, str], seconds: float) -> tuple[int, bytes]:
    now = asyncio.get_running_loop().time
    ends = now() + seconds
    for attempt in range(1, _TRIES + 1):
        retry_after, problem, reply = "", None, (0, b"")
        try:
            async with asyncio.timeout_at(ends):
                reply, retry_after = await _request(url, content, headers, seconds)
        except httpx2.TimeoutException as error:
            raise TimeoutError from error
        except httpx2.TransportError as error:
            problem = error
        pause = _pause(attempt, retry_after)
        if attempt == _TRIES or now() + pause >= ends or (problem is None and reply[0] not in _REPEATABLE):
            break
        await asyncio.sleep(pause)
    if problem is not None:
        raise problem
    return reply


async def _request(
    url: str, content: bytes, headers: Mapping[str, str], seconds: float
) -> tuple[tuple[int, bytes], str]:
    """Return the reply, and its Retry-After."""
    headers = {"user-agent": "Pagelight", **headers}
    async with _client().stream("POST", url, content=content, headers=headers, timeout=seconds) as response:
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MAX_REPLY_BYTES:
                raise httpx2.ReadError("the reply is too large")
        return (response.status_code, bytes(body)), response.headers.get("retry-after", "")


@cache
def _client() -> httpx2.AsyncClient:
    client: httpx2.AsyncClient = environment_clients()["http_async_client"]
    return client


def _pause(attempt: int, retry_after: str) -> float:
    """Return the seconds of Retry-After, a number or a date, and a random time that doubles with each attempt."""
    more = random.uniform(0.0, min(_LONGEST_PAUSE, _PAUSE * 2.0 ** (attempt - 1)))
    try:
        return max(0.0, float(retry_after)) + more
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()) + more
    except (ValueError, TypeError):
        return more


def find_understood(ways: Sequence[Way], ask: Callable[[Way], Result]) -> tuple[Way, Result]:
    """Return the first way of asking that the service understands, and its reply. Raises ModelError."""
    errors: list[RefusedError] = []
    for way in ways:
        try:
            return way, ask(way)
        except RefusedError as error:
            errors.append(error)
    raise min(errors, key=lambda error: error.status in (404, 405))


class Batches:
    """Texts sent several at a time: fewer after a service refuses that many, and shortened if it refuses one."""

    def __init__(self) -> None:
        self._max_texts = _MOST_TEXTS
        self._shortened = 0

    def rows(self, texts: Iterable[str], ask: Callable[[Sequence[str]], Sequence[Row]]) -> list[Row]:
        """Return one row a text, in their order. Raises what `ask` does."""
        rows: list[Row] = []
        batch: list[str] = []
        tokens = 0
        for text in map(make_encodable, texts):
            size = estimate_tokens(text)
            if batch and (len(batch) >= self._max_texts or tokens + size > _MOST_TOKENS):
                rows += self._ask(batch, ask)
                batch, tokens = [], 0
            batch.append(text)
            tokens += size
        return rows + (self._ask(batch, ask) if batch else [])

    def _ask(self, texts: Sequence[str], ask: Callable[[Sequence[str]], Sequence[Row]]) -> list[Row]:
        try:
            return list(ask(texts))
        except RefusedError as error:
            if error.status not in _TOO_LARGE or (len(texts) == 1 and len(texts[0]) <= _SHORTEST):
                raise
        if len(texts) == 1:
            self._shortened += 1
            return self._ask([texts[0][: len(texts[0]) // 2]], ask)
        half, shortened = (len(texts) + 1) // 2, self._shortened
        rows = [*self._ask(texts[:half], ask), *self._ask(texts[half:], ask)]
        if self._shortened == shortened:  # their number was refused, not one of them
            self._max_texts = min(self._max_texts, half)
        return rows
