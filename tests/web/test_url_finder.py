"""Addresses extracted from any pasted text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.web.url_finder import find_urls, locate_urls

A, B = "https://a.example/x", "https://b.example/y?q=1"


@pytest.mark.parametrize(
    "pasted",
    [
        f"{A}\n{B}",
        f"{A} {B}",
        f"{A}\t{B}\r\n",
        f"{A},{B}",
        f"{A}, {B}.",
        f"{A};{B};",
        f"{A}|{B}",
        f"{A}，{B}。",
        f"{A}；{B}！",
        f"{A}、{B}）",
        f"（{A}）（{B}）",
        f"《{A}》「{B}」",
        f"“{A}” ‘{B}’",
        f"<{A}> <{B}>",
        f"'{A}' \"{B}\"",
        f"`{A}` and ({B})",
        f'[one]({A}) ![two]({B} "title")',
        f"1. {A}\n2. **{B}**",
        f"* [{A}]({A})\n* [{B}]({B})",
        f"<a href=\"{A}\">one</a><a href='{B}'>two</a>",
        f"看{A}这个，再看{B}",
        f"第一个{A}第二个{B}",
        f"{A}{B}",
        f"See {A}: and {B}!?",
        f"{A}…{B}…",
        "a.example/x b.example/y?q=1",
        "a.example/x,b.example/y?q=1",
        '["https://a.example/x","https://b.example/y?q=1"]',
        '{"u": "https://a.example/x", "v": "https://b.example/y?q=1"}',
    ],
)
def test_separators_and_wrappings(pasted: str) -> None:
    assert find_urls(pasted) == ([A, B], 0)


@pytest.mark.parametrize(
    "url",
    [
        "https://en.wikipedia.org/wiki/Mercury_(planet)",
        "https://zh.wikipedia.org/wiki/量子力学",
        "https://zh.wikipedia.org/wiki/C语言",
        "https://baike.example/item/长江/123",
        "https://search.example/?q=长江大桥&page=2",
        "https://web.archive.org/web/2020/https://a.example/x",
        "https://a.example/login?next=https://b.example/y",
        "https://a.example/it's,really;so:true",
        "https://a.example/a*b~c!d",
        "https://a.example/#!/route",
        "https://bücher.example/",
        "https://例え.テスト/",
        "http://[2606:4700::1111]/x",
        "http://localhost:8000/x",
        "http://10.0.0.1/",
        "ftp://a.example/x",
        "file:///etc/passwd",
        "http://user:pw@a.example/",
    ],
)
@pytest.mark.parametrize("frame", ["{}", "<{}>", "({})", "[t]({})", "“{}”", "{}.", "{}，然后"])
def test_addresses_stay_whole(url: str, frame: str) -> None:
    assert find_urls(frame.format(url)) == ([url], 0)


@pytest.mark.parametrize(
    ("pasted", "urls"),
    [
        ("example.com", ["https://example.com"]),
        ("Example.COM/Path.", ["https://Example.COM/Path"]),
        ("www.anything.museum", ["https://www.anything.museum"]),
        ("访问example.com，谢谢", ["https://example.com"]),
        ("wiki.local:8080/page", ["https://wiki.local:8080/page"]),
        ("example.com?x=1", ["https://example.com?x=1"]),
        ("https://a.example/?x=1&amp;y=2", ["https://a.example/?x=1&y=2"]),
    ],
)
def test_bare_domains_and_markup(pasted: str, urls: list[str]) -> None:
    assert find_urls(pasted)[0] == urls


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "no address",
        "me@example.com",
        "README.md",
        "src/main.py",
        "e.g. this",
        "3.14",
        "v1.2.3",
        "https://",
        "a . com",
        *("Links:", "Note: see below", "at 12:30", "URL:见下文", "and/or", "git@a:/x", "x:/", "C:/x"),
    ],
)
def test_what_is_no_address(pasted: str) -> None:
    assert find_urls(pasted) == ([], 0)


def test_each_page_once_in_order_as_first_written() -> None:
    pasted = "https://B.example/#top https://a.example https://b.example/ b.example https://a.example/?utm_source=x"
    assert find_urls(pasted) == (["https://B.example/#top", "https://a.example"], 0)


def test_limit() -> None:
    pasted = "\n".join(f"https://a.example/{number}" for number in range(250))
    urls, dropped = find_urls(pasted)
    assert (len(urls), dropped, urls[-1]) == (200, 50, "https://a.example/199")
    assert find_urls(pasted, limit=3) == ([f"https://a.example/{number}" for number in range(3)], 247)


def test_no_limit() -> None:
    pasted = "\n".join(f"https://a.example/{'x' * 2000}/{number}" for number in range(700))
    urls, dropped = find_urls(pasted, limit=None)
    assert (len(urls), dropped, urls[-1][-4:]) == (700, 0, "/699")


@given(st.text(alphabet="htps:/.a-例，()[]'\" ,;|&=?#%\n", max_size=200))
def test_never_raises(pasted: str) -> None:
    urls, dropped = find_urls(pasted)
    assert dropped == 0
    assert all(":" in url and not any(space in url for space in " \n") for url in urls)


@pytest.mark.parametrize("piece", ["a.b", "https://", "(", "a-", "a.", "https://a.example/(", "www.", "，", "x@"])
def test_long_rubbish_takes_no_long_time(piece: str) -> None:
    start = time.thread_time()
    find_urls(piece * (600_000 // len(piece)))
    assert time.thread_time() - start < 5  # seconds of this thread: 0.1 to 0.5; minutes if it were quadratic


@pytest.mark.parametrize("slip", ["htp:/broken", "file:/etc/passwd", "http:/a.example/x"])
@pytest.mark.parametrize("around", ["{}", f"{A}\n{{}}\n{B}", "See {}, please.", "（{}）", "<{}>", "'{}'"])
def test_what_was_meant_as_an_address_is_not_dropped(slip: str, around: str) -> None:
    assert slip in find_urls(around.format(slip))[0]


@pytest.mark.parametrize("line", ["javascript:alert(1)", "mailto:ann@a.example", "localhost:8501", "htps:a.example"])
def test_on_a_line_of_its_own_anything_that_names_a_scheme_is_told(line: str) -> None:
    assert find_urls(f"{A}\n{line}\r\n{B}")[0] == [A, line, B]


@pytest.mark.parametrize(
    ("pasted", "links"),
    [
        ("https://exa mple.com/page", ["https://exa mple.com/page"]),
        ("htp://broken..address other.example", ["htp://broken..address other.example"]),
        ("https://exa\nother.example", ["https://exa", "https://other.example"]),
        ("http://localhost other.example", ["http://localhost", "https://other.example"]),
        (f"{A} other.example", [A, "https://other.example"]),
    ],
)
def test_words_after_a_link_cut_off_in_its_host_are_no_link_of_their_own(pasted: str, links: list[str]) -> None:
    assert find_urls(pasted)[0] == links
    assert [address for _, _, address in locate_urls(pasted)] == links


@pytest.mark.parametrize("text", ["htp://broken..address", "htp:/broken.example", "ftp://x.example/f", f"{A} htp://b"])
def test_text_of_nothing_but_links_includes_the_broken_ones(text: str) -> None:
    assert [address for _, _, address in locate_urls(text)] == text.split()
    assert [address for _, _, address in locate_urls(f"Why is {text} broken?")] == [A] * text.startswith(A)


@pytest.mark.parametrize("text", ["std::vector", "mailto:ana@a.example", "C++:"])
def test_words_with_a_colon_are_no_link(text: str) -> None:
    assert locate_urls(text) == []
