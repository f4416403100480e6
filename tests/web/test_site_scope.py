"""Addresses that belong to a site, and crawler traps."""

from __future__ import annotations

import pytest

from rag.web.urls import SiteScope, is_page_name, is_trap, page_address, same_site

START = "https://www.example.com/docs/guide.html"


class TestScope:
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
        assert SiteScope(START).admits(url, 1)

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
        ],
    )
    def test_what_does_not(self, url: str) -> None:
        assert not SiteScope(START).admits(url, 1)

    def test_depth(self) -> None:
        scope = SiteScope(START, max_depth=2)
        assert [scope.admits("https://example.com/docs/a", depth) for depth in range(4)] == [True, True, True, False]

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
        scope = SiteScope("https://example.com/start", prefix)
        assert scope.admits(inside)
        assert not scope.admits(outside)

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
        assert SiteScope(start).folder == folder


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/#/route", "https://example.com/"),
        ("https://example.com/a;jsessionid=1F2?x=1", "https://example.com/a?x=1"),
        ("https://example.com/a?PHPSESSID=abc&x=1&&utm_source=b", "https://example.com/a?x=1"),
        ("https://example.com/a?sid=0123456789abcdef0", "https://example.com/a"),
        ("https://example.com/a?sid=12", "https://example.com/a?sid=12"),
        ("https://example.com/a?", "https://example.com/a"),
        ("https://example.com/a?b=2&a=1", "https://example.com/a?b=2&a=1"),
    ],
)
def test_one_spelling(url: str, address: str) -> None:
    assert page_address(url) == address
    assert page_address(address) == address


@pytest.mark.parametrize(
    "path",
    [
        "/" + "a" * 2000,
        "/a/b/a/b/a/b",
        "/" + "/".join(f"s{number}" for number in range(16)),
        "/?" + "&".join(f"p{number}=1" for number in range(9)),
        "/post?replytocom=12",
        "/w/index.php?title=X&action=edit",
        "/calendar/2199/07/",
        "/calendar?year=2099&month=3",
    ],
)
def test_traps(path: str) -> None:
    assert is_trap(f"https://example.com{path}")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/2024/03/05/news",
        "/calendar?year=2024",
        "/w/index.php?title=Python",
        "/forum/viewtopic.php?f=2&t=1402&start=20",
        "/1/1/1/1",
        "/a/b/a/b",
        "/models/2099/",
        "/" + "/".join(f"s{number}" for number in range(15)),
        "/?" + "&".join(f"p{number}=1" for number in range(8)),
    ],
)
def test_no_traps(path: str) -> None:
    assert not is_trap(f"https://example.com{path}")


@pytest.mark.parametrize(
    "name",
    ["", "page", "page.html", "x.php", "v1.2", "a.pdf", "b.docx", "c.csv", "d.pptx", "e.xlsx", "f.epub", "notes.md"],
)
def test_pages(name: str) -> None:
    assert is_page_name(f"https://example.com/f/{name}?x=a.zip")


@pytest.mark.parametrize("name", ["a.jpg", "a.PNG", "a.tar.gz", "a.mp4", "a.css", "a.js", "a.xls", "a.exe"])
def test_no_pages(name: str) -> None:
    assert not is_page_name(f"https://example.com/f/{name}?x=1")


def test_same_site() -> None:
    assert same_site("https://www.example.com/a", "http://example.com:80/b")
    assert not same_site("https://example.com/", "https://docs.example.com/")
    assert not same_site("https://example.com/", "https://example.com:8443/")


@pytest.mark.parametrize("url", ["http://[::1/x", "https://a\u2100b.com/", "http://[domain]/x"])
def test_what_is_no_address_is_nowhere(url: str) -> None:
    scope = SiteScope("https://example.com/docs/")
    assert not scope.contains(url) and not scope.admits(url)
    assert not same_site(url, "https://example.com/") and not SiteScope(url).contains("https://example.com/")
    assert page_address(url) and SiteScope(url).folder and is_page_name(url) and not is_trap(url)
