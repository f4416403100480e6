"""Sitemaps as sites write them, and their pages."""

from __future__ import annotations

import gzip
import time

import pytest

from rag.reading import links
from rag.reading.links import iter_entries, parse_sitemap, root_name, sitemap_task
from rag.reading.parser import Parser
from tests.reading.test_feed import BOMB, RSS

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
        monkeypatch.setattr(links, "MAX_URLS", 10)
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


def addresses(text: str) -> list[str]:
    return [entry.texts.get("loc", "") for entry in iter_entries(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<url><loc>a</loc><image:image><image:loc>i</image:loc></image:image></url>", ["a"]),
        ("<URL><LOC>a</LOC></URL>", ["a"]),
        ("<sm:url><sm:loc>a</sm:loc></sm:url>", ["a"]),
        ("<url><loc>a?x=1&y=2&amp;z=&#51;&copy=4</loc></url>", ["a?x=1&y=2&z=3&copy=4"]),
        ("<url><loc> <![CDATA[a?b=1&c=2&amp;d]]> </loc></url>", ["a?b=1&c=2&amp;d"]),
        ("<url><loc>a<!-- b -->c</loc></url>", ["ac"]),
        ("<url><loc>a</loc></url><url><loc>b", ["a", ""]),
        ("<url><loc>a</loc><url><loc>b</loc>", ["a", "b"]),
        ("<url><xhtml:link href='x'/><loc>a</loc></url>", ["a"]),
        ("<url><loc>a</loc><loc>b</loc></url>", ["a"]),
        ("<url/><url><loc>a</loc></url>", ["", "a"]),
        ("<!-- <url><loc>a</loc></url>", []),
        ("<!DOCTYPE x [<!ENTITY e 'boom'>]><url><loc>&e;</loc></url>", ["&e;"]),
    ],
)
def test_entries(text: str, found: list[str]) -> None:
    assert addresses(text) == found


def test_what_a_document_is() -> None:
    assert root_name("<?xml version='1.0'?><!-- a --><x:UrlSet a='b'>") == "urlset"
    assert root_name("no element") == ""


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<![CDATA[", "<url", "<url>", "<url><loc>", "&", "<a ", "</loc>", "<a>"]
)
def test_hostile_ones_take_time_in_proportion(piece: str) -> None:
    began = time.thread_time()
    list(iter_entries(piece * (400_000 // len(piece))))
    assert time.thread_time() - began < 2
