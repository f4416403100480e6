"""Fetching: the one place from which a request leaves for an address that somebody typed.

URL → `check_url` → a turn at the host → one look-up and a checked connection → redirects by hand, each
through the same → raw bytes, decoded within bounds. httpcore is used below httpx's client, which would
add redirects, cookies, proxies from the environment and unbounded decompression that all had to be
switched off again.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self

import httpcore

from rag.errors import FetchError
from rag.messages.ingest import because
from rag.tracing import span
from rag.web import transport
from rag.web.body import BodyDecoder, CorruptError, TooLargeError, UnknownEncodingError
from rag.web.connections import Connections, HostGates
from rag.web.guard import CheckedUrl, Pair, allow_list, check_url, shown
from rag.web.http_headers import conditions, entity_tag, header, http_date, retry_after
from rag.web.media import byte_limit, check_declared, media_type, parse_content_type
from rag.web.refusals import led_to_refusal, plain_errors, status_cause, too_large
from rag.web.url_key import join_url

logger = logging.getLogger(__name__)

USER_AGENT = "Pagelight/0.1 (+page reader; fetches the pages its user asks for)"
MAX_REDIRECTS = 5
_HEADER_ROOM = 1024 * 1024
_REDIRECTS = frozenset([301, 302, 303, 307, 308])
_PERMANENT = frozenset([301, 308])
_BUSY = frozenset([429, 503])
_HEADERS = (
    (b"User-Agent", USER_AGENT.encode()),
    (b"Accept", b"text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.1"),
    (b"Accept-Language", b"en,zh;q=0.9,*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address answered: decoded `body` bytes of one kind of document.

    `final_url` is where the redirects ended, `redirects` the addresses in between and it, in order;
    `moved_to` is `final_url` where every redirect was a permanent one, else "". `charset` is the declared
    one, not yet verified; `seconds` covers everything from the look-up on, without waiting for a turn.
    `etag` and `last_modified` are as received, for the next fetch. With status 304 the page is what
    these name still, and `body` is empty.
    """

    url: str
    final_url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    redirects: tuple[str, ...]
    seconds: float
    etag: str = ""
    last_modified: str = ""
    moved_to: str = ""


class Fetcher:
    """Fetches documents; one object serves many threads and keeps connections between fetches.

    `allow` holds host and port pairs for which the rules on names, ports and addresses are lifted.
    `deadline` bounds a whole fetch in seconds: look-up, connection, headers, body and redirects, but
    not the wait for a turn at the host, which `gates` gives.
    """

    def __init__(
        self,
        allow: Iterable[Pair] = (),
        *,
        deadline: float = 30.0,
        resolve: transport.Resolve = transport.resolve_host,
        connect: transport.Connect = transport.open_socket,
        gates: HostGates | None = None,
    ) -> None:
        self.gates = gates or HostGates()
        self._allow = allow_list(allow)
        self._deadline = deadline
        self._resolve = resolve
        self._connect = connect
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = threading.Lock()
        self._connections = Connections(self._backend, self._context)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections and turn away fetches that wait for their turn."""
        self.gates.close()
        self._connections.close()

    def check(self, url: str) -> CheckedUrl:
        """`url` as it would be fetched; no network. Raises FetchError("blocked")."""
        return check_url(url.strip(), self._allow)

    def fetch(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        raw: int = 0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Fetched:
        """Fetch the page at `url`, which was not checked before. Raises FetchError with a reason code.

        With `etag` or `last_modified` the server is asked for what has changed since only. With `raw`,
        up to that many bytes of any type are taken unjudged: robots.txt and lists of pages come under
        many types. `stopped` is asked while waiting for a turn; then "cancelled" is raised. A server
        that is too busy is told by `retry_after` among the error's parameters, in seconds.
        """
        start = time.monotonic()
        given = url.strip()
        first = check_url(given, self._allow)
        budget = transport.Budget(self._deadline, _HEADER_ROOM)
        with span(first.host, "fetch", url=shown(given)) as done, plain_errors(given, first, budget):
            headers = [*_HEADERS, *conditions(etag, last_modified)]
            run = _Run(self._connections, self.gates, self._allow, given, headers, budget, raw, stopped)
            fetched, waited = run.follow(first)
            done.attributes.update(status=fetched.status, bytes=len(fetched.body))
        seconds = time.monotonic() - start - waited
        logger.info("fetched %s: %d, %d bytes in %.2f s", shown(given), fetched.status, len(fetched.body), seconds)
        return replace(fetched, seconds=seconds)

    def _backend(self, url: CheckedUrl, budget: transport.Budget) -> transport.GuardedBackend:
        return transport.GuardedBackend(url, budget, self._resolve, self._connect)

    def _context(self) -> ssl.SSLContext:
        with self._tls_lock:
            if self._tls is None:
                self._tls = transport.tls_context()
            return self._tls


@dataclass(frozen=True, slots=True)
class _Moved:
    """A redirect: its Location, and whether it is for good."""

    location: bytes
    permanent: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """One fetch: the address it began with, what it asks, and what it may spend."""

    connections: Connections
    gates: HostGates
    allow: frozenset[Pair]
    given: str
    headers: list[tuple[bytes, bytes]]
    budget: transport.Budget
    raw: int
    stopped: Callable[[], bool]

    def follow(self, url: CheckedUrl) -> tuple[Fetched, float]:
        """Request `url` and what it redirects to until a page answers; and the seconds spent waiting."""
        path = [url]
        permanent, waited = True, 0.0
        while True:
            again = len(path) > 1 and path[-1].pair == path[-2].pair
            with self.gates.enter((path[-1].host, path[-1].port), self.given, self.stopped, redirected=again) as spent:
                self.budget.extend(spent)
                answer = self._request(path[-1])
            waited += spent
            if isinstance(answer, Fetched):
                redirects = tuple(step.raw for step in path[1:])
                moved = path[-1].raw if redirects and permanent else ""
                return replace(answer, redirects=redirects, moved_to=moved), waited
            permanent = permanent and answer.permanent
            path.append(self._next(path, answer.location))

    def _request(self, url: CheckedUrl) -> Fetched | _Moved:
        with self._led_to(url), self.connections.get(url, self.headers, self.budget) as response:
            if response.status in _REDIRECTS:
                return _Moved(header(response.headers, b"location"), response.status in _PERMANENT)
            return self._receive(response, url)

    def _receive(self, response: httpcore.Response, url: CheckedUrl) -> Fetched:
        tag = entity_tag(header(response.headers, b"etag").decode("latin-1"))
        date = http_date(header(response.headers, b"last-modified").decode("latin-1"))
        asked = len(self.headers) > len(_HEADERS)
        if response.status == 304 and asked:
            return Fetched(self.given, url.raw, 304, "", None, b"", (), 0.0, tag, date)
        if not 200 <= response.status < 300:
            self._refused(response, url)
        essence, charset = parse_content_type(header(response.headers, b"content-type").decode("latin-1"))
        if self.raw:
            kind, body = essence, self._read(response, self.raw)
        else:
            check_declared(essence, self.given)
            body = self._read(response, byte_limit(essence))
            kind = media_type(body, essence, url.raw, charset)
            if len(body) > byte_limit(kind):
                too_large(self.given, byte_limit(kind))
        return Fetched(self.given, url.raw, response.status, kind, charset, body, (), 0.0, tag, date)

    def _refused(self, response: httpcore.Response, url: CheckedUrl) -> NoReturn:
        """Raise what a status other than success says; a busy server is left alone for a while."""
        wait = retry_after(response.headers) if response.status in _BUSY else None
        if wait is not None:
            self.gates.pause((url.host, url.port), wait)
        raise FetchError(
            "http_error",
            url=shown(self.given),
            status=response.status,
            **({} if wait is None else {"retry_after": wait}),
            **because(status_cause(response.status)),
        )

    def _read(self, response: httpcore.Response, limit: int) -> bytes:
        self.budget.extend(wire_bytes=limit)
        encoding = header(response.headers, b"content-encoding").decode("latin-1")
        try:
            decoder = BodyDecoder(encoding, limit)
            for piece in response.iter_stream():
                decoder.feed(piece)
            return decoder.finish()
        except (TooLargeError, transport.WireLimitError):
            too_large(self.given, limit)
        except UnknownEncodingError:
            raise FetchError(
                "unreadable", url=shown(self.given), **because("encoding", encoding=shown(encoding, 60))
            ) from None
        except CorruptError as error:
            raise FetchError("unreadable", url=shown(self.given), **because("corrupt")) from error

    def _next(self, path: list[CheckedUrl], location: bytes) -> CheckedUrl:
        if not location:
            self._astray("no_target")
        if len(path) > MAX_REDIRECTS:
            self._astray("too_many_redirects", limit=MAX_REDIRECTS)
        target = join_location(path[-1].raw, location)
        try:
            checked = check_url(target, self.allow)
        except FetchError as error:
            raise led_to_refusal(self.given, target, error) from error
        if any(step.scheme == checked.scheme and _place(step) == _place(checked) for step in path):
            self._astray("redirect_loop")
        return checked

    def _astray(self, cause: str, **params: int) -> NoReturn:
        raise FetchError("redirects", url=shown(self.given), **because(cause, **params))

    @contextmanager
    def _led_to(self, url: CheckedUrl) -> Iterator[None]:
        """A refusal at connection time names the address that was typed, and where it led."""
        try:
            yield
        except FetchError as error:
            if error.code != "blocked" or url.raw == self.given:
                raise
            raise led_to_refusal(self.given, url.raw, error) from error


def join_location(base: str, location: bytes) -> str:
    """The absolute form of a Location header.

    Text that `check_url` will refuse is handed on untouched, because browsers drop line breaks and tabs
    from an address silently.
    """
    text = location.decode("utf-8", "replace")
    if any(character <= " " or character == "\\" for character in text):
        return text
    return join_url(base, text) or text


def _place(url: CheckedUrl) -> tuple[str, int, str]:
    return url.host, url.port, url.target
