"""Fetching over real sockets: what is received, what is refused, and that every limit applies."""

from __future__ import annotations

import contextvars
import json
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpcore
import pytest

from rag.errors import FetchError
from rag.tracing import Trace
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from tests.ingest.vectors import FOLDER, MISSING, load
from tests.support.page_server import ARTICLE, Listener, PageServer
from tests.support.simulated_network import PUBLIC, SimulatedNetwork
from tests.web.conftest import refusal
from tests.web.test_connections import is_busy


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer() as pages:
        yield pages


@pytest.fixture(scope="module")
def fetcher(server: PageServer) -> Iterator[Fetcher]:
    with Fetcher([server.pair], deadline=10, rate_limiter=RateLimiter(2, 0.0)) as fetching:
        yield fetching


class TestPages:
    def test_a_page(self, server: PageServer, fetcher: Fetcher) -> None:
        fetched = fetcher.fetch(server.url("/article"))
        assert fetched.body == ARTICLE.encode()
        assert (fetched.status, fetched.content_type, fetched.charset) == (200, "text/html", "utf-8")
        assert (fetched.final_url, fetched.moved_to) == (server.url("/article"), "")

    def test_a_fetch_is_a_span(self, server: PageServer, fetcher: Fetcher) -> None:
        trace = Trace()

        def fetch() -> None:
            trace.activate()
            fetcher.fetch(server.url("/article"))
            refusal(fetcher, server.url("/nowhere"))

        contextvars.copy_context().run(fetch)
        there, missing = trace.spans
        assert (there.kind, there.status, there.attributes["status"]) == ("fetch", "ok", 200)
        assert (missing.status, missing.attributes) == ("error", {"url": server.url("/nowhere")})

    @pytest.mark.parametrize("path", ["/gzip", "/deflate", "/deflate-raw", "/gzip-not", "/slow", "/untyped"])
    def test_the_same_page_on_other_ways(self, server: PageServer, fetcher: Fetcher, path: str) -> None:
        fetched = fetcher.fetch(server.url(path))
        assert (fetched.body, fetched.content_type) == (ARTICLE.encode(), "text/html")

    @pytest.mark.parametrize(
        ("path", "kind", "charset"),
        [
            ("/notes.txt", "text/plain", "utf-8"),
            ("/notes.md", "text/markdown", None),
            ("/untyped-text", "text/plain", None),
            ("/gbk-header", "text/html", "GB2312"),
            ("/gbk-meta", "text/html", None),
        ],
    )
    def test_kinds(self, server: PageServer, fetcher: Fetcher, path: str, kind: str, charset: str | None) -> None:
        fetched = fetcher.fetch(server.url(path))
        assert (fetched.content_type, fetched.charset) == (kind, charset)

    def test_requests_carry_a_name_and_nothing_personal(self, server: PageServer, fetcher: Fetcher) -> None:
        server.add("/hello", status=302, headers={"Location": "/greeted?x=1"})
        server.add("/greeted", "<p>Hello</p>", headers={"Set-Cookie": "id=1"})
        for _ in range(2):
            fetcher.fetch(server.url("/hello"))
        path, headers = server.requests[-1]
        assert path == "/greeted?x=1"
        assert headers["user-agent"].startswith("Pagelight/")
        assert headers["accept-encoding"] == "gzip, deflate"
        assert headers["host"] == f"127.0.0.1:{server.port}"
        assert not {"cookie", "referer", "authorization"} & set(headers)


class TestConditions:
    def test_validators_are_kept_and_sent(self, server: PageServer, fetcher: Fetcher) -> None:
        date = "Tue, 05 Mar 2024 12:00:00 GMT"
        url = server.add("/tagged", "<p>Tagged</p>", headers={"ETag": 'W/"1"', "Last-Modified": date})
        first = fetcher.fetch(url)
        assert (first.etag, first.last_modified) == ('W/"1"', date)
        assert not {"if-none-match", "if-modified-since"} & set(server.requests[-1][1])
        fetcher.fetch(url, etag=first.etag, last_modified=first.last_modified)
        sent = server.requests[-1][1]
        assert (sent["if-none-match"], sent["if-modified-since"]) == ('W/"1"', date)

    def test_not_modified(self, server: PageServer, fetcher: Fetcher) -> None:
        same = server.add("/same", status=304, headers={"ETag": '"2"'})
        moved = server.add("/moved-same", status=301, headers={"Location": "/same"})
        fetched = fetcher.fetch(same, etag='"2"')
        assert (fetched.status, fetched.body, fetched.etag) == (304, b"", '"2"')
        fetched = fetcher.fetch(moved, last_modified="Tue, 05 Mar 2024 12:00:00 GMT")
        assert (fetched.status, fetched.final_url) == (304, same)
        error = refusal(fetcher, same)  # it was not asked whether it changed
        assert (error.code, error.notice.params["status"]) == ("http_error", 304)

    def test_a_hostile_validator_is_neither_kept_nor_sent(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/odd-tag", "<p>Odd</p>", headers={"ETag": '"a b"', "Last-Modified": "é" * 20})
        fetched = fetcher.fetch(url, etag='"a"\r\nCookie: x', last_modified="now\r\nX: y")
        assert (fetched.etag, fetched.last_modified) == ("", "")
        assert not {"if-none-match", "if-modified-since", "cookie", "x"} & set(server.requests[-1][1])

    @pytest.mark.parametrize(("steps", "for_good"), [((301, 308), True), ((301, 302), False), ((307,), False)])
    def test_moved_for_good(self, server: PageServer, fetcher: Fetcher, steps: tuple[int, ...], for_good: bool) -> None:
        name = "-".join(map(str, steps))
        for place, status in enumerate(steps):
            last = place + 1 == len(steps)
            target = "/article" if last else f"/moved-{name}-{place + 1}"
            server.add(f"/moved-{name}-{place}", status=status, headers={"Location": target})
        fetched = fetcher.fetch(server.url(f"/moved-{name}-0"))
        assert fetched.moved_to == (server.url("/article") if for_good else "")
        assert fetched.final_url == server.url("/article")
        assert fetcher.fetch(server.url("/article")).moved_to == ""


class TestRaw:
    def test_any_type(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/list", b"\x1f\x8b\x00\x01", content_type="application/octet-stream")
        fetched = fetcher.fetch(url, max_raw_bytes=100)
        assert (fetched.body, fetched.content_type) == (b"\x1f\x8b\x00\x01", "application/octet-stream")

    def test_its_own_limit(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/long-list", b"x" * 7_000_000, content_type="text/plain")
        assert len(fetcher.fetch(url, max_raw_bytes=8_000_000).body) == 7_000_000
        with pytest.raises(FetchError) as raised:
            fetcher.fetch(url, max_raw_bytes=6_000_000)
        assert raised.value.code == "too_large"


class TestBusyServers:
    @pytest.mark.parametrize("status", [429, 503])
    def test_when_to_ask_again(self, server: PageServer, status: int) -> None:
        url = server.add(f"/later{status}", "<p>Later</p>", status=status, headers={"Retry-After": "7"})
        rate_limiter = RateLimiter(2, 0.0)
        error = refusal(Fetcher([server.pair], rate_limiter=rate_limiter), url)
        assert error.notice.params["retry_after"] == 7
        assert is_busy(rate_limiter, server.pair)

    def test_only_where_it_is_said(self, server: PageServer) -> None:
        rate_limiter = RateLimiter(2, 0.0)
        fetcher = Fetcher([server.pair], rate_limiter=rate_limiter)
        assert "retry_after" not in refusal(fetcher, server.url("/status/503")).notice.params
        url = server.add("/gone-later", status=404, headers={"Retry-After": "7"})
        assert "retry_after" not in refusal(fetcher, url).notice.params
        assert not is_busy(rate_limiter, server.pair)


class TestRefusals:
    @pytest.mark.parametrize(
        ("path", "code", "cause"),
        [
            ("/missing", "http_error", "gone"),
            ("/broken", "http_error", "server_fault"),
            ("/busy", "http_error", "too_many"),
            ("/forbidden", "http_error", "forbidden"),
            ("/loop", "redirects", "redirect_loop"),
            ("/loop-a", "redirects", "redirect_loop"),
            ("/redirect/6", "redirects", "too_many_redirects"),
            ("/redirect-nowhere", "redirects", "no_target"),
            ("/image", "content_type", "other_type"),
            ("/image-as-html", "content_type", "binary"),
            ("/json", "content_type", "other_type"),
            ("/untyped-binary", "content_type", "binary"),
            ("/double-gzip-bomb", "unreadable", "encoding"),
            ("/brotli", "unreadable", "encoding"),
            ("/gzip-cut", "unreadable", "corrupt"),
            ("/gzip-in-gzip", "content_type", "binary"),
            ("/to-metadata", "blocked", "metadata"),
        ],
    )
    def test_reasons(self, server: PageServer, fetcher: Fetcher, path: str, code: str, cause: str) -> None:
        error = refusal(fetcher, server.url(path))
        assert (error.code, error.notice.cause) == (code, cause)
        assert server.url(path) in str(error)
        json.dumps(dict(error.notice.params))

    def test_status_is_named(self, server: PageServer, fetcher: Fetcher) -> None:
        assert refusal(fetcher, server.url("/status/418")).notice.params["status"] == 418

    @pytest.mark.parametrize("path", ["/huge", "/big-html", "/gzip-bomb"])
    def test_too_large(self, server: PageServer, fetcher: Fetcher, path: str) -> None:
        start = time.monotonic()
        assert refusal(fetcher, server.url(path)).code == "too_large"
        assert time.monotonic() - start < 20

    def test_untyped_html_has_the_limit_of_html(self, server: PageServer, fetcher: Fetcher) -> None:
        big = b"<html><p>" + b"word " * (512 * 1024)
        assert refusal(fetcher, server.add("/untyped-big", big, content_type=None)).notice.params["limit"] == 2
        assert len(fetcher.fetch(server.add("/big.txt", big[9:], content_type="text/plain")).body) > 2_000_000

    @pytest.mark.parametrize("path", ["/never", "/drip"])
    def test_one_deadline(self, server: PageServer, path: str) -> None:
        start = time.monotonic()
        assert refusal(Fetcher([server.pair], deadline=1.0), server.url(path)).code == "timeout"
        assert time.monotonic() - start < 20

    def test_deadline_covers_the_look_up(self) -> None:
        answered = threading.Event()

        def resolve(host: str, port: int) -> list[str]:
            answered.wait(60)
            return [PUBLIC]

        assert refusal(Fetcher(deadline=0.5, resolve=resolve), "https://example.com/").code == "timeout"
        answered.set()

    def test_private_server_without_permission(self, server: PageServer) -> None:
        before = server.count()
        error = refusal(Fetcher(), server.url("/article"))
        assert error.code == "blocked"
        assert f"127.0.0.1:{server.port}" in str(error)
        assert "FETCH_ALLOW_PRIVATE_HOSTS" in str(error)
        assert server.count() == before

    def test_permission_holds_on_redirects(self, server: PageServer) -> None:
        with PageServer() as other:
            url = server.add("/to-friend", status=302, headers={"Location": other.url("/article")})
            with Fetcher([server.pair, other.pair]) as both:
                assert both.fetch(url).final_url == other.url("/article")

    def test_nobody_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        error = refusal(Fetcher([("127.0.0.1", port)]), f"http://127.0.0.1:{port}/")
        assert (error.code, error.notice.cause) == ("unreachable", "refused")

    def test_not_a_web_server(self) -> None:
        with Listener() as listener:
            fetcher = Fetcher([("127.0.0.1", listener.port)])
            assert refusal(fetcher, f"http://127.0.0.1:{listener.port}/").code == "unreachable"

    def test_no_tls_where_tls_was_asked_for(self, server: PageServer, fetcher: Fetcher) -> None:
        error = refusal(fetcher, server.url("/article").replace("http:", "https:"))
        assert (error.code, error.notice.cause) == ("unreachable", "tls")

    def test_proxies_of_the_environment_are_not_used(
        self, server: PageServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Listener() as proxy:
            for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            assert fetcher.fetch(server.url("/article")).status == 200
        assert proxy.connections == 0


class TestNames:
    def test_one_look_up_serves_the_check_and_the_connection(self, server: PageServer) -> None:
        """A name that is public in the first lookup and loopback in the second gains nothing."""
        answers = iter([[PUBLIC], ["127.0.0.1"]])
        asked: list[str] = []

        def connect(address: str, port: int, timeout: float) -> object:
            asked.append(address)
            raise httpcore.ConnectError("refused")

        fetcher = Fetcher(resolve=lambda host, port: next(answers), connect=connect)  # type: ignore[arg-type]
        assert refusal(fetcher, "http://rebind.example/").code == "unreachable"
        assert asked == [PUBLIC]

    def test_the_next_address_is_tried(self, server: PageServer) -> None:
        with Fetcher([("wiki.local", server.port)], resolve=lambda host, port: ["127.0.0.9", "127.0.0.1"]) as fetcher:
            assert fetcher.fetch(f"http://wiki.local:{server.port}/article").status == 200
        assert server.requests[-1][1]["host"] == f"wiki.local:{server.port}"

    def test_allowed_name_at_a_metadata_address(self) -> None:
        fetcher = Fetcher([("wiki.local", 80)], resolve=lambda host, port: ["169.254.169.254"])
        assert refusal(fetcher, "http://wiki.local/").notice.cause == "metadata"

    @pytest.mark.parametrize("answers", [[], None])
    def test_unresolved(self, answers: list[str] | None) -> None:
        network = SimulatedNetwork({"gone.example": answers}, {})
        error = refusal(Fetcher(resolve=network.resolve, connect=network.connect), "https://gone.example/")
        assert error.code == "unresolved"
        assert "gone.example" in str(error)


SHARED = load("url_vectors.jsonl")
RESOLVED = load("resolved_vectors.jsonl")


class TestSharedVectors:
    @pytest.mark.skipif(not RESOLVED, reason=MISSING)
    def test_names_and_redirects(self) -> None:
        table = json.loads((FOLDER / "simulated_network.json").read_text("utf-8"))
        wrong = []
        for row in RESOLVED:
            network = SimulatedNetwork(table["dns"], table["redirects"])
            fetcher = Fetcher(resolve=network.resolve, connect=network.connect)
            try:
                got = "allow" if fetcher.fetch(row["url"]).status == 200 else "?"
            except FetchError:
                got = "block"
            reached = set(network.connected) - {PUBLIC, "2606:4700::1111", "64:ff9b::5db8:d822"}
            if got != row["expect"] or reached:
                wrong.append((row["url"], got, reached))
        assert not wrong

    @pytest.mark.skipif(not SHARED, reason=MISSING)
    def test_no_refused_address_reaches_loopback(self) -> None:
        """Every refused vector is also tried at the port of a live listener, with a DNS that returns loopback."""
        with Listener() as listener:
            fetcher = Fetcher(deadline=2, resolve=lambda host, port: ["127.0.0.1"])
            for row in SHARED:
                if row["expect"] == "block":
                    refusal(fetcher, row["url"])
                    refusal(fetcher, _at_port(row["url"], listener.port))
            for host in ("127.0.0.1", "localhost", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433"):
                refusal(fetcher, f"http://{host}:{listener.port}/")
        assert listener.connections == 0


def _at_port(url: str, port: int) -> str:
    """Return `url` with its port replaced if it has a plain host, else unchanged."""
    try:
        host = urlsplit(url).netloc.rpartition(":")[0] or urlsplit(url).netloc
    except ValueError:
        return url
    return f"http://{host}:{port}/"
