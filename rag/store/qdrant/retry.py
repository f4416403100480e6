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
from rag.store.values import Patience, current_patience

T = TypeVar("T")

log = logging.getLogger(__name__)

_SLOW = 30.0  # seconds for a response that nobody waits for, and for a write
_LOOK = 1.0  # seconds for a response of a server known to be unavailable
_LOOKS = 2.0  # seconds between checks of it, for all impatient callers together
_PAUSE, _LONGEST = 0.1, 5.0  # seconds; the first pause and the longest, doubling in between
_ENDURED = 300.0  # seconds of status 500 until the call itself is blamed
_FULL = 30.0  # seconds until the next try on a full disk
_TRANSPORT = re.compile(r"transport error|tcp connect|Connection refused|code: '|status: (?:'|Unavailable)")
"""Text of the connections between a cluster's nodes."""
_WRITES = re.compile(r"/points/(delete|payload|batch|vectors)")

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


def of_answer(answer: httpx.Response) -> Fault | None:
    """Return the fault in a response, as Qdrant 1.18 and 1.19 word it; None if there is none."""
    if answer.is_success:
        return None
    status, said = answer.status_code, _said(answer)
    if status == 413 or (status == 400 and "larger than allowed" in said) or "split your request" in said:
        return Fault("split", "store_too_large")
    if status in (408, 429) or status >= 500:
        full = "No space left" in said
        after = _FULL if full else _retry_after(answer)
        return Fault("again", "store_server_full" if full else "store_away", said, after, status in (502, 503, 504))
    if status == 401 or (status == 403 and not said):
        return Fault("refuse", "store_key_refused")
    if status == 403:
        return Fault("refuse", "store_forbidden", said)
    if status == 409 and "already exists" in said:
        return Fault("refuse", "collection_exists", said)
    if status == 404 and "Collection" in said:
        return Fault("refuse", "collection_missing", said)
    return Fault("refuse", "store_failed", said or f"status {status}")


def of_error(error: Exception | None) -> Fault:
    """Return the fault behind an exception of the transport."""
    if isinstance(error, httpx.ConnectError) and "certificate" in str(error).lower():
        return Fault("refuse", "store_certificate")
    if isinstance(error, (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)):
        return Fault("again", elsewhere=True)
    return Fault("refuse", "store_unread")  # including responses that are not Qdrant's


def _said(answer: httpx.Response) -> str:
    """Return the server's error message, without other nodes' details; empty if it gives none, or a proxy responded."""
    try:
        said = answer.json()["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    if _TRANSPORT.search(str(said)):
        return "a node of the cluster is down"
    return " ".join(str(said).split())[:300].rstrip(".:")


def _retry_after(answer: httpx.Response) -> float:
    given = answer.headers.get("Retry-After", "")
    return float(given) if given.isdecimal() else 0.0


class Outages:
    """Sends calls to one of several addresses, retries them, and knows since when none responds.

    It is the middleware of the client. Safe to share between threads.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.since: datetime | None = None
        self._addresses = [httpx.URL(one) for one in addresses]
        self._at = 0
        self._began = self._looked = 0.0
        self._met = False

    def __call__(self, request: httpx.Request, send: Send) -> httpx.Response:
        """Return the response. Raises StoreAwayError if none arrives in time, StoreError for a refusal."""
        mine, began, tries = current_patience.get(), time.monotonic(), 0
        if self._is_known(mine):
            raise self.away()
        while True:
            fault, answer = self._try(request, send, mine, mine.seconds - (time.monotonic() - began))
            if fault is None:
                assert answer is not None
                return answer
            pause = self._pause_after(fault, tries)
            spent, tries = time.monotonic() - began, tries + 1
            if answer is not None and answer.status_code == 500 and spent > _ENDURED:
                raise StoreError("store_failed", call="", detail=fault.detail)
            if spent + pause > mine.seconds or not _slept(pause, mine.stopped):
                raise self.away(fault)

    def away(self, fault: Fault | None = None) -> StoreAwayError:
        """Return the error for a server that does not respond, or accepts nothing."""
        since = (self.since or datetime.now().astimezone()).strftime("%H:%M")
        code = fault.code if fault is not None else "store_away"
        if code == "store_away" and not self._met:
            code = "store_unreachable"
        return StoreAwayError(code, url=self._shown(), since=since)

    def _is_known(self, mine: Patience) -> bool:
        """Return whether the server has been away longer than the caller waits and was just checked."""
        now = time.monotonic()
        if self.since is None or now - self._began < mine.seconds or now - self._looked >= _LOOKS:
            return False
        return mine.seconds < math.inf

    def _try(
        self, request: httpx.Request, send: Send, mine: Patience, left: float
    ) -> tuple[Fault | None, httpx.Response | None]:
        self._looked = time.monotonic()
        answer = None
        self._address(request)
        request.extensions = {**request.extensions, "timeout": self._timeouts(request, mine, left)}
        try:
            answer = send(request)
            fault = of_answer(answer)
        except ResponseHandlingException as error:
            fault = of_error(error.source)
        if fault is not None and fault.act == "again":
            self._fails(fault)
            return fault, answer
        self._answers()
        if fault is not None:
            raise StoreError(fault.code, call="", url=self._shown(), name=_collection(request), detail=fault.detail)
        return None, answer

    def _timeouts(self, request: httpx.Request, mine: Patience, left: float) -> dict[str, float]:
        """Return the timeouts of a try in seconds: reads end with the caller's patience, writes may take longer."""
        known = self.since is not None and time.monotonic() - self._began > mine.seconds
        patient = _LOOK if known else max(_LOOK, min(left, _SLOW))
        writes = request.method in ("PUT", "DELETE", "PATCH") or bool(_WRITES.search(request.url.path))
        slow = _SLOW if writes and not known else patient
        return {"connect": min(patient, _LONGEST), "read": slow, "write": slow, "pool": slow}

    def _address(self, request: httpx.Request) -> None:
        """Send the request, which was made for the first address, to the current one."""
        here = self._addresses[self._at % len(self._addresses)]
        if len(self._addresses) > 1:
            request.url = request.url.copy_with(scheme=here.scheme, host=here.host, port=here.port)
            request.headers["Host"] = request.url.netloc.decode()

    def _pause_after(self, fault: Fault, tries: int) -> float:
        """Return the pause: growing, with jitter; none while there is an untried address."""
        if fault.elsewhere and (tries + 1) % len(self._addresses):
            return 0.0
        grown: float = min(_LONGEST, _PAUSE * 2 ** (tries // len(self._addresses)))
        return max(fault.after, grown * random.uniform(0.5, 1.5))

    def _fails(self, fault: Fault) -> None:
        self._looked = time.monotonic()
        if fault.elsewhere:
            self._at += 1
        if self.since is None:
            self.since, self._began = datetime.now().astimezone(), time.monotonic()
            said = f" ({fault.detail})" if fault.detail else ""
            log.warning("The database at %s does not answer%s; what needs it waits", self._shown(), said)

    def _answers(self) -> None:
        self._met = True
        if self.since is not None:
            log.warning("The database answers again, after %.0f s", time.monotonic() - self._began)
            self.since = None

    def _shown(self) -> str:
        return ", ".join(map(str, self._addresses))


def _slept(seconds: float, stopped: Callable[[], bool]) -> bool:
    """Wait `seconds`; return False if stopped before."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not stopped():
        time.sleep(min(left, 0.2))
    return not stopped()


def _collection(request: httpx.Request) -> str:
    found = re.match(r".*/collections/([^/]+)", request.url.path)
    return found[1] if found else ""
