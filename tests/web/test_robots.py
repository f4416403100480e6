"""robots.txt: what is allowed, and what a site without an answer allows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.errors import FetchError, IngestError
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from rag.web.robots import CACHE_SECONDS, RETRY_SECONDS, Robots, parse_rules
from tests.support.page_server import PageServer, Reply

RULES = """
User-agent: GPTBot
Disallow: /

User-agent: *
Disallow: /private/
Disallow: /*?print=
Allow: /private/open.html
Crawl-delay: 2.5

Sitemap: https://example.com/map.xml
Sitemap: https://example.com/map.xml
"""


def serve(server: PageServer, text: str = "", **options: object) -> str:
    return server.add("/robots.txt", text, content_type="text/plain", **options)  # type: ignore[arg-type]


def refusal(robots: Robots, url: str) -> str:
    with pytest.raises(IngestError) as raised:
        robots.check(url)
    assert not robots.is_allowed(url)
    return raised.value.code


class TestRules:
    def test_what_may_be_read(self, page_server: PageServer, robots: Robots) -> None:
        serve(page_server, RULES)
        url = page_server.url
        assert robots.is_allowed(url("/"))
        assert robots.is_allowed(url("/private/open.html"))
        assert robots.is_allowed(url("/robots.txt"))
        assert refusal(robots, url("/private/page")) == "robots_refused"
        assert refusal(robots, url("/a?print=1")) == "robots_refused"
        assert refusal(robots, url("/%70rivate/page")) == "robots_refused"
        assert page_server.count("/robots.txt") == 1

    def test_delay_and_sitemaps(self, page_server: PageServer, fetcher: Fetcher, robots: Robots) -> None:
        serve(page_server, RULES)
        assert robots.sitemaps(page_server.url("/x")) == ["https://example.com/map.xml"]
        assert fetcher.rate_limiter.delay_of(page_server.pair) == 2.5, "every request from now on keeps to it"

    def test_requests_a_while(self) -> None:
        rules = parse_rules(b"User-agent: *\nRequest-rate: 1/5s\n")
        assert rules.delay("Pagelight") == 5
        assert parse_rules(b"User-agent: *\nCrawl-delay: 2\nRequest-rate: 4/1m 0600-0845\n").delay("Pagelight") == 15

    def test_dot_segments_lead_where_they_lead(self, page_server: PageServer, robots: Robots) -> None:
        serve(page_server, RULES)
        assert refusal(robots, page_server.url("/open/../private/page")) == "robots_refused"
        assert refusal(robots, page_server.url("/open/%2e%2E/private/page")) == "robots_refused"
        assert robots.is_allowed(page_server.url("/private/../open"))

    @pytest.mark.parametrize(
        ("text", "allowed"),
        [
            *(
                (f"User-agent: {name}\nDisallow: /x\n\nUser-agent: *\nDisallow: /", ["/y"])
                for name in ("Pagelight/1.0", "Pagelight bot", "pagelight", "PAGELIGHT*")
            ),
            ("User-agent: Pagelights\nUser-agent: x Pagelight\nDisallow: /", ["/x", "/y"]),
            ("User-agent: *\nDisallow: /\n\nUser-agent: pagelight\nUser-agent: x\nDisallow: /x\n", ["/y"]),
            ("User-agent: other\rDisallow: /\r\rUser-agent: *\rDisallow: /x\r", ["/y"]),
            *(
                (f"{line} # all\nDisallow: /x", ["/y"])
                for line in ("User-Agent: *", " user agent *", "USERAGENT:*", "user  agent: *", "\ufeffUser-agent: *")
            ),
        ],
    )
    def test_whom_rules_concern(self, text: str, allowed: list[str]) -> None:
        rules = parse_rules(text.encode())
        assert [path for path in ("/x", "/y") if rules.can_fetch(f"https://a.example{path}", "Pagelight")] == allowed

    @pytest.mark.parametrize(
        ("pattern", "path", "matches"),
        [
            ("/a*c", "/abbc/d", True),
            ("/a*c$", "/abbc/d", False),
            ("/a*c$", "/acbc", True),
            ("/a$", "/a", True),
            ("/a$", "/ab", False),
            ("/aa*aa$", "/aaa", False),
            ("*.pdf$", "/x.pdf", True),
            ("/*a*b", "/b/a", False),
            ("/%70", "/p", True),
            ("/\u4e2d", "/%E4%B8%AD", True),
        ],
    )
    def test_stars_and_ends(self, pattern: str, path: str, matches: bool) -> None:
        rules = parse_rules(f"User-agent: *\nDisallow: {pattern}".encode())
        assert rules.can_fetch(f"https://a.example{path}", "Pagelight") is not matches

    def test_a_page_in_its_place_says_nothing(self, page_server: PageServer, robots: Robots) -> None:
        page_server.add("/robots.txt", "<!doctype html><title>Not found</title>")
        assert robots.is_allowed(page_server.url("/a"))

    def test_rules_for_very_many_programs(self) -> None:
        """Copying the rules to every user agent of their group would take minutes."""
        names = "".join(f"User-agent: a{number}\n" for number in range(13_000))
        began = time.thread_time()
        rules = parse_rules((names + "Disallow: /x\n" * 20_000).encode())
        assert rules.can_fetch("https://example.com/x", "Pagelight")
        assert time.thread_time() - began < 5


class TestStatus:
    @pytest.mark.parametrize("status", [401, 403, 404, 410])
    def test_none_allows_all(self, page_server: PageServer, robots: Robots, status: int) -> None:
        serve(page_server, "User-agent: *\nDisallow: /", status=status)
        assert robots.is_allowed(page_server.url("/a"))

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_a_fault_refuses_all(self, page_server: PageServer, fetcher: Fetcher, robots: Robots, status: int) -> None:
        serve(page_server, "", status=status)
        assert refusal(robots, page_server.url("/a")) == "robots_unreadable"
        assert robots.sitemaps(page_server.url("/a")) == []
        assert fetcher.rate_limiter.delay_of(page_server.pair) == 0.0
        assert page_server.count("/robots.txt") == 1

    def test_no_answer_refuses_all(self, page_server: PageServer) -> None:
        serve(page_server, "User-agent: *\nAllow: /", pause=60)
        with Fetcher([page_server.pair], deadline=0.2) as hasty:
            assert refusal(Robots(hasty), page_server.url("/a")) == "robots_unreadable"

    def test_redirects_are_followed(self, page_server: PageServer, robots: Robots) -> None:
        serve(page_server, "", status=301, headers={"Location": "/rules.txt"})
        page_server.add("/rules.txt", "User-agent: *\nDisallow: /a", content_type="text/plain")
        assert not robots.is_allowed(page_server.url("/a"))

    def test_a_circle_is_none(self, page_server: PageServer, robots: Robots) -> None:
        serve(page_server, "", status=302, headers={"Location": "/robots.txt"})
        assert robots.is_allowed(page_server.url("/a"))

    def test_what_is_never_fetched(self, robots: Robots) -> None:
        with pytest.raises(FetchError) as raised:
            robots.check("http://169.254.169.254/latest")
        assert raised.value.code == "blocked"
        assert not robots.is_allowed("ftp://example.com/x")

    def test_a_name_that_leads_inside(self) -> None:
        """The rules are fetched through the guard, and its error is reported."""
        fetcher = Fetcher(resolve=lambda host, port: ["10.0.0.1"], rate_limiter=RateLimiter(2, 0.0))
        assert refusal(Robots(fetcher), "https://inside.example/a") == "blocked"


class TestTime:
    def test_kept_for_an_hour(self, page_server: PageServer, fetcher: Fetcher) -> None:
        moment = [0.0]
        robots = Robots(fetcher, clock=lambda: moment[0])
        serve(page_server, "User-agent: *\nDisallow: /a")
        assert not robots.is_allowed(page_server.url("/a"))
        serve(page_server, "User-agent: *\nDisallow: /b")
        moment[0] = CACHE_SECONDS - 1
        assert not robots.is_allowed(page_server.url("/a"))
        moment[0] = CACHE_SECONDS + 1
        assert robots.is_allowed(page_server.url("/a"))
        assert not robots.is_allowed(page_server.url("/b"))

    def test_a_fault_is_asked_again_soon_and_older_rules_stay(self, page_server: PageServer, fetcher: Fetcher) -> None:
        moment = [0.0]
        robots = Robots(fetcher, clock=lambda: moment[0])
        serve(page_server, "", status=500)
        assert not robots.is_allowed(page_server.url("/b"))
        serve(page_server, "User-agent: *\nDisallow: /a")
        moment[0] += RETRY_SECONDS + 1
        assert robots.is_allowed(page_server.url("/b"))
        serve(page_server, "", status=500)
        moment[0] += CACHE_SECONDS + 1
        assert robots.is_allowed(page_server.url("/b"))
        assert not robots.is_allowed(page_server.url("/a"))


def test_hosts_have_their_own(page_server: PageServer, robots: Robots) -> None:
    serve(page_server, "User-agent: *\nDisallow: /")
    with PageServer() as other, Fetcher([page_server.pair, other.pair], rate_limiter=RateLimiter(2, 0.0)) as fetcher:
        both = Robots(fetcher)
        assert not both.is_allowed(page_server.url("/a"))
        assert both.is_allowed(other.url("/a"))


def test_many_threads_ask_once(page_server: PageServer, robots: Robots) -> None:
    def slowly() -> Reply:
        time.sleep(0.1)
        return Reply(b"User-agent: *\nDisallow: /a", "text/plain")

    page_server.add_reply("/robots.txt", slowly)
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(robots.is_allowed, [page_server.url("/a")] * 8))
    assert page_server.count("/robots.txt") == 1
