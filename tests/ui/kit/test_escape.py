import re

import pytest
from markdown_it import MarkdownIt

from rag.ui.kit.escape import JOINER, escape, escape_line, shorten, web_link

PLAIN = [
    "A plain sentence, with commas; and 10:30 in the morning.",
    "灯每四个小时上一次发条。",
    "# not a heading",
    "1. not a list",
    "- not a list\n+ nor this",
    "a * b * c _d_ ~~e~~ `f`",
    "<b>bold</b> &amp; &#33;",
    "[text](https://evil.example) ![x](https://evil.example/x.png)",
    "costs $5 or $6, $$x$$",
    ":red[loud] :material/home: :smile: :streamlit:",
    "a | b\n--- | ---\n1 | 2",
    "title\n=====",
    "    indented code",
]


@pytest.mark.parametrize("text", PLAIN)
def test_markdown_shows_exactly_the_text(text: str) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(escape(text.strip()))
    shown = re.sub(r"</?p>", "", html).strip()
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, sign)
    assert shown.replace(JOINER, "") == text.strip()


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (":material/home:", r":material/"),
        (":+1: and :smile:", r":[\w+-]+:"),
        (":streamlit:", r":streamlit:"),
        ("https://evil.example/x", r"https?://"),
        ("HTTP://evil.example/x", r"(?i)https?://"),
        ("www.evil.example", r"www\."),
        ("write to someone@evil.example", r"\w@\w"),
        ("a -> b", r"(^|\s)->(\s|$)"),
        ("a -- b", r"(^|\s)--(\s|$)"),
        ("a <= b", r"(^|\s)<=(\s|$)"),
    ],
)
def test_patterns_that_are_applied_to_parsed_text_are_broken(text: str, pattern: str) -> None:
    assert re.search(pattern, text)
    assert not re.search(pattern, re.sub(r"\\(.)", r"\1", escape(text)))


def test_no_character_that_turns_text_around_or_hides_remains() -> None:
    assert escape("a\u202eb\u2066c\x00d\x1be") == "abcde"


def test_a_line_holds_no_line_break() -> None:
    assert escape_line(" a\n\n# b\t c ") == "a # b c"


def test_a_link_needs_a_plain_web_address() -> None:
    assert web_link("A [page]", "https://example.org/a") == r"[A \[page\]](<https://example.org/a>)"
    for url in ("javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://x>y", "notes.md"):
        assert web_link("Page", url) == "Page"


def test_shortening_keeps_both_ends() -> None:
    assert shorten("short", 10) == "short"
    short = shorten("https://example.org/" + "x" * 200 + "/end", 40)
    assert len(short) == 40
    assert short.startswith("https://example.org/")
    assert short.endswith("/end")
