"""Redirects by status, by page and by cookie, over a loopback server: followed as in browsers, within limits."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator

import pytest

from rag.web.connections import RateLimiter
from rag.web.fetch import MAX_REDIRECTS, Fetcher
from tests.support.page_server import ARTICLE, Listener, PageServer, Reply
from tests.web.conftest import refusal


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer() as pages:
        yield pages


@pytest.fixture
def fetcher(server: PageServer) -> Iterator[Fetcher]:
    with Fetcher([server.pair], deadline=10, rate_limiter=RateLimiter(2, 0.0)) as fetching:
        yield fetching


def stub(target: str, seconds: int = 0) -> str:
    return f"<title>Moved</title><meta http-equiv=refresh content='{seconds}; url={target}'><p>This page has moved."


def add_cookie_check(server: PageServer, path: str) -> str:
    """Add a page that is only served with a cookie, which its redirect to itself sets."""

    def reply() -> Reply:
        if "seen=1" in server.requests[-1][1].get("cookie", ""):
            return Reply(ARTICLE.encode())
        return Reply(status=302, headers={"Location": path, "Set-Cookie": "seen=1; Path=/; HttpOnly"})

    return server.add_reply(path, reply)


class TestRefresh:
    def test_by_the_page(self, server: PageServer, fetcher: Fetcher) -> None:
        fetched = fetcher.fetch(server.add("/old", stub("/article")))
        assert fetched.body == ARTICLE.encode()
        assert (fetched.final_url, fetched.moved_to) == (server.url("/article"), "")

    def test_the_header_comes_first(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/old", stub("/missing"), headers={"Refresh": "0; url=/article"})
        assert fetcher.fetch(url).final_url == server.url("/article")
        url = server.add("/older", stub("/missing"), headers={"Refresh": "900"})
        assert fetcher.fetch(url).final_url == url

    @pytest.mark.parametrize("target", ["/same", "", "/same#part"])
    @pytest.mark.parametrize("headers", [{}, {"Set-Cookie": "session=1"}])
    def test_a_page_that_reloads_itself(
        self, server: PageServer, fetcher: Fetcher, target: str, headers: dict[str, str]
    ) -> None:
        fetched = fetcher.fetch(server.add("/same", stub(target, 5), headers=headers))
        assert fetched.final_url.partition("#")[0] == server.url("/same")
        assert server.count("/same") == (2 if headers else 1)

    @pytest.mark.parametrize("way", ["header", "page"])
    def test_a_page_that_stays_long_enough_to_be_read(self, server: PageServer, fetcher: Fetcher, way: str) -> None:
        headers = {"Refresh": "60; url=/next"} if way == "header" else {}
        url = server.add("/slide", ARTICLE + (stub("/next", 60) if way == "page" else ""), headers=headers)
        assert fetcher.fetch(url).final_url == url

    def test_hops_are_counted_together(self, server: PageServer, fetcher: Fetcher) -> None:
        for step in range(MAX_REDIRECTS + 1):
            target = f"/step{step - 1}" if step else "/article"
            if step % 2:
                server.add(f"/step{step}", stub(target))
            else:
                server.add(f"/step{step}", status=302, headers={"Location": target})
        assert fetcher.fetch(server.url(f"/step{MAX_REDIRECTS - 1}")).final_url == server.url("/article")
        error = refusal(fetcher, server.url(f"/step{MAX_REDIRECTS}"))
        assert error.notice.cause == "too_many_redirects"

    def test_a_circle(self, server: PageServer, fetcher: Fetcher) -> None:
        server.add("/round", stub("/about"))
        server.add("/about", stub("/round"))
        assert refusal(fetcher, server.url("/round")).notice.cause == "redirect_loop"

    @pytest.mark.parametrize("way", ["Location", "Refresh", "page"])
    def test_the_guard_judges_where_it_leads(self, server: PageServer, fetcher: Fetcher, way: str) -> None:
        """Permission is for one port, not for its host."""
        with Listener() as listener:
            target = f"http://127.0.0.1:{listener.port}/"
            headers = {} if way == "page" else {way: target if way == "Location" else f"0; url={target}"}
            url = server.add("/inward", stub(target), status=302 if way == "Location" else 200, headers=headers)
            error = refusal(fetcher, url)
        assert (error.code, listener.connections) == ("blocked", 0)
        assert url in str(error) and target in str(error)

    @pytest.mark.parametrize("target", ["http://169.254.169.254/", "http://user@example.com/", "http:\\\\example.com"])
    def test_what_is_never_fetched(self, server: PageServer, fetcher: Fetcher, target: str) -> None:
        assert refusal(fetcher, server.add("/inward", stub(target))).code == "blocked"

    def test_an_address_of_another_kind_is_not_followed(self, server: PageServer, fetcher: Fetcher) -> None:
        for target in ("javascript:alert(1)", "file:///etc/passwd", "app://open"):
            url = server.add("/app", stub(target))
            assert fetcher.fetch(url).final_url == url

    def test_one_deadline(self, server: PageServer) -> None:
        for step in range(0, 4, 2):
            server.add(f"/late{step}", stub(f"/late{step + 1}"), pause=0.1)
            server.add(f"/late{step + 1}", b"x", status=302, headers={"Location": f"/late{step + 2}"}, pause=0.1)
        server.add("/late4", "<p>There</p>", pause=60)
        start = time.monotonic()
        assert refusal(Fetcher([server.pair], deadline=1.0), server.url("/late0")).code == "timeout"
        assert time.monotonic() - start < 20

    @pytest.mark.parametrize("packed", [False, True])
    def test_all_bodies_share_one_limit(self, server: PageServer, fetcher: Fetcher, packed: bool) -> None:
        filler = f"<!-- {'x' * 700_000} -->"
        headers = {"Content-Encoding": "gzip"} if packed else {}
        for step in range(4):
            page = (stub(f"/big{step + 1}") + filler).encode()
            server.add(f"/big{step}", gzip.compress(page) if packed else page, headers=headers)
        server.add("/big4", ARTICLE)
        assert fetcher.fetch(server.url("/big2")).final_url == server.url("/big4")
        assert refusal(fetcher, server.url("/big0")).code == "too_large"

    def test_a_page_that_offers_a_file_stays(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/download", ARTICLE + stub("/image", 5))
        assert fetcher.fetch(url).final_url == url
        assert refusal(fetcher, server.add("/broken-link", ARTICLE + stub("/missing"))).code == "http_error"

    def test_no_validators_are_kept_for_a_page_behind_a_page(self, server: PageServer, fetcher: Fetcher) -> None:
        server.add("/new", ARTICLE, headers={"ETag": '"1"', "Last-Modified": "Tue, 05 Mar 2024 12:00:00 GMT"})
        fetched = fetcher.fetch(server.add("/old", stub("/new")))
        assert (fetched.etag, fetched.last_modified) == ("", "")
        assert fetcher.fetch(server.url("/new")).etag == '"1"'

    def test_lists_are_taken_as_they_are(self, server: PageServer, fetcher: Fetcher) -> None:
        url = server.add("/robots.txt", stub("/article"), headers={"Refresh": "0; url=/article"})
        assert fetcher.fetch(url, max_raw_bytes=1000).final_url == url


class TestCookies:
    def test_a_redirect_to_itself(self, server: PageServer, fetcher: Fetcher) -> None:
        url = add_cookie_check(server, "/check")
        fetched = fetcher.fetch(url)
        assert (fetched.body, fetched.final_url) == (ARTICLE.encode(), url)
        assert server.count("/check") == 2

    def test_by_way_of_another_page(self, server: PageServer, fetcher: Fetcher) -> None:
        def reply() -> Reply:
            known = "seen=1" in server.requests[-1][1].get("cookie", "")
            return Reply(ARTICLE.encode()) if known else Reply(status=302, headers={"Location": "/give?to=/check"})

        server.add("/give", status=302, headers={"Location": "/check", "Set-Cookie": "seen=1"})
        assert fetcher.fetch(server.add_reply("/check", reply)).body == ARTICLE.encode()

    def test_a_page_that_sets_it_and_reloads(self, server: PageServer, fetcher: Fetcher) -> None:
        def reply() -> Reply:
            known = "seen=1" in server.requests[-1][1].get("cookie", "")
            return Reply(ARTICLE.encode() if known else stub("/wait").encode(), headers={"Set-Cookie": "seen=1"})

        assert fetcher.fetch(server.add_reply("/wait", reply)).body == ARTICLE.encode()

    def test_for_that_fetch_alone(self, server: PageServer, fetcher: Fetcher) -> None:
        url = add_cookie_check(server, "/check")
        for _ in range(2):
            before = len(server.requests)
            fetcher.fetch(url)
            assert "cookie" not in server.requests[before][1]
        fetcher.fetch(server.url("/article"))
        assert "cookie" not in server.requests[-1][1]

    def test_for_that_server_alone(self, server: PageServer) -> None:
        with PageServer() as other, PageServer("127.0.0.2") as third:
            other.add("/there", status=302, headers={"Location": third.url("/there")})
            third.add("/there", status=302, headers={"Location": server.url("/back")})
            server.add("/back", ARTICLE)
            headers = {"Location": other.url("/there"), "Set-Cookie": "id=1; Domain=127.0.0.1; Path=/"}
            url = server.add("/away", status=302, headers=headers)
            with Fetcher([server.pair, other.pair, third.pair], rate_limiter=RateLimiter(2, 0.0)) as fetcher:
                fetcher.fetch(url)
            assert "cookie" not in other.requests[-1][1] and "cookie" not in third.requests[-1][1]
            assert server.requests[-1][1]["cookie"] == "id=1"

    def test_once_is_enough(self, server: PageServer, fetcher: Fetcher) -> None:
        server.add("/always", status=302, headers={"Location": "/always", "Set-Cookie": "id=1"})
        assert refusal(fetcher, server.url("/always")).notice.cause == "redirect_loop"
        assert server.count("/always") == 2

        def reply() -> Reply:
            return Reply(status=302, headers={"Location": "/new", "Set-Cookie": f"id={len(server.requests)}"})

        assert refusal(fetcher, server.add_reply("/new", reply)).notice.cause == "redirect_loop"
        assert server.count("/new") == 2

    def test_one_that_is_not_for_the_page(self, server: PageServer, fetcher: Fetcher) -> None:
        for attribute in ("Path=/elsewhere", "Max-Age=0", "Secure"):
            server.add("/other", status=302, headers={"Location": "/other", "Set-Cookie": f"id=1; {attribute}"})
            assert refusal(fetcher, server.url("/other")).notice.cause == "redirect_loop"
            assert "cookie" not in server.requests[-1][1]

    def test_a_hostile_one(self, server: PageServer, fetcher: Fetcher) -> None:
        value = "=; ; =x; id=\xff\xfe" + "a" * 5000 + '; Expires="' + "9" * 2000
        server.add("/odd", status=302, headers={"Location": "/article", "Set-Cookie": value})
        assert fetcher.fetch(server.url("/odd")).body == ARTICLE.encode()


class TestLocations:
    @pytest.mark.parametrize(
        ("location", "asked"),
        [
            ("/f\xe4hre", "/f%C3%A4hre"),
            ("/fähre".encode().decode("latin-1"), "/f%C3%A4hre"),
            ("/q?a=b c&d=\xe4", "/q?a=b%20c&d=%C3%A4"),
            ("  /article  ", "/article"),
        ],
    )
    def test_are_encoded(self, server: PageServer, fetcher: Fetcher, location: str, asked: str) -> None:
        server.add(asked, ARTICLE)
        fetched = fetcher.fetch(server.add("/from", status=302, headers={"Location": location}))
        assert fetched.body == ARTICLE.encode()
        assert server.requests[-1][0] == asked

    @pytest.mark.parametrize(
        "location", ["/a\\b", "/a\tb", "/ok\r\n X: y", "http://exa mple.com/", "http://a b@c.example/"]
    )
    def test_are_refused(self, server: PageServer, fetcher: Fetcher, location: str) -> None:
        before = server.add("/from", status=302, headers={"Location": location})
        assert refusal(fetcher, before).code in ("blocked", "unreachable")
        assert {path for path, _ in server.requests} == {"/from"}
