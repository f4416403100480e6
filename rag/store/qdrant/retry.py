"""Handling of failed server calls: retry, wait, split, or raise one clear error.

A write whose response was lost may have succeeded. It is sent again unchanged: repeating upserts by id, conditional
writes and deletions has no further effect.
"""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

import httpx
from qdrant_client.http.exceptions import ResponseHandlingException

from rag.errors import StoreAwayError, StoreError
from rag.patterns import lazy_regex
from rag.store.values import Patience, current_patience

T = TypeVar("T")

log = logging.getLogger(__name__)

_SLOW_TIMEOUT = 30.0  # seconds for a response that nobody waits for, and for a write
_AWAY_TIMEOUT = 1.0  # seconds for a response of a server known to be unavailable
_CHECK_INTERVAL = 2.0  # seconds between checks of it, for all impatient callers together
_MIN_PAUSE, _MAX_PAUSE = 0.1, 5.0  # seconds; the first pause and the longest, doubling in between
_MAX_500_SECONDS = 300.0  # seconds of status 500 until the call itself is blamed
_FULL_DISK_PAUSE = 30.0  # seconds until the next try on a full disk
_TRANSPORT = lazy_regex(r"transport error|tcp connect|Connection refused|code: '|status: (?:'|Unavailable)")
"""Text of the connections between a cluster's nodes."""
_WRITES = lazy_regex(r"/points/(delete|payload|batch|vectors)")

Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class Fault:
    """The action for a failure, its message code, and the server's own text.

    `after` is the requested wait in seconds; `elsewhere` says that another node may succeed.
    """

    act: Literal["again", "split", "refuse"]
    code: str = "store_away"
    detail: str = ""
    after: float = 0.0
    elsewhere: bool = False


def response_fault(response: httpx.Response) -> Fault | None:
    """Return the fault in a response, as Qdrant 1.18 and 1.19 word it; None if there is none."""
    if response.is_success:
        return None
    status, text = response.status_code, _server_message(response)
    if status == 413 or (status == 400 and "larger than allowed" in text) or "split your request" in text:
        return Fault("split", "store_too_large")
    if status in (408, 429) or status >= 500:
        full = "No space left" in text
        after = _FULL_DISK_PAUSE if full else _retry_after(response)
        return Fault("again", "store_server_full" if full else "store_away", text, after, status in (502, 503, 504))
    if status == 401 or (status == 403 and not text):
        return Fault("refuse", "store_key_refused")
    if status == 403:
        return Fault("refuse", "store_forbidden", text)
    if status == 409 and "already exists" in text:
        return Fault("refuse", "collection_exists", text)
    if status == 404 and "Collection" in text:
        return Fault("refuse", "collection_missing", text)
    return Fault("refuse", "store_failed", text or f"status {status}")


def error_fault(error: Exception | None) -> Fault:
    """Return the fault behind an exception of the transport."""
    if isinstance(error, httpx.ConnectError) and "certificate" in str(error).lower():
        return Fault("refuse", "store_certificate")
    if isinstance(error, (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)):
        return Fault("again", elsewhere=True)
    return Fault("refuse", "store_unread")  # including responses that are not Qdrant's


def _server_message(response: httpx.Response) -> str:
    """Return the server's error message, without other nodes' details; empty if it gives none, or a proxy responded."""
    try:
        message = response.json()["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    if _TRANSPORT.search(str(message)):
        return "a node of the cluster is down"
    return " ".join(str(message).split())[:300].rstrip(".:")


def _retry_after(response: httpx.Response) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0.0


class Outages:
    """Sends calls to one of several addresses, retries them, and knows since when none responds.

    It is the middleware of the client. Safe to share between threads.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.since: datetime | None = None
        self._addresses = [httpx.URL(address) for address in addresses]
        self._current = 0
        self._outage_start = self._last_try = 0.0
        self._has_responded = False

    def __call__(self, request: httpx.Request, send: Send) -> httpx.Response:
        """Return the response. Raises StoreAwayError if none arrives in time, StoreError for a refusal."""
        limits, start, tries = current_patience.get(), time.monotonic(), 0
        if self._is_known_away(limits):
            raise self.away_error()
        while True:
            fault, response = self._send_once(request, send, limits, limits.seconds - (time.monotonic() - start))
            if fault is None:
                assert response is not None
                return response
            pause = self._pause_after(fault, tries)
            elapsed, tries = time.monotonic() - start, tries + 1
            if response is not None and response.status_code == 500 and elapsed > _MAX_500_SECONDS:
                raise StoreError("store_failed", call="", detail=fault.detail)
            if elapsed + pause > limits.seconds or not _sleep(pause, limits.stopped):
                raise self.away_error(fault)

    def away_error(self, fault: Fault | None = None) -> StoreAwayError:
        """Return the error for a server that does not respond, or accepts nothing."""
        since = (self.since or datetime.now().astimezone()).strftime("%H:%M")
        code = fault.code if fault is not None else "store_away"
        if code == "store_away" and not self._has_responded:
            code = "store_unreachable"
        return StoreAwayError(code, url=self._urls(), since=since)

    def _is_known_away(self, limits: Patience) -> bool:
        """Return whether the server has been away longer than the caller waits and was just checked."""
        now = time.monotonic()
        if self.since is None or now - self._outage_start < limits.seconds or now - self._last_try >= _CHECK_INTERVAL:
            return False
        return limits.seconds < math.inf

    def _send_once(
        self, request: httpx.Request, send: Send, limits: Patience, remaining: float
    ) -> tuple[Fault | None, httpx.Response | None]:
        self._last_try = time.monotonic()
        response = None
        self._set_address(request)
        request.extensions = {**request.extensions, "timeout": self._timeouts(request, limits, remaining)}
        try:
            response = send(request)
            fault = response_fault(response)
        except ResponseHandlingException as error:
            fault = error_fault(error.source)
        if fault is not None and fault.act == "again":
            self._note_failure(fault)
            return fault, response
        self._note_response()
        if fault is not None:
            raise StoreError(fault.code, call="", url=self._urls(), name=_collection(request), detail=fault.detail)
        return None, response

    def _timeouts(self, request: httpx.Request, limits: Patience, remaining: float) -> dict[str, float]:
        """Return the timeouts of a try in seconds: reads end with the caller's patience, writes may take longer."""
        is_known_away = self.since is not None and time.monotonic() - self._outage_start > limits.seconds
        timeout = _AWAY_TIMEOUT if is_known_away else max(_AWAY_TIMEOUT, min(remaining, _SLOW_TIMEOUT))
        is_write = request.method in ("PUT", "DELETE", "PATCH") or bool(_WRITES.search(request.url.path))
        longest = _SLOW_TIMEOUT if is_write and not is_known_away else timeout
        return {"connect": min(timeout, _MAX_PAUSE), "read": longest, "write": longest, "pool": longest}

    def _set_address(self, request: httpx.Request) -> None:
        """Send the request, which was made for the first address, to the current one."""
        address = self._addresses[self._current % len(self._addresses)]
        if len(self._addresses) > 1:
            request.url = request.url.copy_with(scheme=address.scheme, host=address.host, port=address.port)
            request.headers["Host"] = request.url.netloc.decode()

    def _pause_after(self, fault: Fault, tries: int) -> float:
        """Return the pause: growing, with jitter; none while there is an untried address."""
        if fault.elsewhere and (tries + 1) % len(self._addresses):
            return 0.0
        pause: float = min(_MAX_PAUSE, _MIN_PAUSE * 2 ** (tries // len(self._addresses)))
        return max(fault.after, pause * random.uniform(0.5, 1.5))

    def _note_failure(self, fault: Fault) -> None:
        self._last_try = time.monotonic()
        if fault.elsewhere:
            self._current += 1
        if self.since is None:
            self.since, self._outage_start = datetime.now().astimezone(), time.monotonic()
            detail = f" ({fault.detail})" if fault.detail else ""
            log.warning("The database at %s does not answer%s; what needs it waits", self._urls(), detail)

    def _note_response(self) -> None:
        self._has_responded = True
        if self.since is not None:
            log.warning("The database answers again, after %.0f s", time.monotonic() - self._outage_start)
            self.since = None

    def _urls(self) -> str:
        return ", ".join(map(str, self._addresses))


def _sleep(seconds: float, stopped: Callable[[], bool]) -> bool:
    """Wait `seconds`; return False if stopped before."""
    end = time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0 and not stopped():
        time.sleep(min(remaining, 0.2))
    return not stopped()


def _collection(request: httpx.Request) -> str:
    match = re.match(r".*/collections/([^/]+)", request.url.path)
    return match[1] if match else ""
