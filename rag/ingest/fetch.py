"""Fetching: the one place from which a request leaves for an address that somebody typed.

URL → `check_url` → one look-up and a checked connection → redirects by hand, each through the same two
→ raw bytes, decoded within bounds. httpcore is used below httpx's client, which would add redirects,
cookies, proxies from the environment and unbounded decompression that all had to be switched off again.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self
from urllib.parse import urljoin

import httpcore

from rag.errors import FetchError
from rag.ingest import transport
from rag.ingest.body import BodyDecoder, CorruptError, TooLargeError, UnknownEncodingError
from rag.ingest.guard import CheckedUrl, Pair, allow_list, check_url, shown
from rag.ingest.media import MediaType, check_declared, media_type, parse_content_type
from rag.messages.ingest import because

logger = logging.getLogger(__name__)

USER_AGENT = "Pagelight/0.1 (+page reader; fetches the pages its user asks for)"
MAX_REDIRECTS = 5
MEGABYTE = 1024 * 1024
MAX_BYTES = 5 * MEGABYTE
MAX_HTML_BYTES = 2 * MEGABYTE
_HEADER_ROOM = 256 * 1024
_REDIRECTS = frozenset([301, 302, 303, 307, 308])
_HEADERS = (
    (b"User-Agent", USER_AGENT.encode()),
    (b"Accept", b"text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.1"),
    (b"Accept-Language", b"en,zh;q=0.9,*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address answered: decoded `body` bytes of one kind of text.

    `final_url` is where the redirects ended, `redirects` the addresses in between and it, in order.
    `charset` is the declared one, not yet verified; `seconds` covers everything from the look-up on.
    """

    url: str
    final_url: str
    status: int
    content_type: MediaType
    charset: str | None
    body: bytes
    redirects: tuple[str, ...]
    seconds: float


class Fetcher:
    """Fetches pages of text; one object serves many threads, each fetch has connections of its own.

    `allow` holds host and port pairs for which the rules on names, ports and addresses are lifted.
    `deadline` bounds a whole fetch in seconds: look-up, connection, headers, body and redirects.
    """

    def __init__(
        self,
        allow: Iterable[Pair] = (),
        *,
        deadline: float = 30.0,
        resolve: transport.Resolve = transport.resolve_host,
        connect: transport.Connect = transport.open_socket,
    ) -> None:
        self._allow = allow_list(allow)
        self._deadline = deadline
        self._resolve = resolve
        self._connect = connect
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing stays open between fetches; here for symmetry with other resources."""

    def fetch(self, url: str) -> Fetched:
        """Fetch the page at `url`, which was not checked before. Raises FetchError with a reason code."""
        start = time.monotonic()
        given = url.strip()
        first = check_url(given, self._allow)
        budget = transport.Budget(self._deadline, MAX_BYTES + _HEADER_ROOM)
        backend = transport.GuardedBackend(budget, self._resolve, self._connect)
        with (
            _plain_errors(given, first, budget),
            httpcore.ConnectionPool(ssl_context=self._context(), network_backend=backend) as pool,
        ):
            fetched = _Run(pool, backend, self._allow, given).follow(first)
        seconds = time.monotonic() - start
        logger.info("fetched %s: %d bytes in %.2f s", shown(given), len(fetched.body), seconds)
        return replace(fetched, seconds=seconds)

    def _context(self) -> ssl.SSLContext:
        with self._tls_lock:
            if self._tls is None:
                self._tls = transport.tls_context()
            return self._tls


@dataclass(frozen=True, slots=True)
class _Run:
    """One fetch: the address it began with and the connections it has."""

    pool: httpcore.ConnectionPool
    backend: transport.GuardedBackend
    allow: frozenset[Pair]
    given: str

    def follow(self, url: CheckedUrl) -> Fetched:
        """Request `url` and what it redirects to, until a page answers."""
        path = [url]
        while True:
            answer = self._request(path[-1], tuple(step.raw for step in path[1:]))
            if isinstance(answer, Fetched):
                return answer
            path.append(self._next(path, answer))

    def _request(self, url: CheckedUrl, redirects: tuple[str, ...]) -> Fetched | bytes:
        """The page, or the Location that it redirects to."""
        self.backend.url = url
        target = httpcore.URL(
            scheme=url.scheme.encode(),
            host=url.host.encode(),
            port=url.port,
            target=url.target.encode("ascii"),
        )
        headers = [(b"Host", url.authority.encode("ascii")), *_HEADERS]
        with self._led_to(url), self.pool.stream("GET", target, headers=headers) as response:
            if response.status in _REDIRECTS:
                return _header(response, b"location")
            return self._receive(response, url, redirects)

    def _receive(self, response: httpcore.Response, url: CheckedUrl, redirects: tuple[str, ...]) -> Fetched:
        if not 200 <= response.status < 300:
            raise FetchError(
                "http_error",
                url=shown(self.given),
                status=response.status,
                **because(_status_cause(response.status)),
            )
        essence, charset = parse_content_type(_header(response, b"content-type").decode("latin-1"))
        check_declared(essence, self.given)
        body = self._read(response, MAX_HTML_BYTES if "html" in essence else MAX_BYTES)
        kind = media_type(body, essence, url.raw)
        if kind == "text/html" and len(body) > MAX_HTML_BYTES:
            _too_large(self.given, MAX_HTML_BYTES)
        return Fetched(self.given, url.raw, response.status, kind, charset, body, redirects, 0.0)

    def _read(self, response: httpcore.Response, limit: int) -> bytes:
        encoding = _header(response, b"content-encoding").decode("latin-1")
        try:
            decoder = BodyDecoder(encoding, limit)
            for piece in response.iter_stream():
                decoder.feed(piece)
            return decoder.finish()
        except (TooLargeError, transport.WireLimitError):
            _too_large(self.given, limit)
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
            raise _led_to_refusal(self.given, target, error) from error
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
            raise _led_to_refusal(self.given, url.raw, error) from error


def join_location(base: str, location: bytes) -> str:
    """The absolute form of a Location header.

    Text that `check_url` will refuse is handed on untouched, because urljoin would silently drop
    line breaks and tabs from it.
    """
    text = location.decode("utf-8", "replace")
    if any(character <= " " or character == "\\" for character in text):
        return text
    try:
        return urljoin(base, text)
    except ValueError:
        return text


def _led_to_refusal(given: str, target: str, error: FetchError) -> FetchError:
    """The refusal `error` of a redirect's target, told about the address that was typed."""
    params = dict(error.notice.params)
    told = because("led_to", target=shown(target), why_en=params["why_en"], why_zh=params["why_zh"])
    return FetchError("blocked", **{**params, **told, "cause": params["cause"], "url": shown(given)})


def _place(url: CheckedUrl) -> tuple[str, int, str]:
    return url.host, url.port, url.target


def _header(response: httpcore.Response, name: bytes) -> bytes:
    """All values of a header, joined as HTTP joins them; the first alone where one is meant."""
    values = [value.strip() for key, value in response.headers if key.lower() == name]
    if name == b"content-encoding":
        return b", ".join(values)
    return values[0] if values else b""


def _status_cause(status: int) -> str:
    if status in (404, 410):
        return "gone"
    if status in (401, 403, 407, 451):
        return "forbidden"
    if status == 429:
        return "too_many"
    return "server_fault" if status >= 500 else "other_status"


def _too_large(url: str, limit: int) -> NoReturn:
    raise FetchError("too_large", url=shown(url), limit=limit // MEGABYTE)


@contextmanager
def _plain_errors(given: str, first: CheckedUrl, budget: transport.Budget) -> Iterator[None]:
    """Turn what the network throws into a FetchError."""
    url = shown(given)
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchError("timeout", url=url, seconds=round(budget.seconds)) from error
    except transport.NameNotFoundError as error:
        raise FetchError("unresolved", url=url, host=str(error)) from error
    except transport.WireLimitError:
        _too_large(given, MAX_BYTES)
    except httpcore.ConnectError as error:
        cause = "tls" if any(isinstance(inner, ssl.SSLError) for inner in error.args) else "refused"
        raise FetchError("unreachable", url=url, **because(cause, host=first.host)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchError("unreachable", url=url, **because("broken_off", host=first.host)) from error
