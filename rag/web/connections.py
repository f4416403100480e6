"""Guarded connections (one DNS lookup, all IP addresses checked), reused and limited in rate per host.

Each fetch has a `Budget`, because the timeouts of HTTP clients apply to single reads: a server that sends a byte per
second never triggers them. A connection may serve several fetches in turn, each with its own budget. Bodies are
decompressed within a limit: 1.8 KB, gzipped twice, could otherwise become 1 GiB in one step.

Few requests to a host are open at a time, with a delay between them, in order of arrival. This includes redirects and
robots.txt, so two imports of one site share its limits.

A TLS handshake costs two round trips. Reusing a connection is as safe as opening one: it was opened to a checked IP
address for exactly this scheme, host and port, serves one fetch at a time, and is closed before the host is likely to
have moved to another server.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

import httpcore

from rag.errors import FetchError
from rag.text import lazy_regex
from rag.web.guard import CheckedUrl, check_addresses, is_literal

Resolve = Callable[[str, int], Sequence[str]]
Connect = Callable[[str, int, float], httpcore.NetworkStream]

_CONNECT_SECONDS = 10.0
_HEAD_END = lazy_regex(rb"\n\r?\n")
_FOLDED_LOCATION = lazy_regex(rb"\nlocation[ \t]*+:[^\n]*+\n[ \t]", re.IGNORECASE)


class WireLimitError(Exception):
    """A fetch received more bytes than allowed."""


class NameNotFoundError(Exception):
    """The DNS has no address for a host."""


class Budget:
    """The remaining budget of one fetch: seconds until its deadline, and bytes."""

    def __init__(self, seconds: float, wire_bytes: int) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._bytes = wire_bytes
        self._body_limit = 0
        self._decoded = 0

    def remaining(self) -> float:
        """Return the remaining seconds; raise httpcore.TimeoutException if there are none."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise httpcore.TimeoutException("fetch deadline exceeded")
        return seconds

    def receive(self, count: int) -> None:
        """Count received bytes; raise WireLimitError above the limit."""
        self._bytes -= count
        if self._bytes < 0:
            raise WireLimitError

    def extend(self, seconds: float) -> None:
        """Extend the deadline by the time spent waiting for a turn."""
        self._end += seconds

    def reserve_body(self, limit: int) -> int:
        """Reserve bytes for a body of up to `limit`; return its maximum decoded size.

        The bodies of all hops of a fetch share the largest limit.
        """
        self._bytes += max(0, limit - self._body_limit)
        self._body_limit = max(limit, self._body_limit)
        return max(0, limit - self._decoded)

    def count_body(self, size: int) -> None:
        """Count the decoded bytes of a body."""
        self._decoded += size

    @contextmanager
    def cap(self, seconds: float) -> Iterator[None]:
        """Cap the remaining time at `seconds` within the block."""
        end = self._end
        self._end = min(end, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._end = end


def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host in the system resolver's order. Raises OSError."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


def open_socket(address: str, port: int, timeout: float) -> httpcore.NetworkStream:
    """Open a TCP connection to an IP address. Raises httpcore.ConnectError or ConnectTimeout."""
    return httpcore.SyncBackend().connect_tcp(address, port, timeout)


class GuardedBackend(httpcore.NetworkBackend):
    """A backend that connects only to the host of a checked URL, and only if `check_addresses` allows its IP addresses.

    Check and connection share one lookup, which prevents DNS rebinding. TLS and the Host header use the name. `budget`
    is that of the current fetch.
    """

    def __init__(self, url: CheckedUrl, budget: Budget, resolve: Resolve, connect: Connect) -> None:
        self.budget = budget
        self._url = url
        self._resolve = resolve
        self._connect = connect

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        url = self._url
        if (host, port) != (url.host, url.port):
            raise httpcore.ConnectError("not the checked host")
        addresses = [host] if is_literal(host) else self._look_up(host, port)
        check_addresses(url, addresses)
        failure: Exception | None = None
        for address in addresses:
            try:
                stream = self._connect(address, port, min(_CONNECT_SECONDS, self.budget.remaining()))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = failure or error
            else:
                return BudgetStream(stream, self)
        raise failure or httpcore.ConnectError("no address")

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        """Resolve a name in a separate thread, because lookups have no timeout."""
        answers: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

        def resolve() -> None:
            try:
                answers.put(self._resolve(host, port))
            except OSError as error:
                answers.put(error)

        threading.Thread(target=resolve, name="dns", daemon=True).start()
        try:
            addresses = answers.get(timeout=self.budget.remaining())
        except Empty:
            raise httpcore.ConnectTimeout("DNS lookup timed out") from None
        if isinstance(addresses, OSError):
            raise NameNotFoundError(host) from addresses
        if not addresses:
            raise NameNotFoundError(host)
        return addresses


class BudgetStream(httpcore.NetworkStream):
    """A connection whose operations all end by the deadline of its backend's budget."""

    def __init__(self, stream: httpcore.NetworkStream, backend: GuardedBackend) -> None:
        self._stream = stream
        self._backend = backend
        self._head: bytearray | None = bytearray()  # the headers of a response until they are complete

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # Linux delays ACKs by 40 ms on an idle connection. With Nagle's algorithm, a server that sends headers and body
        # in two pieces waits as long before it sends the second.
        connection = self._stream.get_extra_info("socket")
        if connection is not None and hasattr(socket, "TCP_QUICKACK"):
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        data = self._stream.read(max_bytes, self._backend.budget.remaining())
        self._backend.budget.receive(len(data))
        self._check_head(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._head = bytearray()
        self._stream.write(buffer, self._backend.budget.remaining())

    def _check_head(self, data: bytes) -> None:
        """Reject a folded Location header, since unfolding would turn an injected line break into a space."""
        if self._head is None:
            return
        start = max(0, len(self._head) - 3)
        self._head += data
        if end := _HEAD_END.search(self._head, start):
            if _FOLDED_LOCATION.search(self._head, 0, end.end()):
                raise httpcore.RemoteProtocolError("folded Location header")
            self._head = None

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._backend.budget.remaining())
        return BudgetStream(stream, self._backend)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def tls_context() -> ssl.SSLContext:
    """Return a TLS context that trusts the system's certificate authorities (including a company's) and Mozilla's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(cafile=certifi.where())
    return context


# IANA's registry of content codings. As in browsers, other names ("none", "utf-8") and "identity" are ignored.
_CODINGS = frozenset("aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd".split())
_GZIP = ("gzip", "x-gzip")
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
# The windows for zlib of the codings that are requested; servers send "deflate" with and without the zlib header.
_WINDOWS: dict[str, tuple[int, ...]] = {**dict.fromkeys(_GZIP, (_GZIP_WINDOW,)), "deflate": (15, -15)}
_BINARY = lazy_regex(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in text, and early in compressed data
_SNIFFED = 1024
_CHUNK_SIZE = 4096  # small, because zlib copies the remaining input after each gzip member


class TooLargeError(Exception):
    """The decoded body is larger than its limit."""


class UnknownEncodingError(Exception):
    """The body has an encoding that was not requested, or several."""


class CorruptError(Exception):
    """The compressed data is damaged or ends early."""


def decode_body(body: bytes, encoding: str, limit: int) -> bytes:
    """Decode a `body` received with the Content-Encoding `encoding` to up to `limit` bytes.

    Removes one layer of compression, or none if the declared one was not applied. Raises TooLargeError,
    UnknownEncodingError or CorruptError.
    """
    declared = [name for name in map(str.strip, encoding.lower().split(",")) if name in _CODINGS]
    # The bytes may show that the declared coding was not applied.
    is_other_format = bool(declared) and declared[-1] in _GZIP and not body.startswith(_GZIP_MAGIC)
    if not declared or is_other_format or not _BINARY.search(body, 0, _SNIFFED):
        if len(body) > limit:
            raise TooLargeError
        return body
    if len(declared) > 1 or declared[0] not in _WINDOWS:
        raise UnknownEncodingError(encoding)
    failure = zlib.error()
    for window in _WINDOWS[declared[0]]:
        try:
            return _inflate(body, window, limit)
        except zlib.error as error:
            failure = error
    raise CorruptError from failure


def _inflate(data: bytes, window: int, limit: int) -> bytes:
    """Decompress all members of `data`. Raises zlib.error if it is damaged or ends early."""
    body = bytearray()
    stream = zlib.decompressobj(window)
    position = 0
    while position < len(data):
        chunk = data[position : position + _CHUNK_SIZE]
        body += stream.decompress(chunk, limit - len(body) + 1)
        if len(body) > limit:
            raise TooLargeError
        position += len(chunk) - len(stream.unused_data)
        if stream.eof:
            if not data.startswith(_GZIP_MAGIC, position):
                return bytes(body)  # like browsers, ignore trailing data
            stream = zlib.decompressobj(_GZIP_WINDOW)
    raise zlib.error("truncated data")


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
        with self._use_queue(host) as queue:
            queue.acquire(url, lambda: self.is_closed or is_cancelled(), without_delay=is_redirect)
            try:
                yield time.monotonic() - start
            finally:
                queue.release()

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
        """Yield the queue of `host`, marked as in use so that it is not evicted meanwhile."""
        with self._lock:
            if host not in self._queues and len(self._queues) >= _MAX_HOSTS:
                self._queues = {
                    key: queue
                    for key, queue in self._queues.items()
                    if queue.users or queue.delay > self._delay or queue.is_busy()
                }
            queue = self._queues.setdefault(host, _HostQueue(self.limit, self._delay))
            queue.users += 1
        try:
            yield queue
        finally:
            with self._lock:
                queue.users -= 1


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
        target = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
        )
        request = httpcore.Request("GET", target, headers=[(b"Host", url.authority.encode("ascii")), *headers])
        entry, response = self._send(url, request, budget)
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
        backend = self._open_backend(url, budget)
        origin = httpcore.Origin(url.scheme.encode(), url.host.encode(), url.port)
        context = self._tls() if url.scheme == "https" else None
        connection = httpcore.HTTPConnection(
            origin, ssl_context=context, keepalive_expiry=IDLE_SECONDS, network_backend=backend
        )
        try:
            return _Entry(_origin(url), connection, backend), connection.handle_request(request)
        except BaseException:
            connection.close()
            raise

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


@dataclass(eq=False, slots=True)
class _Entry:
    """An open connection with its origin and backend."""

    origin: Origin
    connection: httpcore.HTTPConnection
    backend: GuardedBackend
    opened: float = field(default_factory=time.monotonic)

    def is_dead(self) -> bool:
        return (
            time.monotonic() - self.opened > MAX_AGE
            or self.connection.is_closed()
            or bool(self.connection.has_expired())
        )


def _origin(url: CheckedUrl) -> Origin:
    return url.scheme, url.host, url.port


def _drain(response: httpcore.Response, budget: Budget) -> None:
    """Drain a response with a short body, so that its connection can be reused."""
    lengths = [value for name, value in response.headers if name.lower() == b"content-length"]
    is_short = len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0]) <= _MAX_DRAIN
    if response.status != 304 and not is_short:
        return
    try:
        with budget.cap(_DRAIN_SECONDS):
            for _ in response.iter_stream():
                pass
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, WireLimitError):
        return  # closing the response closes the connection
    except RuntimeError:
        return  # already read
