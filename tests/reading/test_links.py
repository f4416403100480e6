"""The links of a page, however it writes them."""

from __future__ import annotations

import time

import pytest

from rag.reading.links import MAX_LINKS, links_task

BASE = "https://example.com/docs/page.html"


def found_in(html: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = links_task(html.encode(), {"url": BASE, "charset": "utf-8"})
    return found


def links(body: str, head: str = "") -> list[str]:
    html = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return [link.removeprefix("https://example.com") for link in found_in(html)["links"]]


@pytest.mark.parametrize(
    ("href", "found"),
    [
        ("a.html", "/docs/a.html"),
        ("../a", "/a"),
        ("/b?x=1&amp;y=2#part", "/b?x=1&y=2"),
        ("//other.example/c", "https://other.example/c"),
        (" /spaced \n", "/spaced"),
        ("?page=2", "/docs/page.html?page=2"),
        ("/路径/页", "/%E8%B7%AF%E5%BE%84/%E9%A1%B5"),
        ("https://例え.example/", "https://xn--r8jz45g.example/"),
        ("/report.pdf", "/report.pdf"),
        ("/a?utm_source=x", "/a"),
        ("HTTPS://EXAMPLE.COM/Upper", "/Upper"),
    ],
)
def test_addresses(href: str, found: str) -> None:
    assert links(f"<a href='{href}'>x</a>") == [found]


@pytest.mark.parametrize(
    "href",
    [
        "",
        "#part",
        "page.html#part",
        "mailto:a@b.example",
        "javascript:void(0)",
        "data:text/html,x",
        "tel:123",
        "ftp://example.com/x",
        "http://[::1",
        "http://",
        "/photo.jpg",
        "/archive.tar.gz",
        "/" + "a" * 3000,
    ],
)
def test_what_leads_to_no_page(href: str) -> None:
    assert links(f"<a href='{href}'>x</a>") == []


def test_each_once_in_order() -> None:
    assert links("<a href='/b'>1</a><a href='/a'>2</a><a href='/b#x'>3</a><map><area href='/c'></map>") == [
        "/b",
        "/a",
        "/c",
    ]


@pytest.mark.parametrize("rel", ["nofollow", "external NOFOLLOW", "ugc nofollow"])
def test_nofollow(rel: str) -> None:
    assert links(f"<a rel='{rel}' href='/a'>x</a><a rel='next' href='/b'>y</a>") == ["/b"]


@pytest.mark.parametrize(("content", "found"), [("index, NoFollow", []), ("none", []), ("noindex", ["/a"])])
def test_a_page_that_wants_no_links_followed(content: str, found: list[str]) -> None:
    assert links("<a href='/a'>x</a>", f"<meta name='Robots' content='{content}'>") == found


@pytest.mark.parametrize(
    ("base", "found"),
    [
        ("<base href='/v2/'>", "/v2/a"),
        ("<base target='_top'><base href='v3/'><base href='/v4/'>", "/docs/v3/a"),
        ("<base href='https://cdn.example/x/'>", "https://cdn.example/x/a"),
        ("<base href='javascript:1'>", "/docs/a"),
        ("<base href='http://[bad'>", "/docs/a"),
    ],
)
def test_base(base: str, found: str) -> None:
    assert links("<a href='a'>x</a>", base) == [found]


def test_no_more_than_the_limit() -> None:
    assert len(links("".join(f"<a href='/{number}'>x</a>" for number in range(MAX_LINKS + 50)))) == MAX_LINKS


@pytest.mark.parametrize(
    "html", ["", "   ", "\x00", "just words", "<", "<!-- -->", "<a href='/x'", "<?xml version='1.0'?>"]
)
def test_what_is_hardly_a_page(html: str) -> None:
    assert found_in(html)["links"] == []


def test_a_declaration_does_not_spoil_it() -> None:
    html = "<?xml version='1.0' encoding='gbk'?><html><body><a href='/a'>x</a></body></html>"
    assert found_in(html)["links"] == ["https://example.com/a"]


@pytest.mark.parametrize("html", ["<p>" * 100_000, "<div>" * 100_000 + "<a href='/a'>x</a>", "<a href='/a'>" * 100_000])
def test_hostile_pages_end(html: str) -> None:
    began = time.thread_time()
    found_in(html)
    assert time.thread_time() - began < 5


def test_feeds() -> None:
    html = (
        "<head><link rel='stylesheet alternate' type='application/rss+xml; charset=utf-8' href='/feed'>"
        "<link rel='alternate' type='APPLICATION/ATOM+XML' href='atom.xml'>"
        "<link rel='alternate' type='application/json' href='/feed.json'>"
        "<link rel='alternate' hreflang='de' href='/de'><link rel=alternate type='application/rss+xml'></head>"
    )
    assert found_in(html)["feeds"] == ["https://example.com/feed", "https://example.com/docs/atom.xml"]


def test_the_task_decodes() -> None:
    body = "<meta charset=gbk><a href='/维基'>x</a>".encode("gbk")
    made = links_task(body, {"url": BASE, "charset": None})
    assert made == {"links": ["https://example.com/%E7%BB%B4%E5%9F%BA"], "feeds": []}
    assert links_task(b"", {"url": BASE}) == {"links": [], "feeds": []}
