"""Fetching: the only module that sends requests to URLs that users enter.

URL → `check_url` → a turn at the host → one lookup and a checked connection → redirects, each through the same steps →
raw bytes, decoded within limits. A page that refreshes to another URL within seconds counts as a redirect. This uses
httpcore because httpx's client adds redirects, proxies from the environment and unlimited decompression, all of which
would have to be disabled.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn, Self, cast
from urllib.request import Request

import httpcore

from rag.errors import FetchError
from rag.text import lazy_regex
from rag.tracing import span
from rag.types import because
from rag.web import connections
from rag.web.connections import Budget, Connections, RateLimiter
from rag.web.guard import CheckedUrl, Pair, allow_list, check_url, printable
from rag.web.markup import meta_target, parse_refresh, target_of
from rag.web.media import MEGABYTE, byte_limit, check_declared, media_type, parse_content_type
from rag.web.urls import join_location

logger = logging.getLogger(__name__)

USER_AGENT = "Pagelight/0.1 (+page reader; fetches the pages its user asks for)"
MAX_REDIRECTS = 5
_MAX_HEADER_BYTES = 1 * MEGABYTE
_REDIRECTS = frozenset([301, 302, 303, 307, 308])
_PERMANENT = frozenset([301, 308])
_BUSY = frozenset([429, 503])
# By status: the code of the cause for an unsuccessful one.
_CAUSES = {**dict.fromkeys((404, 410), "gone"), **dict.fromkeys((401, 403, 407, 451), "forbidden"), 429: "too_many"}
_HEADERS = (
    (b"User-Agent", USER_AGENT.encode()),
    (b"Accept", b"text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.1"),
    (b"Accept-Language", b"en,zh;q=0.9,*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The response for a URL: decoded `body` bytes of one document type.

    `final_url` is the last URL after redirects; `moved_to` is `final_url` if all redirects were permanent, else "".
    `charset` is the declared one, unverified. `etag` and `last_modified` are as received, for the next fetch; empty
    after a refresh, since they would be sent to the redirecting page. With status 304 the page is unchanged, and `body`
    empty.
    """

    final_url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    etag: str = ""
    last_modified: str = ""
    moved_to: str = ""


class Fetcher:
    """A client that fetches documents and reuses connections. Safe to share between threads.

    `allow` has host and port pairs that are exempt from the rules on names, ports and IP addresses. `deadline` limits a
    whole fetch in seconds: lookup, connection, headers, body and redirects, but not the wait for a turn at the host,
    which `rate_limiter` grants.
    """

    def __init__(
        self,
        allow: Iterable[Pair] = (),
        *,
        deadline: float = 30.0,
        resolve: connections.Resolve = connections.resolve_host,
        connect: connections.Connect = connections.open_socket,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self.rate_limiter = rate_limiter or RateLimiter()
        self._allow = allow_list(allow)
        self._deadline = deadline
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = threading.Lock()
        self._connections = Connections(
            lambda url, budget: connections.GuardedBackend(url, budget, resolve, connect), self._context
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections and cancel fetches that wait for their turn."""
        self.rate_limiter.close()
        self._connections.close()

    def check(self, url: str) -> CheckedUrl:
        """Return `url` as it would be fetched, without network access. Raises FetchError("blocked")."""
        return check_url(url.strip(), self._allow)

    def fetch(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        max_raw_bytes: int = 0,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> FetchResult:
        """Fetch the page at an unchecked `url`. Raises FetchError with a reason code.

        With `etag` or `last_modified`, the page is only sent if it has changed. `max_raw_bytes` accepts up to that many
        bytes of any type, as robots.txt, sitemaps and feeds are served as many types. `is_cancelled` is called while
        waiting for a turn; if it returns True, "cancelled" is raised. For a busy server, the error has the parameter
        `retry_after`, in seconds.
        """
        start = time.monotonic()
        address = url.strip()
        checked = check_url(address, self._allow)
        budget = Budget(self._deadline, _MAX_HEADER_BYTES)
        with span(checked.host, "fetch", url=printable(address)) as trace, _plain_errors(address, checked, budget):
            headers = [*_HEADERS, *conditions(etag, last_modified)]
            state = _FetchState(
                self._connections, self.rate_limiter, self._allow, address, headers, budget, max_raw_bytes, is_cancelled
            )
            fetched = state.follow(checked)
            trace.attributes.update(status=fetched.status, bytes=len(fetched.body))
        seconds = time.monotonic() - start - state.wait_seconds
        logger.info(
            "fetched %s: %d, %d bytes in %.2f s", printable(address), fetched.status, len(fetched.body), seconds
        )
        return fetched

    def _context(self) -> ssl.SSLContext:
        with self._tls_lock:
            if self._tls is None:
                self._tls = connections.tls_context()
            return self._tls


# Response headers, which are untrusted.

Headers = Sequence[tuple[bytes, bytes]]

MAX_RETRY_AFTER = 24 * 3600
_ETAG = lazy_regex(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"|[\x21\x23-\x7e]{1,200}')
_HTTP_DATE = lazy_regex(r"[A-Za-z0-9 ,:+-]{10,50}")


def header(headers: Headers, name: bytes) -> bytes:
    """Return the first value of a header; for Content-Encoding, all of them joined by commas."""
    values = [value.strip() for key, value in headers if key.lower() == name]
    if name == b"content-encoding":
        return b", ".join(values)
    return values[0] if values else b""


def _header_text(headers: Headers, name: bytes) -> str:
    """Return a header decoded as UTF-8, else as Latin-1."""
    value = header(headers, name)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def entity_tag(value: str) -> str:
    """Return `value` if it can be sent back as an entity tag (RFC 9110, section 8.8.3), quoted or not; else ""."""
    return value if _ETAG.fullmatch(value) else ""


def http_date(value: str) -> str:
    """Return `value` if it can be sent back as an HTTP date; else ""."""
    return value if _HTTP_DATE.fullmatch(value) else ""


def conditions(etag: str, last_modified: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a conditional request with these validators."""
    candidates = ((b"If-None-Match", entity_tag(etag)), (b"If-Modified-Since", http_date(last_modified)))
    return [(name, value.encode("ascii")) for name, value in candidates if value]


def retry_after(headers: Headers, now: datetime | None = None) -> int | None:
    """Return the delay that Retry-After asks for in seconds, up to a day; None if it is missing or invalid."""
    value = header(headers, b"retry-after").decode("latin-1")
    if re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
        return min(int(value), MAX_RETRY_AFTER)
    try:
        date = parsedate_to_datetime(value)
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (aware - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, OverflowError):  # OverflowError for years with many digits
        return None
    return max(0, min(round(seconds), MAX_RETRY_AFTER))


class _Cookies:
    """Cookies of one fetch. Each is only sent back to the scheme, host and port that set it."""

    def __init__(self) -> None:
        self._jars: defaultdict[tuple[str, str], CookieJar] = defaultdict(CookieJar)

    def store(self, url: CheckedUrl, headers: Headers) -> None:
        """Store the cookies set by the response of `url`."""
        message = Message()
        for name, value in headers:
            if name.lower() == b"set-cookie":
                message["Set-Cookie"] = value.decode("latin-1")
        if message:
            response = cast(Any, SimpleNamespace(info=lambda: message))  # the only method that the jar calls
            self._jars[url.scheme, url.authority].extract_cookies(response, _cookie_request(url))

    def header(self, url: CheckedUrl) -> list[tuple[bytes, bytes]]:
        """Return a list with the Cookie header of a request for `url`; empty if there are no cookies."""
        request = _cookie_request(url)
        self._jars[url.scheme, url.authority].add_cookie_header(request)
        value = request.get_header("Cookie")
        return [(b"Cookie", value.encode("latin-1"))] if value else []


def _cookie_request(url: CheckedUrl) -> Request:
    return Request(f"{url.scheme}://{url.authority}{url.target}")


class _Hop(NamedTuple):
    """One request of a fetch: its URL and Cookie header."""

    url: CheckedUrl
    cookies: list[tuple[bytes, bytes]]


class _Redirect(NamedTuple):
    """A redirect: its target, whether it is permanent, and the redirecting page if it was read."""

    target: str
    is_permanent: bool = False
    is_refresh: bool = True
    page: FetchResult | None = None


@dataclass(slots=True)
class _FetchState:
    """The state of one fetch: its first URL, request headers, budget, and redirects so far."""

    connections: Connections
    rate_limiter: RateLimiter
    allow: frozenset[Pair]
    entered_url: str
    headers: list[tuple[bytes, bytes]]
    budget: Budget
    max_raw_bytes: int
    is_cancelled: Callable[[], bool]
    cookies: _Cookies = field(default_factory=_Cookies)
    path: list[_Hop] = field(default_factory=list)
    is_permanent: bool = True
    has_refresh: bool = False
    wait_seconds: float = 0.0

    def follow(self, url: CheckedUrl) -> FetchResult:
        """Request `url` and follow its redirects to a page."""
        self.path.append(_Hop(url, []))
        page: FetchResult | None = None
        while True:
            try:
                answer = self._request(self.path[-1])
            except FetchError as error:
                if page is not None and error.code == "content_type":
                    return page  # like browsers, which show it while they download the target
                target = self.path[-1].url.raw
                if error.code == "blocked" and target != self.entered_url:
                    raise _redirect_refusal(self.entered_url, target, error) from error
                raise
            if isinstance(answer, FetchResult):
                return answer
            page = answer.page
            self.is_permanent = self.is_permanent and answer.is_permanent
            self.has_refresh = self.has_refresh or answer.is_refresh
            self.path.append(self._next_hop(answer.target))

    def _request(self, hop: _Hop) -> FetchResult | _Redirect:
        url, headers = hop.url, [*self.headers, *hop.cookies]
        is_same_host = len(self.path) > 1 and url.pair == self.path[-2].url.pair
        with self.rate_limiter.slot(
            (url.host, url.port), self.entered_url, self.is_cancelled, is_redirect=is_same_host
        ) as wait:
            self.budget.extend(wait)
            self.wait_seconds += wait
            with self.connections.get(url, headers, self.budget) as response:
                self.cookies.store(url, response.headers)
                if response.status not in _REDIRECTS:
                    return self._receive(response, url)
                if not (location := _header_text(response.headers, b"location")):
                    self._raise_redirects("no_target")
                return _Redirect(join_location(url.raw, location), response.status in _PERMANENT, is_refresh=False)

    def _receive(self, response: httpcore.Response, url: CheckedUrl) -> FetchResult | _Redirect:
        if response.status == 304 and len(self.headers) > len(_HEADERS):
            return self._build_result(response)
        if not 200 <= response.status < 300:
            self._raise_status(response, url)
        essence, charset = parse_content_type(header(response.headers, b"content-type").decode("latin-1"))
        if self.max_raw_bytes:
            return self._build_result(response, essence, charset, self._read(response, self.max_raw_bytes))
        refresh = parse_refresh(_header_text(response.headers, b"refresh"))
        if target := self._new_target(target_of(refresh, url.raw)):
            return _Redirect(target)
        check_declared(essence, self.entered_url)
        body = self._read(response, byte_limit(essence))
        kind = media_type(body, essence, url.raw, charset)
        if len(body) > byte_limit(kind):
            _raise_too_large(self.entered_url, byte_limit(kind))
        page = self._build_result(response, kind, charset, body)
        if kind != "text/html" or refresh:
            return page
        target = self._new_target(meta_target(body, charset, url.raw))
        return _Redirect(target, page=page) if target else page

    def _build_result(
        self, response: httpcore.Response, kind: str = "", charset: str | None = None, body: bytes = b""
    ) -> FetchResult:
        url = self.path[-1].url.raw
        tag = entity_tag(header(response.headers, b"etag").decode("latin-1"))
        date = http_date(header(response.headers, b"last-modified").decode("latin-1"))
        if self.has_refresh:
            tag = date = ""
        moved_to = url if len(self.path) > 1 and self.is_permanent else ""
        return FetchResult(url, response.status, kind, charset, body, tag, date, moved_to)

    def _new_target(self, target: str) -> str:
        """Return the `target` of a refresh if it is another page, or the same one with a first cookie; else ""."""
        hop = self.path[-1]
        try:
            is_same_page = bool(target) and _location(check_url(target, self.allow)) == _location(hop.url)
        except FetchError:
            is_same_page = False  # the request to it reports the error
        is_same_page = is_same_page and (bool(hop.cookies) or not self.cookies.header(hop.url))
        return "" if is_same_page else target

    def _raise_status(self, response: httpcore.Response, url: CheckedUrl) -> NoReturn:
        """Raise FetchError for an unsuccessful status; pause requests to a busy server for as long as it asks."""
        pause = retry_after(response.headers) if response.status in _BUSY else None
        if pause is not None:
            self.rate_limiter.pause((url.host, url.port), pause)
        cause = _CAUSES.get(response.status, "server_fault" if response.status >= 500 else "other_status")
        raise FetchError(
            "http_error",
            url=printable(self.entered_url),
            status=response.status,
            **({} if pause is None else {"retry_after": pause}),
            **because(cause, status=response.status),
        )

    def _read(self, response: httpcore.Response, limit: int) -> bytes:
        allowance = self.budget.reserve_body(limit)
        encoding = header(response.headers, b"content-encoding").decode("latin-1")
        url = printable(self.entered_url)
        try:
            body = connections.decode_body(b"".join(response.iter_stream()), encoding, allowance)
        except (connections.TooLargeError, connections.WireLimitError):
            _raise_too_large(self.entered_url, limit)
        except connections.UnknownEncodingError:
            raise FetchError("unreadable", url=url, **because("encoding", encoding=printable(encoding, 60))) from None
        except connections.CorruptError as error:
            raise FetchError("unreadable", url=url, **because("corrupt")) from error
        self.budget.count_body(len(body))
        return body

    def _next_hop(self, target: str) -> _Hop:
        if len(self.path) > MAX_REDIRECTS:
            self._raise_redirects("too_many_redirects", limit=MAX_REDIRECTS)
        try:
            checked = check_url(target, self.allow)
        except FetchError as error:
            raise _redirect_refusal(self.entered_url, target, error) from error
        hop = _Hop(checked, self.cookies.header(checked))
        earlier = [step.cookies for step in self.path if _location(step.url) == _location(checked)]
        if len(earlier) > 1 or hop.cookies in earlier:  # retry the same page only with a new cookie
            self._raise_redirects("redirect_loop")
        return hop

    def _raise_redirects(self, cause: str, **params: int) -> NoReturn:
        raise FetchError("redirects", url=printable(self.entered_url), **because(cause, **params))


def _location(url: CheckedUrl) -> tuple[str, str, int, str]:
    return url.scheme, url.host, url.port, url.target


def _redirect_refusal(entered: str, target: str, error: FetchError) -> FetchError:
    """Return the error for a blocked redirect target, naming the entered URL."""
    reason = error.notice.params["reason"]
    return FetchError("blocked", url=printable(entered), **because("led_to", target=printable(target), reason=reason))


def _raise_too_large(url: str, limit: int) -> NoReturn:
    """Raise FetchError for a body of more than `limit` bytes."""
    raise FetchError("too_large", url=printable(url), limit=limit // MEGABYTE)


@contextmanager
def _plain_errors(entered: str, checked: CheckedUrl, budget: Budget) -> Iterator[None]:
    """Turn network errors into FetchError."""
    url = printable(entered)
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchError("timeout", url=url, seconds=round(budget.seconds)) from error
    except connections.NameNotFoundError as error:
        raise FetchError("unresolved", url=url, host=str(error)) from error
    except connections.WireLimitError:
        _raise_too_large(entered, _MAX_HEADER_BYTES)  # outside a body, only headers are read
    except httpcore.ConnectError as error:
        cause = "tls" if any(isinstance(inner, ssl.SSLError) for inner in error.args) else "refused"
        raise FetchError("unreachable", url=url, **because(cause, host=checked.host)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchError("unreachable", url=url, **because("broken_off", host=checked.host)) from error
