"""Sitemaps and feeds of sites, where they are found."""

from __future__ import annotations

import pytest

from rag.errors import IngestError
from rag.ingest import discovery
from rag.ingest.discovery import read_feed, sitemap_pages
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from rag.web.urls import FoundPage
from tests.ingest.discovery.conftest import Tasks
from tests.reading.test_feed import RSS
from tests.reading.test_sitemap import index, page_map
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


class TestFinding:
    def test_the_ones_of_robots_txt(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        pages = sitemap_pages(fetcher, tasks, robots, site.url("/"), 1000)
        assert {page.url for page in pages} == {site.url(path) for path in site.expected}
        assert {page.modified for page in pages} == {"2024-03-05"}
        assert site.counts["/sitemap.xml"] == 0

    @pytest.mark.parametrize(
        "named", ["https://[domain]/sitemap.xml", "http://[::1/map.xml", "ftp://a.example/map.xml", ""]
    )
    def test_one_of_robots_txt_that_is_no_address(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks, named: str
    ) -> None:
        rules = f"User-agent: *\nAllow: /\nSitemap: {named}\n"
        page_server.add("/robots.txt", rules, content_type="text/plain")
        page_server.add("/sitemap.xml", page_map("/usual", base=page_server.url("")), content_type="text/xml")
        assert sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10) == [FoundPage(page_server.url("/usual"))]

    def test_the_others_of_robots_txt_count(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        rules = f"Sitemap: https://[domain]/map.xml\nSitemap: {page_server.url('/own.xml')}\nSitemap: /more.xml\n"
        page_server.add("/robots.txt", rules, content_type="text/plain")
        for name in ("own", "more"):
            page_server.add(f"/{name}.xml", page_map(f"/{name}", base=page_server.url("")), content_type="text/xml")
        pages = sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10)
        assert [page.url for page in pages] == [page_server.url("/own"), page_server.url("/more")]

    def test_the_limit(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        assert len(sitemap_pages(fetcher, tasks, robots, site.url("/"), 7)) == 7
        assert site.counts["/map1.xml"] == 0, "what is not needed is not fetched"

    def test_what_the_caller_wants(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        wanted = site.url("/s0/")
        pages = sitemap_pages(fetcher, tasks, robots, site.url("/"), 1000, admits=lambda url: url.startswith(wanted))
        assert {page.url for page in pages} == {site.url(path) for path in site.expected if path.startswith("/s0/")}

    @pytest.mark.parametrize("place", ["/sitemap.xml", "/sitemap_index.xml"])
    def test_the_usual_places(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks, place: str
    ) -> None:
        page_server.add(place, page_map("/a", "/b#x", "/a", base=page_server.url("")), content_type="text/xml")
        pages = sitemap_pages(fetcher, tasks, robots, page_server.url("/docs/"), 10)
        assert pages == [FoundPage(page_server.url("/a")), FoundPage(page_server.url("/b"))]

    def test_the_one_that_was_given(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        page_server.add("/sitemap.xml", page_map("/wrong", base=page_server.url("")))
        start = page_server.add("/my/pages.xml", page_map("/a", base=page_server.url("")), content_type="text/plain")
        assert [page.url for page in sitemap_pages(fetcher, tasks, robots, start, 10)] == [page_server.url("/a")]

    def test_none(self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        with pytest.raises(IngestError) as raised:
            sitemap_pages(fetcher, tasks, robots, page_server.url("/article"), 10)
        assert raised.value.code == "sitemap_missing"

    def test_other_sites_are_left_out(
        self, page_server: PageServer, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        """Neither their pages nor their sitemaps count: a site may only list its own."""
        page_server.add("/sitemap.xml", index("/mine.xml", site.url("/map1.xml")))
        page_server.add(
            "/mine.xml",
            page_map("/a", base=page_server.url("")).replace(
                "</urlset>", "<url><loc>https://evil.example/</loc></url></urlset>"
            ),
        )
        pages = sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10)
        assert [page.url for page in pages] == [page_server.url("/a")]
        assert site.counts["/map1.xml"] == 0

    def test_a_broken_one_costs_only_its_pages(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        page_server.add("/sitemap.xml", index("/missing", "/broken", "/image", "/good.xml"))
        page_server.add("/good.xml", page_map("/a", base=page_server.url("")))
        assert len(sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10)) == 1

    def test_circles_and_depths_end(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        page_server.add("/sitemap.xml", index("/sitemap.xml", "/deep1.xml"))
        for level in range(1, 9):
            page_server.add(f"/deep{level}.xml", index(f"/deep{level + 1}.xml", "/sitemap.xml"))
        with pytest.raises(IngestError) as raised:
            pages = sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10)
            assert pages == []
            raise IngestError("sitemap_missing", url="")
        assert raised.value.code == "sitemap_missing"
        assert page_server.count("/sitemap.xml") == 1
        assert page_server.count("/deep2.xml") == 1
        assert page_server.count("/deep3.xml") == 0

    def test_no_more_files_than_the_limit(
        self, page_server: PageServer, fetcher: Fetcher, robots: Robots, tasks: Tasks
    ) -> None:
        page_server.add("/sitemap.xml", index(*(f"/part{number}.xml" for number in range(200))))
        sitemap_pages(fetcher, tasks, robots, page_server.url("/"), 10)
        assert page_server.count() <= discovery.MAX_FILES + 3

    def test_stopping(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        robots.sitemaps(site.url("/"))
        with pytest.raises(IngestError):
            sitemap_pages(fetcher, tasks, robots, site.url("/"), 1000, is_cancelled=lambda: True)
        assert set(site.counts) == {"/robots.txt"}


class TestReading:
    def test_a_feed(self, site: SiteServer, fetcher: Fetcher, tasks: Tasks) -> None:
        pages = read_feed(fetcher, tasks, site.url("/feed.xml"))
        assert [page.url for page in pages] == [site.url(path) for path in list(site._numbers)[:10]]

    def test_a_page_that_names_one(self, site: SiteServer, fetcher: Fetcher, tasks: Tasks) -> None:
        assert len(read_feed(fetcher, tasks, site.url("/"))) == 10

    def test_the_first_that_works(self, page_server: PageServer, fetcher: Fetcher, tasks: Tasks) -> None:
        page_server.add("/feed-2", RSS, content_type="text/plain")
        link = "<link rel='alternate' type='application/rss+xml' href='{}'>"
        url = page_server.add("/blog", link.format("/missing") + link.format("/article") + link.format("/feed-2"))
        assert len(read_feed(fetcher, tasks, url)) == 2

    def test_none(self, page_server: PageServer, fetcher: Fetcher, tasks: Tasks) -> None:
        with pytest.raises(IngestError) as raised:
            read_feed(fetcher, tasks, page_server.url("/article"))
        assert raised.value.code == "feed_missing"
