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


class RateLimiter:
    """Rate limits per host: up to `limit` open requests, which start at least `delay` seconds apart.

    A host is a name and a port. Requests to one host start in order of arrival.
    """

    def __init__(self, limit: int = LIMIT, delay: float = DELAY) -> None:
        if limit < 1 or delay < 0:
            raise ValueError("limit must be at least 1, delay must not be negative")
        self.limit = limit
        self._delay = delay
        self._queues: dict[Host, _HostQueue] = {}
        self._lock = threading.Lock()
        self.is_closed = False

    @contextmanager
    def slot(
        self, host: Host, url: str, is_cancelled: Callable[[], bool] = lambda: False, *, is_redirect: bool = False
    ) -> Iterator[float]:
        """Acquire a slot at `host` for the block; yield the seconds waited.

        Redirects need a slot but no delay, as the server itself caused them. Raises FetchError("cancelled")
        if `is_cancelled` returns True or the limiter closes first.
        """
        start = time.monotonic()
        queue = self._get_queue(host)
        try:
            queue.acquire(url, lambda: self.is_closed or is_cancelled(), without_delay=is_redirect)
            try:
                yield time.monotonic() - start
            finally:
                queue.release()
        finally:
            with self._lock:
                queue.users -= 1

    def slow_down(self, host: Host, delay: float) -> None:
        """Raise the delay between requests to `host` to `delay` seconds, up to MAX_DELAY."""
        with self._use_queue(host) as queue:
            queue.delay = max(queue.delay, min(delay, MAX_DELAY))

    def delay_of(self, host: Host) -> float:
        """Return the delay between requests to `host` in seconds."""
        with self._use_queue(host) as queue:
            return queue.delay

    def pause(self, host: Host, seconds: float) -> None:
        """Start no request to `host` for `seconds`, up to MAX_PAUSE, after it reported overload."""
        with self._use_queue(host) as queue:
            queue.delay_start(min(seconds, MAX_PAUSE))

    def close(self) -> None:
        """Cancel all waiting requests."""
        self.is_closed = True
        with self._lock:
            queues = list(self._queues.values())
        for queue in queues:
            queue.wake()

    @contextmanager
    def _use_queue(self, host: Host) -> Iterator[_HostQueue]:
        queue = self._get_queue(host)
        try:
            yield queue
        finally:
            with self._lock:
                queue.users -= 1

    def _get_queue(self, host: Host) -> _HostQueue:
        """Return the queue of `host`, marked as in use so that it is not evicted meanwhile."""
        with self._lock:
            if host not in self._queues and len(self._queues) >= _MAX_HOSTS:
                self._queues = {
                    key: queue for key, queue in self._queues.items() if queue.users or queue.has_state(self._delay)
                }
            queue = self._queues.setdefault(host, _HostQueue(self.limit, self._delay))
            queue.users += 1
            return queue


class _HostQueue:
    """The queue of one host."""

    def __init__(self, limit: int, delay: float) -> None:
        self.delay = delay
        self.users = 0
        self._limit = limit
        self._open = 0
        self._next_start = 0.0
        self._tickets: deque[object] = deque()
        self._changed = threading.Condition()

    def acquire(self, url: str, is_cancelled: Callable[[], bool], *, without_delay: bool) -> None:
        ticket = object()
        with self._changed:
            self._tickets.append(ticket)
            try:
                while (remaining := self._wait_seconds(ticket, without_delay)) > 0:
                    if is_cancelled():
                        raise FetchError("cancelled", url=url)
                    self._changed.wait(min(remaining, _CHECK_SECONDS))
                self._open += 1
                self._next_start = max(self._next_start, time.monotonic() + self.delay)
            finally:
                self._tickets.remove(ticket)
                self._changed.notify_all()

    def release(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def delay_start(self, seconds: float) -> None:
        with self._changed:
            self._next_start = max(self._next_start, time.monotonic() + seconds)

    def is_busy(self) -> bool:
        with self._changed:
            return bool(self._tickets) or self._open >= self._limit or self._next_start > time.monotonic()

    def has_state(self, delay: float) -> bool:
        """Return whether the queue differs from a new one with this `delay`."""
        return self.delay > delay or self.is_busy()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait_seconds(self, ticket: object, without_delay: bool) -> float:
        """Return the seconds until `ticket` may start; infinite while it waits for other requests."""
        if self._tickets[0] is not ticket or self._open >= self._limit:
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
            _drain(response, budget)
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


def _drain(response: httpcore.Response, budget: Budget) -> None:
    """Drain a response with a short body, so that its connection can be reused."""
    if not _has_short_body(response):
        return
    try:
        with budget.cap(_DRAIN_SECONDS):
            for _ in response.iter_stream():
                pass
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, WireLimitError):
        return  # closing the response closes the connection
    except RuntimeError:
        return  # already read


def _has_short_body(response: httpcore.Response) -> bool:
    if response.status == 304:
        return True
    lengths = [value for name, value in response.headers if name.lower() == b"content-length"]
    return len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0]) <= _MAX_DRAIN
