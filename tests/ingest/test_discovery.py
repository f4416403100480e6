"""The pages that a site import reads, from sitemaps, feeds and links: all of them, nothing twice, nothing beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag.errors import IngestError
from rag.ingest import discovery
from rag.ingest.discovery import MIN_VARIANTS, SiteKind, SitePlan, Walk, read_feed, sitemap_pages
from rag.reading.parser_child import TASKS
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from rag.web.urls import FoundPage, same_site
from tests.reading.test_links import RSS, index, page_map
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer
from tests.web.conftest import fetcher, robots

__all__ = ["fetcher", "robots"]

Find = Callable[..., list[FoundPage]]
START = "https://www.example.com/docs/guide.html"


class Tasks:
    """A parser that runs its tasks in this process."""

    def run(self, task: str, body: bytes, **header: Any) -> dict[str, Any]:
        return TASKS[task](body, header)


class Everything:
    """Robots that allow everything, without a network."""

    def is_allowed(self, url: str) -> bool:
        return True


def walk(kind: SiteKind = "crawl", *known: FoundPage, **limits: int) -> Walk:
    plan = SitePlan("https://example.com/docs/", kind, **limits)
    return Walk(plan, None, None, Everything(), known)  # type: ignore[arg-type]


def pages(*paths: str, depth: int = 1) -> list[FoundPage]:
    return [FoundPage(f"https://example.com{path}", depth) for path in paths]


class TestPlan:
    @pytest.mark.parametrize(
        "url",
        [
            "https://www.example.com/docs/",
            "https://www.example.com/docs/a/b?x=1",
            "http://example.com/docs/a",
            "https://EXAMPLE.com:443/docs/a#part",
            "https://www.example.com/x/../docs/a",
            "https://www.example.com/%64ocs/a",
        ],
    )
    def test_what_belongs(self, url: str) -> None:
        assert SitePlan(START, "crawl").admits(url, 1)

    @pytest.mark.parametrize(
        "url",
        [
            "https://www.example.com/",
            "https://www.example.com/docsearch",
            "https://www.example.com/docs/../admin",
            "https://www.example.com/docs/%2e%2e/admin",
            "https://blog.example.com/docs/a",
            "https://example.com.evil.example/docs/a",
            "https://evil.example/docs/?https://www.example.com/docs/",
            "https://www.example.com@evil.example/docs/a",
            "https://www.example.com:8443/docs/a",
            "mailto:a@www.example.com/docs/",
            "javascript:alert(1)",
            "not an address",
            "http://[::1/x",
            "https://a\u2100b.com/",
            "http://[domain]/x",
        ],
    )
    def test_what_does_not(self, url: str) -> None:
        assert not SitePlan(START, "crawl").admits(url, 1)
        assert SitePlan(url, "crawl").folder and not SitePlan(url, "crawl").contains("https://x.example/docs/a")

    @pytest.mark.parametrize(
        ("prefix", "inside", "outside"),
        [
            ("/", "https://example.com/a", "https://example.org/a"),
            ("/docs", "https://example.com/docs", "https://example.com/docsearch"),
            ("docs/v2/", "https://example.com/docs/v2/a", "https://example.com/docs/v1/a"),
            ("/文档/", "https://example.com/%E6%96%87%E6%A1%A3/a", "https://example.com/docs/"),
        ],
    )
    def test_a_path_of_ones_own(self, prefix: str, inside: str, outside: str) -> None:
        plan = SitePlan("https://example.com/start", "crawl", prefix, max_depth=2)
        assert [plan.admits(inside, depth) for depth in (0, 2, 3)] == [True, True, False]
        assert not plan.admits(outside)

    @pytest.mark.parametrize(
        ("start", "folder"),
        [
            ("https://example.com", "/"),
            ("https://example.com/docs", "/"),
            ("https://example.com/docs/", "/docs/"),
            ("https://example.com/a/b/c.html?x=/y/", "/a/b/"),
        ],
    )
    def test_the_folder_of_the_start(self, start: str, folder: str) -> None:
        assert SitePlan(start, "crawl").folder == folder


class TestWalk:
    def test_new_pages_within_the_plan(self) -> None:
        crawl = walk()
        found = crawl.expand(
            FoundPage("https://example.com/docs/"),
            [
                "https://example.com/docs/a#x",
                "https://example.com/docs/a?utm_source=y",
                "https://example.com/blog/",
                "https://example.com/docs/b",
            ],
        )
        assert found == pages("/docs/a", "/docs/b")
        assert crawl.expand(found[0], ["https://example.com/docs/b"]) == []

    def test_depth(self) -> None:
        crawl = walk(max_depth=2)
        assert crawl.expand(FoundPage("https://example.com/docs/a", 1), ["https://example.com/docs/b"])
        assert not crawl.expand(FoundPage("https://example.com/docs/b", 2), ["https://example.com/docs/c"])

    def test_a_shorter_way_counts(self) -> None:
        """A page first found too deep, by a branch that ran ahead, is admitted when it is found at a lower depth."""
        crawl = walk(max_depth=2)
        assert crawl.admit(pages("/docs/c", depth=3)) == []
        assert crawl.admit(pages("/docs/c", depth=2)) == pages("/docs/c", depth=2)

    def test_number_also_after_a_restart(self) -> None:
        """Given a job's pages, a new walk is in the same state as the job's was after finding them."""
        links = pages(*(f"/docs/{number}" for number in range(9)))
        first = walk("crawl", max_pages=6)
        known = first.admit(links[:4])
        again = walk("crawl", *known, max_pages=6)
        assert again.admit(links) == first.admit(links) == links[4:6]
        assert first.admit(pages("/docs/late")) == []

    def test_endless_variants_take_a_part_only(self) -> None:
        """Like a calendar, or the filters of a shop: one path with endless parameters."""
        crawl = walk(max_pages=200)
        traps = [f"/docs/list?filter={number}" for number in range(500)]
        assert len(crawl.admit(pages(*traps))) == 50
        assert len(crawl.admit(pages("/docs/a", "/docs/list", "/docs/list?filter=501"))) == 2
        assert len(walk(max_pages=30).admit(pages(*traps))) == MIN_VARIANTS

    def test_a_sitemap_vouches_for_its_variants(self) -> None:
        assert len(walk("sitemap").admit(pages(*(f"/docs/p?id={number}" for number in range(150))))) == 150

    def test_traps_are_left_out(self) -> None:
        assert walk().admit(pages("/docs/a/b/a/b/a/b/", "/docs/post?replytocom=1", "/docs/2199/01/")) == []

    def test_a_feed_may_name_other_sites(self) -> None:
        feed = walk("feed")
        assert len(feed.admit([FoundPage("https://other.example/x")])) == 1
        assert feed.expand(FoundPage("https://other.example/x"), ["https://other.example/y"]) == []
        assert feed.contains("https://anywhere.example/", 0)

    def test_where_redirects_may_end(self) -> None:
        assert walk().contains("https://www.example.com/docs/new", 1)
        assert not walk().contains("https://example.com/login", 1)
        assert walk().contains("https://example.com/login", 0) and not walk("sitemap").contains("https://b.example/", 0)


class TestBeginning:
    @pytest.fixture
    def start(self, fetcher: Fetcher, robots: Robots) -> Find:
        def begin(start: str, kind: SiteKind, *known: FoundPage, **limits: Any) -> list[FoundPage]:
            return Walk(SitePlan(start, kind, **limits), fetcher, Tasks(), robots, known).begin()  # type: ignore[arg-type]

        return begin

    def test_a_crawl(self, site: SiteServer, start: Find) -> None:
        url = site.url("/")
        assert start(url, "crawl", prefix="/s0/") == [FoundPage(url)], "though it is above the path"

    def test_a_sitemap(self, site: SiteServer, start: Find) -> None:
        found = start(site.url("/"), "sitemap", prefix="/s0/")
        assert {page.url for page in found} == {site.url(path) for path in site.expected if path.startswith("/s0/")}

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    def test_once_more(self, site: SiteServer, start: Find, kind: SiteKind) -> None:
        """A job that was interrupted while saving its pages finds the others, possibly none."""
        found = start(site.url("/"), kind)
        assert start(site.url("/"), kind, *found[:-1]) == found[-1:]
        assert start(site.url("/"), kind, *found) == []

    def refusal(self, start: Find, *args: Any, **limits: Any) -> IngestError:
        with pytest.raises(IngestError) as raised:
            start(*args, **limits)
        return raised.value

    def test_robots_txt_is_asked(self, page_server: PageServer, start: Find) -> None:
        page_server.add("/robots.txt", "User-agent: *\nDisallow: /a", content_type="text/plain")
        page_server.add("/sitemap.xml", page_map("/a/1", "/b/1", base=page_server.url("")), content_type="text/xml")
        assert [page.url for page in start(page_server.url("/"), "sitemap")] == [page_server.url("/b/1")]

    @pytest.mark.parametrize(
        ("kind", "path", "code"),
        [
            ("crawl", "/a", "robots_refused"),
            ("feed", "/a", "robots_refused"),
            ("sitemap", "/b", "sitemap_missing"),
            ("feed", "/article", "feed_missing"),
            ("feed", "/later", "feed_empty"),
        ],
    )
    def test_reasons(self, page_server: PageServer, start: Find, kind: SiteKind, path: str, code: str) -> None:
        item = "<item><link>https://example.com/calendar/2199/01/</link></item>"
        page_server.add("/later", f"<rss version='2.0'><channel>{item}</channel></rss>", content_type="text/xml")
        page_server.add("/robots.txt", "User-agent: *\nDisallow: /a$", content_type="text/plain")
        assert self.refusal(start, page_server.url(path), kind).code == code

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    @pytest.mark.parametrize(
        "url", ["http://[::1/x", "https://a\u2100b.com/", "https://[domain]/", "http://a]b/", "ftp://a.example/"]
    )
    def test_a_start_that_is_no_address(self, start: Find, kind: SiteKind, url: str) -> None:
        error = self.refusal(start, url, kind)
        assert error.code == "blocked" and url in str(error)

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    def test_rules_that_cannot_be_had(self, page_server: PageServer, start: Find, kind: SiteKind) -> None:
        page_server.add("/robots.txt", status=500)
        assert self.refusal(start, page_server.url("/a"), kind).code == "robots_unreadable"

    def test_a_sitemap_of_other_paths(self, site: SiteServer, start: Find) -> None:
        error = self.refusal(start, site.url("/"), "sitemap", prefix="/none/")
        assert error.code == "sitemap_empty" and "/none/" in str(error)


class TestSitemaps:
    @pytest.fixture
    def find(self, fetcher: Fetcher, robots: Robots) -> Find:
        def find_pages(start: str, limit: int = 10, **options: Any) -> list[FoundPage]:
            tasks: Any = Tasks()
            return sitemap_pages(fetcher, tasks, robots, start, limit, lambda url: same_site(start, url), **options)

        return find_pages

    def test_the_ones_of_robots_txt(self, site: SiteServer, find: Find) -> None:
        found = find(site.url("/"), 1000)
        assert {page.url for page in found} == {site.url(path) for path in site.expected}
        assert {page.modified for page in found} == {"2024-03-05"}
        assert site.counts["/sitemap.xml"] == 0

    @pytest.mark.parametrize(
        "named", ["https://[domain]/sitemap.xml", "http://[::1/map.xml", "ftp://a.example/map.xml", ""]
    )
    def test_one_of_robots_txt_that_is_no_address(self, page_server: PageServer, find: Find, named: str) -> None:
        rules = f"User-agent: *\nAllow: /\nSitemap: {named}\n"
        page_server.add("/robots.txt", rules, content_type="text/plain")
        page_server.add("/sitemap.xml", page_map("/usual", base=page_server.url("")), content_type="text/xml")
        assert find(page_server.url("/")) == [FoundPage(page_server.url("/usual"))]

    def test_the_others_of_robots_txt_count(self, page_server: PageServer, find: Find) -> None:
        rules = f"Sitemap: https://[domain]/map.xml\nSitemap: {page_server.url('/own.xml')}\nSitemap: /more.xml\n"
        page_server.add("/robots.txt", rules, content_type="text/plain")
        for name in ("own", "more"):
            page_server.add(f"/{name}.xml", page_map(f"/{name}", base=page_server.url("")), content_type="text/xml")
        assert [page.url for page in find(page_server.url("/"))] == [page_server.url("/own"), page_server.url("/more")]

    def test_the_limit(self, site: SiteServer, find: Find) -> None:
        assert len(find(site.url("/"), 7)) == 7
        assert site.counts["/map1.xml"] == 0, "what is not needed is not fetched"

    @pytest.mark.parametrize("place", ["/sitemap.xml", "/sitemap_index.xml"])
    def test_the_usual_places(self, page_server: PageServer, find: Find, place: str) -> None:
        page_server.add(place, page_map("/a", "/b#x", "/a", base=page_server.url("")), content_type="text/xml")
        assert find(page_server.url("/docs/")) == [FoundPage(page_server.url(path)) for path in ("/a", "/b")]

    def test_the_one_that_was_given(self, page_server: PageServer, find: Find) -> None:
        page_server.add("/sitemap.xml", page_map("/wrong", base=page_server.url("")))
        start = page_server.add("/my/pages.xml", page_map("/a", base=page_server.url("")), content_type="text/plain")
        assert [page.url for page in find(start)] == [page_server.url("/a")]

    def test_other_sites_are_left_out(self, page_server: PageServer, site: SiteServer, find: Find) -> None:
        """Neither their pages nor their sitemaps count: a site may only list its own."""
        other = "</loc></url><url><loc>https://evil.example/"
        page_server.add("/sitemap.xml", index("/mine.xml", site.url("/map1.xml")))
        page_server.add("/mine.xml", page_map(f"/a{other}", base=page_server.url("")))
        assert [page.url for page in find(page_server.url("/"))] == [page_server.url("/a")]
        assert site.counts["/map1.xml"] == 0

    def test_a_broken_one_costs_only_its_pages(self, page_server: PageServer, find: Find) -> None:
        page_server.add("/sitemap.xml", index("/missing", "/broken", "/image", "/good.xml"))
        page_server.add("/good.xml", page_map("/a", base=page_server.url("")))
        assert len(find(page_server.url("/"))) == 1

    def test_circles_and_depths_end(self, page_server: PageServer, find: Find) -> None:
        page_server.add("/sitemap.xml", index("/sitemap.xml", "/deep1.xml"))
        for level in range(1, 9):
            page_server.add(f"/deep{level}.xml", index(f"/deep{level + 1}.xml", "/sitemap.xml"))
        assert find(page_server.url("/")) == []
        assert [page_server.count(f"/{name}.xml") for name in ("sitemap", "deep2", "deep3")] == [1, 1, 0]

    def test_no_more_files_than_the_limit(self, page_server: PageServer, find: Find) -> None:
        page_server.add("/sitemap.xml", index(*(f"/part{number}.xml" for number in range(200))))
        find(page_server.url("/"))
        assert page_server.count() <= discovery.MAX_FILES + 3

    def test_stopping(self, site: SiteServer, robots: Robots, find: Find) -> None:
        robots.sitemaps(site.url("/"))
        with pytest.raises(IngestError):
            find(site.url("/"), 1000, is_cancelled=lambda: True)
        assert set(site.counts) == {"/robots.txt"}


@pytest.mark.parametrize("path", ["/feed.xml", "/"])
def test_a_feed_or_a_page_that_names_one(site: SiteServer, fetcher: Fetcher, path: str) -> None:
    found = read_feed(fetcher, Tasks(), site.url(path))  # type: ignore[arg-type]
    assert [page.url for page in found] == [site.url(path) for path in list(site._numbers)[:10]]


def test_the_first_feed_that_works(page_server: PageServer, fetcher: Fetcher) -> None:
    page_server.add("/feed-2", RSS, content_type="text/plain")
    link = "<link rel='alternate' type='application/rss+xml' href='{}'>"
    url = page_server.add("/blog", link.format("/missing") + link.format("/article") + link.format("/feed-2"))
    assert len(read_feed(fetcher, Tasks(), url)) == 2  # type: ignore[arg-type]
