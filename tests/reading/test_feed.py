"""Feeds of any dialect: their pages."""

from __future__ import annotations

import pytest

from rag.reading.links import feed_task, parse_feed
from rag.reading.parser import Parser
from rag.web.urls import FoundPage

URL = "https://example.com/blog/feed.xml"
RSS = """<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>News</title><link>/</link>
<item><title>One</title><link>https://example.com/one?utm_source=rss</link>
<pubDate>Tue, 05 Mar 2024 12:00:00 +0800</pubDate></item>
<item><title>Two</title><link>/two#comments</link></item>
<item><title>One again</title><link>https://example.com/one</link></item>
<item><title>No page</title><link>javascript:alert(1)</link></item>
<item><title>Sound</title><link>https://example.com/show.mp3</link></item>
<item><title>No link</title></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.com/blog/"><title>News</title>
<entry><title>一</title><link rel="edit" href="edit/1"/><link href="posts/1"/>
<published>2024-03-01T00:00:00Z</published>
<updated>2024-03-05T08:00:00+08:00</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel/><item><title>Old</title><link>https://example.com/old</link></item></rdf:RDF>"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><rss version="2.0"><channel><item><title>&i;</title><link>https://example.com/x</link></item></channel></rss>'
)


def test_rss() -> None:
    assert parse_feed(RSS.encode(), URL) == [
        FoundPage("https://example.com/one", 0, "2024-03-05T04:00:00Z"),
        FoundPage("https://example.com/two"),
    ]


def test_atom() -> None:
    assert parse_feed(ATOM.encode(), URL) == [FoundPage("https://example.com/blog/posts/1", 0, "2024-03-05T00:00:00Z")]


def test_rdf() -> None:
    assert [page.url for page in parse_feed(RDF.encode(), URL)] == ["https://example.com/old"]


def test_a_chinese_feed_in_its_own_charset() -> None:
    body = RSS.replace("UTF-8", "gb2312").replace("/two", "/二").encode("gbk")
    assert parse_feed(body, URL)[1].url == "https://example.com/%E4%BA%8C"


def test_a_damaged_feed_gives_what_it_can() -> None:
    found = [page.url for page in parse_feed(RSS[:420].encode(), URL)]
    assert found == ["https://example.com/one", "https://example.com/two"]


@pytest.mark.parametrize(
    "body", [b"", b"<html><p>Hello</p></html>", b"{}", b"\x00\x01", b"<rss", b"https://example.com/feed"]
)
def test_what_is_no_feed(body: bytes) -> None:
    assert parse_feed(body, URL) == []


def test_entities_do_not_explode(parser: Parser) -> None:
    pages = parser.run("feed", BOMB.encode(), url=URL)["pages"]
    assert pages in ([], [["https://example.com/x", ""]])


def test_a_file_of_the_machine_is_not_read() -> None:
    body = RSS.replace("<rss", '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss').replace("/two", "/&x;")
    assert not any("root" in page.url for page in parse_feed(body.encode(), URL))


def test_the_task() -> None:
    assert feed_task(RSS.encode(), {"url": URL})["pages"][1] == ["https://example.com/two", ""]


def test_an_entry_with_an_address_that_is_none_is_left_out() -> None:
    entries = ["http://[bad/x", "https://example.com/ok"]
    items = "".join(f"<item><title>T</title><link>{link}</link></item>" for link in entries)
    feed = f'<?xml version="1.0"?><rss version="2.0"><channel><title>f</title>{items}</channel></rss>'
    assert [page.url for page in parse_feed(feed.encode(), "https://example.com/feed")] == ["https://example.com/ok"]
