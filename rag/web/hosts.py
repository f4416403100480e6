"""Good manners towards a server: few requests open at once, some time between them, each in its turn.

Every request passes here, those for redirects and robots.txt too, so that two imports of one site
share what that site allows.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag.errors import FetchError

Host = tuple[str, int]

LIMIT = 2
DELAY = 0.1
MAX_DELAY = 30.0
MAX_PAUSE = 10.0
_LOOK_AGAIN = 0.25  # how often a waiting request asks whether it is still wanted
_KNOWN_HOSTS = 500


class HostGates:
    """Lets at most `limit` requests a host be open, their starts at least `delay` seconds apart.

    A host is a name and a port. Requests of one host start in the order in which they came.
    """

    def __init__(self, limit: int = LIMIT, delay: float = DELAY) -> None:
        if limit < 1 or delay < 0:
            raise ValueError("a host takes at least one request, and no negative delay")
        self.limit = limit
        self._delay = delay
        self._gates: dict[Host, _Gate] = {}
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def enter(
        self, host: Host, url: str, stopped: Callable[[], bool] = lambda: False, *, redirected: bool = False
    ) -> Iterator[float]:
        """Wait for a place at `host`, hold it for the block, and yield the seconds waited.

        `redirected` takes a place but needs no delay: the server itself asked for this request.
        Raises FetchError("cancelled") when `stopped` says so or the gates close before the turn comes.
        """
        began = time.monotonic()
        gate = self._gate(host)
        try:
            gate.wait_turn(url, lambda: self._closed or stopped(), free=redirected)
            try:
                yield time.monotonic() - began
            finally:
                gate.leave()
        finally:
            with self._lock:
                gate.users -= 1

    def slow_down(self, host: Host, delay: float) -> None:
        """Keep at least `delay` seconds between requests to `host`, at most MAX_DELAY."""
        with self._used(host) as gate:
            gate.delay = max(gate.delay, min(delay, MAX_DELAY))

    def pause(self, host: Host, seconds: float) -> None:
        """Start no request to `host` for `seconds`, at most MAX_PAUSE: it said that it has too much to do."""
        with self._used(host) as gate:
            gate.hold(min(seconds, MAX_PAUSE))

    def close(self) -> None:
        """Turn away whoever still waits."""
        self._closed = True
        with self._lock:
            gates = list(self._gates.values())
        for gate in gates:
            gate.wake()

    @contextmanager
    def _used(self, host: Host) -> Iterator[_Gate]:
        gate = self._gate(host)
        try:
            yield gate
        finally:
            with self._lock:
                gate.users -= 1

    def _gate(self, host: Host) -> _Gate:
        """The gate of `host`, counted as used, so that it is not forgotten meanwhile."""
        with self._lock:
            if host not in self._gates and len(self._gates) >= _KNOWN_HOSTS:
                self._gates = {key: one for key, one in self._gates.items() if one.users or one.matters(self._delay)}
            gate = self._gates.setdefault(host, _Gate(self.limit, self._delay))
            gate.users += 1
            return gate


class _Gate:
    """The queue before one host."""

    def __init__(self, limit: int, delay: float) -> None:
        self.delay = delay
        self.users = 0
        self._limit = limit
        self._open = 0
        self._next_start = 0.0
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    def wait_turn(self, url: str, unwanted: Callable[[], bool], *, free: bool) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while (left := self._left(ticket, free)) > 0:
                    if unwanted():
                        raise FetchError("cancelled", url=url)
                    self._changed.wait(min(left, _LOOK_AGAIN))
                self._open += 1
                self._next_start = max(self._next_start, time.monotonic() + self.delay)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def leave(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def hold(self, seconds: float) -> None:
        with self._changed:
            self._next_start = max(self._next_start, time.monotonic() + seconds)

    def is_busy(self) -> bool:
        with self._changed:
            return bool(self._queue) or self._open >= self._limit or self._next_start > time.monotonic()

    def matters(self, delay: float) -> bool:
        """Whether it holds more than a new gate with this `delay` would."""
        return self.delay > delay or self.is_busy()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _left(self, ticket: object, free: bool) -> float:
        """Seconds until `ticket` may start as far as is known: infinite while others come first."""
        if self._queue[0] is not ticket or self._open >= self._limit:
            return float("inf")
        return 0.0 if free else self._next_start - time.monotonic()
