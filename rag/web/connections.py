"""Rate limits per host, and reuse of connections to the same host.

Few requests to a host are open at a time, with a delay between them, in order of arrival. This includes redirects and
robots.txt, so two imports of one site share its limits.

A TLS handshake costs two round trips. Reusing a connection is as safe as opening one: it was opened to a checked IP
address for exactly this scheme, host and port, serves one fetch at a time, and is closed before the host is likely to
have moved to another server.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpcore

from rag.errors import FetchError
from rag.web.guard import CheckedUrl
from rag.web.transport import Budget, GuardedBackend, WireLimitError

Host = tuple[str, int]

LIMIT = 2
DELAY = 0.1
MAX_DELAY = 30.0
MAX_PAUSE = 10.0
_CHECK_SECONDS = 0.25  # interval at which a waiting request checks for cancellation
_MAX_HOSTS = 500


class HostGates:
    """Rate limits per host: up to `limit` open requests, which start at least `delay` seconds apart.

    A host is a name and a port. Requests to one host start in order of arrival.
    """

    def __init__(self, limit: int = LIMIT, delay: float = DELAY) -> None:
        if limit < 1 or delay < 0:
            raise ValueError("a host takes at least one request, and no negative delay")
        self.limit = limit
        self._delay = delay
        self._gates: dict[Host, _Gate] = {}
        self._lock = threading.Lock()
        self.is_closed = False

    @contextmanager
    def enter(
        self, host: Host, url: str, stopped: Callable[[], bool] = lambda: False, *, redirected: bool = False
    ) -> Iterator[float]:
        """Acquire a slot at `host` for the block; yield the seconds waited.

        `redirected` requests need a slot but no delay, as the server itself caused them. Raises FetchError("cancelled")
        if `stopped` returns True or the gates close first.
        """
        start = time.monotonic()
        gate = self._gate(host)
        try:
            gate.wait_turn(url, lambda: self.is_closed or stopped(), without_delay=redirected)
            try:
                yield time.monotonic() - start
            finally:
                gate.leave()
        finally:
            with self._lock:
                gate.users -= 1

    def slow_down(self, host: Host, delay: float) -> None:
        """Raise the delay between requests to `host` to `delay` seconds, up to MAX_DELAY."""
        with self._use_gate(host) as gate:
            gate.delay = max(gate.delay, min(delay, MAX_DELAY))

    def delay_of(self, host: Host) -> float:
        """Return the delay between requests to `host` in seconds."""
        with self._use_gate(host) as gate:
            return gate.delay

    def pause(self, host: Host, seconds: float) -> None:
        """Start no request to `host` for `seconds`, up to MAX_PAUSE, after it reported overload."""
        with self._use_gate(host) as gate:
            gate.delay_start(min(seconds, MAX_PAUSE))

    def close(self) -> None:
        """Cancel all waiting requests."""
        self.is_closed = True
        with self._lock:
            gates = list(self._gates.values())
        for gate in gates:
            gate.wake()

    @contextmanager
    def _use_gate(self, host: Host) -> Iterator[_Gate]:
        gate = self._gate(host)
        try:
            yield gate
        finally:
            with self._lock:
                gate.users -= 1

    def _gate(self, host: Host) -> _Gate:
        """Return the gate of `host`, marked as in use so that it is not evicted meanwhile."""
        with self._lock:
            if host not in self._gates and len(self._gates) >= _MAX_HOSTS:
                self._gates = {
                    key: gate for key, gate in self._gates.items() if gate.users or gate.has_state(self._delay)
                }
            gate = self._gates.setdefault(host, _Gate(self.limit, self._delay))
            gate.users += 1
            return gate


class _Gate:
    """The queue of one host."""

    def __init__(self, limit: int, delay: float) -> None:
        self.delay = delay
        self.users = 0
        self._limit = limit
        self._open = 0
        self._next_start = 0.0
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    def wait_turn(self, url: str, is_cancelled: Callable[[], bool], *, without_delay: bool) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while (remaining := self._wait_seconds(ticket, without_delay)) > 0:
                    if is_cancelled():
                        raise FetchError("cancelled", url=url)
                    self._changed.wait(min(remaining, _CHECK_SECONDS))
                self._open += 1
                self._next_start = max(self._next_start, time.monotonic() + self.delay)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def leave(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def delay_start(self, seconds: float) -> None:
        with self._changed:
            self._next_start = max(self._next_start, time.monotonic() + seconds)

    def is_busy(self) -> bool:
        with self._changed:
            return bool(self._queue) or self._open >= self._limit or self._next_start > time.monotonic()

    def has_state(self, delay: float) -> bool:
        """Return whether the gate differs from a new one with this `delay`."""
        return self.delay > delay or self.is_busy()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait_seconds(self, ticket: object, without_delay: bool) -> float:
        """Return the seconds until `ticket` may start; infinite while it waits for other requests."""
        if self._queue[0] is not ticket or self._open >= self._limit:
            return float("inf")
        return 0.0 if without_delay else self._next_start - time.monotonic()


IDLE_SECONDS = 15.0
MAX_AGE = 120.0
MAX_IDLE = 32
_MAX_DRAIN = 16 * 1024
_DRAIN_SECONDS = 0.5

Origin = tuple[str, str, int]
OpenBackend = Callable[[CheckedUrl, Budget], GuardedBackend]


class Connections:
    """A pool of a fetcher's idle connections; safe to share between threads."""

    def __init__(self, open_backend: OpenBackend, tls: Callable[[], ssl.SSLContext]) -> None:
        self._open_backend = open_backend
        self._tls = tls
        self._idle: deque[_Entry] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def get(self, url: CheckedUrl, headers: list[tuple[bytes, bytes]], budget: Budget) -> Iterator[httpcore.Response]:
        """Yield the response to a GET of `url`, its body unread; raise errors of httpcore and `check_addresses`.

        An idle connection that the server has closed is replaced by a new one.
        """
        entry, response = self._send(url, _request(url, headers), budget)
        try:
            yield response
        finally:
            _finish(response, budget)
            response.close()
            self._release(entry)

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            idle, self._idle = list(self._idle), deque()
        for entry in idle:
            entry.connection.close()

    def _send(self, url: CheckedUrl, request: httpcore.Request, budget: Budget) -> tuple[_Entry, httpcore.Response]:
        idle = self._take_idle(url)
        if idle is not None:
            idle.backend.budget = budget
            try:
                return idle, idle.connection.handle_request(request)
            except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
                idle.connection.close()
        opened = self._open(url, budget)
        try:
            return opened, opened.connection.handle_request(request)
        except BaseException:
            opened.connection.close()
            raise

    def _open(self, url: CheckedUrl, budget: Budget) -> _Entry:
        backend = self._open_backend(url, budget)
        origin = httpcore.Origin(url.scheme.encode(), url.host.encode(), url.port)
        context = self._tls() if url.scheme == "https" else None
        connection = httpcore.HTTPConnection(
            origin, ssl_context=context, keepalive_expiry=IDLE_SECONDS, network_backend=backend
        )
        return _Entry(_origin(url), connection, backend)

    def _take_idle(self, url: CheckedUrl) -> _Entry | None:
        """Return the most recently used idle connection to the origin of `url`, if one is alive."""
        origin = _origin(url)
        with self._lock:
            dead = [entry for entry in self._idle if entry.is_dead()]
            alive = [entry for entry in self._idle if entry not in dead]
            match = next((entry for entry in reversed(alive) if entry.origin == origin), None)
            self._idle = deque(entry for entry in alive if entry is not match)
        for entry in dead:
            entry.connection.close()
        return match

    def _release(self, entry: _Entry) -> None:
        if not entry.connection.is_idle():
            entry.connection.close()
            return
        with self._lock:
            self._idle.append(entry)
            surplus = self._idle.popleft() if len(self._idle) > MAX_IDLE else None
        if surplus:
            surplus.connection.close()


class _Entry:
    """An open connection with its origin and backend."""

    def __init__(self, origin: Origin, connection: httpcore.HTTPConnection, backend: GuardedBackend) -> None:
        self.origin = origin
        self.connection = connection
        self.backend = backend
        self._opened = time.monotonic()

    def is_dead(self) -> bool:
        return (
            time.monotonic() - self._opened > MAX_AGE
            or self.connection.is_closed()
            or bool(self.connection.has_expired())
        )


def _request(url: CheckedUrl, headers: list[tuple[bytes, bytes]]) -> httpcore.Request:
    target = httpcore.URL(
        scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
    )
    return httpcore.Request("GET", target, headers=[(b"Host", url.authority.encode("ascii")), *headers])


def _origin(url: CheckedUrl) -> Origin:
    return url.scheme, url.host, url.port


def _finish(response: httpcore.Response, budget: Budget) -> None:
    """Drain a response with a short body, so that its connection can be reused."""
    if not _is_small(response):
        return
    try:
        with budget.at_most(_DRAIN_SECONDS):
            for _ in response.iter_stream():
                pass
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, WireLimitError):
        return  # closing the response closes the connection
    except RuntimeError:
        return  # already read


def _is_small(response: httpcore.Response) -> bool:
    if response.status == 304:
        return True
    lengths = [value for name, value in response.headers if name.lower() == b"content-length"]
    return len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0]) <= _MAX_DRAIN
