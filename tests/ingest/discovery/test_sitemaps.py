"""Sitemaps: where they are found, what they name, and how far that is followed."""

from __future__ import annotations

import gzip

import pytest

from rag.errors import IngestError
from rag.ingest.discovery import sitemaps
from rag.ingest.discovery.sitemaps import parse_sitemap, sitemap_pages, sitemap_task
from rag.ingest.parser import Parser
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from rag.web.site_scope import FoundPage
from tests.ingest.discovery.conftest import Tasks
from tests.ingest.discovery.test_feeds import BOMB, RSS
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer

URL = "https://example.com/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def page_map(*paths: str, base: str = "https://example.com", more: str = "") -> str:
    urls = "".join(f"<url><loc>{base}{path}</loc>{more}</url>" for path in paths)
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset {NAMESPACE}>{urls}</urlset>'


def index(*urls: str) -> str:
    return f"<sitemapindex {NAMESPACE}>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


class TestParsing:
    def test_pages(self) -> None:
        text = page_map("/a", "/b?x=1&amp;y=2", more="<lastmod>2024-03-05T08:00:00+08:00</lastmod>")
        date = "2024-03-05T08:00:00+08:00"
        assert parse_sitemap(text.encode(), URL) == (
            [],
            [("https://example.com/a", date), ("https://example.com/b?x=1&y=2", date)],
        )

    def test_index(self) -> None:
        assert parse_sitemap(index("/one.xml", "https://example.com/two.xml.gz").encode(), URL) == (
            ["https://example.com/one.xml", "https://example.com/two.xml.gz"],
            [],
        )

    def test_other_elements_do_not_count(self) -> None:
        more = (
            '<image:image xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">'
            "<image:loc>https://example.com/photo</image:loc></image:image>"
            '<xhtml:link xmlns:xhtml="http://www.w3.org/1999/xhtml" rel="alternate" href="https://example.com/de"/>'
            "<lastmod>yesterday</lastmod><!-- old -->"
        )
        assert parse_sitemap(page_map("/a", more=more).encode(), URL)[1] == [("https://example.com/a", "")]

    @pytest.mark.parametrize("date", ["2024", "2024-03", "2024-03-05", "2024-03-05T12:00Z", "2024-03-05T12:00:01.5Z"])
    def test_dates(self, date: str) -> None:
        text = page_map("/a", more=f"<lastmod> {date}\n</lastmod>")
        assert parse_sitemap(text.encode(), URL)[1][0][1] == date

    def test_without_a_namespace_and_with_a_prefix(self) -> None:
        bare = b"<urlset><url><loc> https://example.com/a </loc></url></urlset>"
        prefixed = f'<s:urlset xmlns:s="{NAMESPACE}"><s:url><s:loc>/a</s:loc></s:url></s:urlset>'.replace('xmlns="', "")
        for text in (bare, prefixed.replace('""', '"').encode()):
            assert parse_sitemap(text, URL)[1] == [("https://example.com/a", "")]

    def test_gzip(self) -> None:
        assert parse_sitemap(gzip.compress(page_map("/a").encode()), URL)[1] == [("https://example.com/a", "")]

    def test_plain_text(self) -> None:
        text = "\ufeffhttps://example.com/a\r\n\r\nwords\nhttps://example.com/b\nftp://example.com/c\n"
        assert [page[0][-1] for page in parse_sitemap(text.encode(), URL)[1]] == ["a", "b"]

    def test_a_feed(self) -> None:
        assert parse_sitemap(RSS.encode(), URL)[1][1] == ("https://example.com/two", "")

    def test_a_damaged_one_gives_what_it_can(self) -> None:
        cut = page_map(*(f"/{number}" for number in range(100)))[:1000]
        found = parse_sitemap(cut.encode(), URL)[1]
        assert 5 < len(found) < 100
        assert sitemap_task(gzip.compress(page_map("/a").encode())[:30], {"url": URL}) == {"sitemaps": [], "pages": []}

    @pytest.mark.parametrize("body", [b"", b"<html><body>404</body></html>", b"<urlset/>", b"<", b"\x1f\x8bnot gzip"])
    def test_nothing(self, body: bytes) -> None:
        assert sitemap_task(body, {"url": URL}) == {"sitemaps": [], "pages": []}

    def test_no_more_than_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sitemaps, "MAX_URLS", 10)
        assert len(parse_sitemap(page_map(*(f"/{number}" for number in range(100))).encode(), URL)[1]) == 10

    def test_bombs_are_harmless(self, parser: Parser) -> None:
        for body in (
            BOMB.encode(),
            gzip.compress(b"<urlset>" + b"<url>" * 60_000_000),
            BOMB.replace("rss", "urlset").encode(),
        ):
            made = parser.run("sitemap", body, url=URL)
            assert len(made["pages"]) <= 1
        assert parser.run("sitemap", page_map("/a").encode(), url=URL)["pages"] == [["https://example.com/a", ""]]

    def test_files_of_the_machine_are_not_read(self) -> None:
        text = page_map("/&x;").replace("<urlset", '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset')
        assert not any("root" in url for url, _ in parse_sitemap(text.encode(), URL)[1])


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
        """Neither their pages nor their sitemaps: a site speaks for itself only."""
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
        assert page_server.count() <= sitemaps.MAX_FILES + 3

    def test_stopping(self, site: SiteServer, fetcher: Fetcher, robots: Robots, tasks: Tasks) -> None:
        robots.sitemaps(site.url("/"))
        with pytest.raises(IngestError):
            sitemap_pages(fetcher, tasks, robots, site.url("/"), 1000, stopped=lambda: True)
        assert set(site.counts) == {"/robots.txt"}
