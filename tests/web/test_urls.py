"""One key for all spellings of an address, no two pages with the same key; crawler traps."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.web import urls as keys
from rag.web.urls import (
    SENT_AS_IS,
    is_page_name,
    is_trap,
    join_location,
    join_url,
    mentions_any,
    page_address,
    same_site,
    split_url,
    strip_tracking,
    url_hash,
    url_key,
)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/a#:~:text=word", "https://example.com/a"),
        ("https://example.com/#!/inbox", "https://example.com/#!/inbox"),
        ("https://example.com/#/inbox", "https://example.com/#/inbox"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a/%2e%2E/c", "https://example.com/c"),
        ("https://example.com/a/..", "https://example.com/"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/%7euser/%e4%b8%ad", "https://example.com/~user/%E4%B8%AD"),
        ("https://example.com/中", "https://example.com/%E4%B8%AD"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://example.com/100%", "https://example.com/100%25"),
        ("https://example.com/a%2fb", "https://example.com/a%2Fb"),
        ("https://faß.de/", "https://xn--fa-hia.de/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://例え.テスト.example/", "https://xn--r8jz45g.xn--zckzah.example/"),
        ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
        ("https://example.com/?utm_source=x&a=1&gclid=2", "https://example.com/?a=1"),
        ("https://example.com/?utm_source=x&fbclid=1&mc_cid=2&igshid=3&_hsenc=4", "https://example.com/"),
        ("  https://example.com/a\n", "https://example.com/a"),
        # as browsers read it
        ("http:/example.com", "http://example.com/"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
        ("http://exam\tple.com/a\nb", "http://example.com/ab"),
        ("http://:@example.com/", "http://example.com/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("https://example.com/?q='a", "https://example.com/?q=%27a"),
        ("https://example.com../", "https://example.com../"),
        ("http://2../", "http://2../"),
        # no web address
        *((text, text) for text in ("", "notes.md", "file:///a/b.html", "mailto:a@b.c", "https", "http:")),
    ],
)
def test_spelling(url: str, key: str) -> None:
    assert url_key(url) == url_key(key) == key


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("http://example.com/", "https://example.com/"),
        ("https://www.example.com/", "https://example.com/"),
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/A", "https://example.com/a"),
        ("https://example.com/?a=1&b=2", "https://example.com/?b=2&a=1"),
        ("https://example.com/?ref=x", "https://example.com/"),
        ("https://example.com/?utm=x", "https://example.com/"),
        ("https://faß.de/", "https://fass.de/"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://example.com/?q=a+b", "https://example.com/?q=ab"),
    ],
)
def test_different_pages_stay_apart(left: str, right: str) -> None:
    assert url_key(left) != url_key(right)


def test_hash_is_the_md5_of_the_key() -> None:
    assert url_hash("HTTPS://EXAMPLE.com/#x") == "182ccedb33a9e03fbf1079b209da1a31"
    assert url_hash("https://example.com/") == url_hash("https://EXAMPLE.com:443/?utm_medium=mail")


@given(st.text(max_size=80), st.text(max_size=40), st.text(max_size=40))
def test_key_of_a_key_is_itself(path: str, query: str, host: str) -> None:
    key = url_key(f"https://{host or 'example.com'}/{path}?{query}")
    assert url_key(key) == key


@given(st.text(max_size=200))
def test_never_raises(text: str) -> None:
    assert len(url_hash(text)) == 32
    assert len(url_hash("http://" + text)) == 32


@pytest.mark.parametrize("url", ["http://[::1/x", "https://a\u2100b.com/", "http://[abc]/", "//[x"])
def test_what_cannot_be_split(url: str) -> None:
    assert not any(split_url(url))
    assert join_url("https://a.example/b", url) == ""
    assert url_key(url) and url_hash(url) and page_address(url) and is_page_name(url)
    assert not is_trap(url) and not same_site(url, "https://example.com/")


def test_splitting_and_joining() -> None:
    assert split_url("http://[::1]:80/x?y#z")[:] == ("http", "[::1]:80", "/x", "y", "z")
    assert join_url("https://a.example/b/c", "../d") == "https://a.example/d"
    assert join_url("http://[::1/x", "/robots.txt") == ""
    assert join_url("https://a.example/b/c", "\\\\b.example\\d") == "https://b.example/d"
    assert join_url("http://a.example/b/c", "http:d") == "http://a.example/b/d"
    assert join_url("https://a.example/", "/\u4e2d?q=\u6587") == "https://a.example/\u4e2d?q=\u6587"
    assert join_url("https://a.example/", "mailto:a@b.example") == ""


@pytest.mark.parametrize(
    ("location", "joined"),
    [
        ("../fin", "https://example.com/fin"),
        ("//other.example/x", "https://other.example/x"),
        ("?q=1", "https://example.com/a/b?q=1"),
        ("/路", "https://example.com/路"),
        ("/with space", "https://example.com/with%20space"),
        ("/100% sure?a=b c#d e", "https://example.com/100%%20sure?a=b%20c#d%20e"),
        ("https://other.example/a b", "https://other.example/a%20b"),
        ("/a\u00a0b\u200bc\x96d", "https://example.com/a%C2%A0b%E2%80%8Bc%C2%96d"),
        ("https://fähre.example/fähre", "https://fähre.example/fähre"),
        ("http://exa mple.com/", "http://exa%20mple.com/"),
        ("http://example.com/\r\nX: y", "http://example.com/\r\nX: y"),
        ("/a\x7fb", "/a\x7fb"),
        ("/\\evil.example", "/\\evil.example"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_what_a_redirect_leads_to(location: str, joined: str) -> None:
    assert join_location("https://example.com/a/b", location) == joined


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://Example.com/a?utm_source=x&b=%20&gclid=1#part", "https://Example.com/a?b=%20#part"),
        ("https://example.com/a?utm_source=x", "https://example.com/a"),
        ("https://example.com/a?b=utm_source", "https://example.com/a?b=utm_source"),
        ("https://example.com/#/a?utm_source=x", "https://example.com/#/a?utm_source=x"),
        ("file:///a?utm_source=x", "file:///a?utm_source=x"),
        ("a note?utm_source=x", "a note?utm_source=x"),
    ],
)
def test_parameters_that_track_are_left_out_and_all_else_stays(url: str, stored: str) -> None:
    assert strip_tracking(url) == stored
    assert url_key(stored) == url_key(url)


def test_only_what_quoting_leaves_alone_skips_it() -> None:
    for character in map(chr, range(256)):
        unchanged = character != "%" and quote(character, safe=SENT_AS_IS) == character
        assert bool(keys._NORMAL.fullmatch(character)) is unchanged, character


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


def test_names_of_pages() -> None:
    pages = ["", "page", "page.html", "x.php", "v1.2", "a.pdf", "b.docx", "c.csv", "d.pptx", "e.xlsx", "f.epub", "g.md"]
    others = ["a.jpg", "a.PNG", "a.tar.gz", "a.mp4", "a.css", "a.js", "a.xls", "a.exe"]
    assert [name for name in pages + others if is_page_name(f"https://example.com/f/{name}?x=a.zip")] == pages


def test_same_site() -> None:
    assert same_site("https://www.example.com/a", "http://example.com:80/b")
    assert not same_site("https://example.com/", "https://docs.example.com/")
    assert not same_site("https://example.com/", "https://example.com:8443/")


def test_a_sentence_mentions_an_address_that_is_in_it() -> None:
    assert mentions_any("notes.pdf is damaged.", "", "notes.pdf")
    assert not mentions_any("The file is damaged.", "", "notes.pdf")
