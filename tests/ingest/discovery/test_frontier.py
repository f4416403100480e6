"""The pages that a site import reads: all of it, nothing twice, nothing beyond the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from rag.errors import IngestError
from rag.ingest.discovery import MIN_VARIANTS, Frontier, SiteKind, SitePlan, begin
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from rag.web.urls import FoundPage
from tests.ingest.discovery.conftest import Tasks
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


class Everything:
    """Robots that allow everything, without a network."""

    def is_allowed(self, url: str) -> bool:
        return True


def frontier(kind: SiteKind = "crawl", *known: FoundPage, **limits: int) -> Frontier:
    plan = SitePlan("https://example.com/docs/", kind, **limits)  # type: ignore[arg-type]
    return Frontier(plan, Everything(), known)  # type: ignore[arg-type]


def pages(*paths: str, depth: int = 1) -> list[FoundPage]:
    return [FoundPage(f"https://example.com{path}", depth) for path in paths]


class TestFrontier:
    def test_new_pages_within_the_plan(self) -> None:
        front = frontier()
        found = front.expand(
            FoundPage("https://example.com/docs/"),
            [
                "https://example.com/docs/a#x",
                "https://example.com/docs/a?utm_source=y",
                "https://example.com/blog/",
                "https://example.com/docs/b",
            ],
        )
        assert found == pages("/docs/a", "/docs/b")
        assert front.expand(found[0], ["https://example.com/docs/b"]) == []

    def test_depth(self) -> None:
        front = frontier(max_depth=2)
        assert front.expand(FoundPage("https://example.com/docs/a", 1), ["https://example.com/docs/b"])
        assert not front.expand(FoundPage("https://example.com/docs/b", 2), ["https://example.com/docs/c"])

    def test_a_shorter_way_counts(self) -> None:
        """A page first found too deep, by a branch that ran ahead, is admitted when it is found at a lower depth."""
        front = frontier(max_depth=2)
        assert front.admit(pages("/docs/c", depth=3)) == []
        assert front.admit(pages("/docs/c", depth=2)) == pages("/docs/c", depth=2)

    def test_number(self) -> None:
        front = frontier(max_pages=3)
        assert len(front.admit(pages(*(f"/docs/{number}" for number in range(9))))) == 3
        assert front.is_full
        assert front.admit(pages("/docs/late")) == []

    def test_it_goes_on_where_it_was(self) -> None:
        """Given a job's pages, a new frontier is in the same state as the job's was after finding them."""
        links = [f"/docs/{number}" for number in range(6)]
        first = frontier("crawl", max_pages=6)
        known = first.admit(pages(*links[:4]))
        again = frontier("crawl", *known, max_pages=6)
        assert again.admit(pages(*links, "/docs/more")) == first.admit(pages(*links, "/docs/more"))

    def test_endless_variants_take_a_part_only(self) -> None:
        """Like a calendar, or the filters of a shop: one path with endless parameters."""
        front = frontier(max_pages=200)
        traps = [f"/docs/list?filter={number}" for number in range(500)]
        assert len(front.admit(pages(*traps))) == 50
        assert len(front.admit(pages("/docs/a", "/docs/list", "/docs/list?filter=501"))) == 2
        assert len(frontier(max_pages=30).admit(pages(*traps))) == MIN_VARIANTS

    def test_a_sitemap_vouches_for_its_variants(self) -> None:
        assert len(frontier("sitemap").admit(pages(*(f"/docs/p?id={number}" for number in range(150))))) == 150

    def test_traps_are_left_out(self) -> None:
        assert frontier().admit(pages("/docs/a/b/a/b/a/b/", "/docs/post?replytocom=1", "/docs/2199/01/")) == []

    def test_a_feed_may_name_other_sites(self) -> None:
        front = frontier("feed")
        assert len(front.admit([FoundPage("https://other.example/x")])) == 1
        assert front.expand(FoundPage("https://other.example/x"), ["https://other.example/y"]) == []
        assert front.contains("https://anywhere.example/")

    def test_where_redirects_may_end(self) -> None:
        assert frontier().contains("https://www.example.com/docs/new")
        assert not frontier().contains("https://example.com/login")

    def test_plans_survive_being_kept(self) -> None:
        plan = SitePlan("https://example.com/", "feed", "/a/", 2, 7)
        assert SitePlan(**json.loads(json.dumps(asdict(plan)))) == plan


class TestBeginning:
    def start(self, plan: SitePlan, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> list[FoundPage]:
        return begin(plan, fetcher, tasks, Frontier(plan, robots))

    def test_a_crawl(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        plan = SitePlan(site.url("/"), "crawl", prefix="/s0/")
        assert self.start(plan, fetcher, robots, tasks) == [FoundPage(site.url("/"))], "though it is above the path"

    def test_a_sitemap(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        found = self.start(SitePlan(site.url("/"), "sitemap", prefix="/s0/"), fetcher, robots, tasks)
        assert {page.url for page in found} == {site.url(path) for path in site.expected if path.startswith("/s0/")}

    def test_a_feed(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        assert len(self.start(SitePlan(site.url("/feed.xml"), "feed", max_pages=4), fetcher, robots, tasks)) == 4

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    def test_once_more(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks, kind: SiteKind) -> None:
        """A job that was interrupted while saving its pages finds the others, possibly none."""
        plan = SitePlan(site.url("/"), kind)
        found = self.start(plan, fetcher, robots, tasks)
        assert begin(plan, fetcher, tasks, Frontier(plan, robots, found[:-1])) == found[-1:]
        assert begin(plan, fetcher, tasks, Frontier(plan, robots, found)) == []

    def test_robots_txt_is_asked(self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        page_server.add("/robots.txt", "User-agent: *\nDisallow: /a", content_type="text/plain")
        urls = "".join(f"<url><loc>{page_server.url(path)}</loc></url>" for path in ("/a/1", "/b/1"))
        page_server.add("/sitemap.xml", f"<urlset>{urls}</urlset>", content_type="text/xml")
        found = self.start(SitePlan(page_server.url("/"), "sitemap"), fetcher, robots, tasks)
        assert [page.url for page in found] == [page_server.url("/b/1")]
        assert not Frontier(SitePlan(page_server.url("/"), "crawl"), robots).admit([FoundPage(page_server.url("/a"))])

    @pytest.mark.parametrize(
        ("kind", "start", "code"),
        [
            ("crawl", "/a", "robots_refused"),
            ("feed", "/a", "robots_refused"),
            ("sitemap", "/b", "sitemap_missing"),
            ("feed", "/article", "feed_missing"),
        ],
    )
    def test_reasons(
        self,
        page_server: PageServer,
        fetcher: Fetcher,
        robots: Robots,
        tasks: Tasks,
        kind: SiteKind,
        start: str,
        code: str,
    ) -> None:
        page_server.add("/robots.txt", "User-agent: *\nDisallow: /a$", content_type="text/plain")
        with pytest.raises(IngestError) as raised:
            self.start(SitePlan(page_server.url(start), kind), fetcher, robots, tasks)
        assert raised.value.code == code

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    @pytest.mark.parametrize(
        "start", ["http://[::1/x", "https://a\u2100b.com/", "https://[domain]/", "ftp://a.example/"]
    )
    def test_a_start_that_is_no_address(
        self, fetcher: Fetcher, robots: Robots, tasks: Tasks, kind: SiteKind, start: str
    ) -> None:
        with pytest.raises(IngestError) as raised:
            self.start(SitePlan(start, kind), fetcher, robots, tasks)
        assert raised.value.code == "blocked" and start in str(raised.value)

    @pytest.mark.parametrize("kind", ["crawl", "sitemap", "feed"])
    def test_rules_that_cannot_be_had(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks, kind: SiteKind
    ) -> None:
        page_server.add("/robots.txt", status=500)
        with pytest.raises(IngestError) as raised:
            self.start(SitePlan(page_server.url("/a"), kind), fetcher, robots, tasks)
        assert raised.value.code == "robots_unreadable"

    def test_a_sitemap_of_other_paths(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        with pytest.raises(IngestError) as raised:
            self.start(SitePlan(site.url("/"), "sitemap", prefix="/none/"), fetcher, robots, tasks)
        assert raised.value.code == "sitemap_empty"
        assert "/none/" in str(raised.value)

    def test_a_feed_of_nothing_to_read(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        item = "<item><link>https://example.com/calendar/2199/01/</link></item>"
        url = page_server.add("/f", f"<rss version='2.0'><channel>{item}</channel></rss>", content_type="text/xml")
        with pytest.raises(IngestError) as raised:
            self.start(SitePlan(url, "feed"), fetcher, robots, tasks)
        assert raised.value.code == "feed_empty"


@pytest.fixture
def whole(site: SiteServer) -> Iterator[SiteServer]:
    yield site
    assert not [path for path in site.counts if path.startswith(("/private", "/nofollow", "/photo"))]


def test_a_whole_site_by_its_links(whole: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
    plan = SitePlan(whole.url("/"), "crawl", max_depth=20)
    front = Frontier(plan, robots)
    found = begin(plan, fetcher, tasks, front)
    for page in found:
        try:
            fetched = fetcher.fetch(page.url)
        except IngestError:
            continue
        found += front.expand(page, tasks.run("links", fetched.body, url=fetched.final_url)["links"])
    assert sorted(page.url for page in found) == sorted(whole.url(path) for path in whole.expected)
