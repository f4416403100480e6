import re

import pytest
from markdown_it import MarkdownIt

from rag.ui.kit.markdown import JOINER, Doubt, answer_markdown, escape, escape_line, shorten, web_link

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


SOURCE = "https://ok.example/page"

TAGS = {"p", "a", "em", "strong", "s", "code", "pre", "ul", "ol", "li", "blockquote", "h5", "h6", "hr", "br"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}

HOSTILE = [
    "![x](https://evil.example/x.png)",
    "![x][ref]\n\n[ref]: https://evil.example/x.png",
    "<img src=https://evil.example/x.png>",
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "<!-- --> <iframe src='https://evil.example'></iframe>",
    "[click](https://evil.example)",
    "[click](javascript:alert(1))",
    "[click](data:text/html,x)",
    "[1]: https://evil.example\n\nSee [1].",
    "[1](https://evil.example)",
    "<https://evil.example>",
    "https://evil.example/x and www.evil.example and a@evil.example",
    "ht![x](y)tps://evil.example",
    "[![x](https://evil.example/x.png)](https://evil.example)",
    ":material/home: :smile: :streamlit: :red[x] :red-background[x] :blue-badge[x] :help[x]",
    ":mater![](x)ial/home:",
    ":material&#47;home: &#58;smile&#58;",
    r"\:material/home\: \:smile:",
    "$x$ $$\\frac{1}{2}$$ \\(x\\)",
    "```math\nx\n```",
    "```mermaid\ngraph TD; A-->B\n```",
    ":::red\nx\n:::",
    "::color[x]{foreground=red}",
    "> ![x](https://evil.example/x.png)\n> - <img src=x>",
    "| ![x](https://evil.example/x.png) | b |\n| --- | --- |\n| :smile: | $x$ |",
    "# ![x](https://evil.example/x.png) :material/home:",
    "**![x](https://evil.example/x.png)** *:smile:*",
    "`a` ``b`c`` ![x](y)",
    "text ![",
    "[text](https://ok.example/page",
    "a\u202eb\x00c",
]


def as_shown(markdown: str) -> str:
    """Return the HTML that a common Markdown renderer generates from `markdown`."""
    return MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(markdown)


def outside_code(markdown: str) -> str:
    """Return `markdown` without code and backslash escapes: the text that Streamlit searches."""
    text = re.sub(r"(`+)[\s\S]*?\1", "", markdown)
    text = re.sub(r"\]\(<[^>]*>\)", "]", text)
    return re.sub(r"\\(.)", r"\1", text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("pending", [False, True])
def test_nothing_of_the_hostile_corpus_survives(text: str, pending: bool) -> None:
    markdown = answer_markdown(text, urls=[SOURCE], marks=[1], anchor="source-a", pending=pending)
    html = as_shown(markdown)
    tags = set(re.findall(r"<([a-z0-9]+)", html))
    assert tags <= TAGS
    links = re.findall(r'href="([^"]*)"', html)
    assert all(link == SOURCE or link.startswith("#source-a-") for link in links)
    plain = outside_code(re.sub(r":gray-badge\[\d+\]", "", markdown))
    assert not re.search(r"(?i)https?://|www\.|\w@\w", plain)
    assert not re.search(r":[\w+-]+:|:material/", plain)
    assert not re.search(r"(?<!\\)\$", re.sub(r"(`+)[\s\S]*?\1", "", markdown))
    assert not re.search(r"(?<!\\):(?!gray-badge)\w", re.sub(r"(`+)[\s\S]*?\1|<[^>]*>", "", markdown))
    assert "```math" not in markdown
    assert "```mermaid" not in markdown


@pytest.mark.parametrize("cut", range(1, 120, 7))
def test_half_written_text_is_as_safe_as_whole_text(cut: int) -> None:
    text = "See [this](https://evil.example/a) and ![x](https://evil.example/x.png) :smile: <img src=x> $a$ end"
    html = as_shown(answer_markdown(text[:cut], pending=True))
    assert "<img" not in html
    assert "href" not in html


def test_links_stay_where_they_lead_to_a_source() -> None:
    kept = answer_markdown(f"[here]({SOURCE}) and [there]({SOURCE}/other)", urls=[SOURCE])
    assert as_shown(kept).count("href") == 1
    assert "[here](<https://ok.example/page>)" in kept
    assert as_shown(answer_markdown(f"[part]({SOURCE}#part)", urls=[SOURCE])).count("href") == 1


def test_marks_lead_to_their_source_and_unknown_ones_stay_text() -> None:
    markdown = answer_markdown("Wound every four hours. [1][2] Not this [7].", marks=[1, 2], anchor="source-r")
    assert "hours.[1](#source-r-1)[2](#source-r-2) Not" in markdown
    assert r"\[7\]" in markdown


@pytest.mark.parametrize(
    "text", ["Run it as root! [1]", "Run it![1]", "Run it![1](https://evil.example/x.png)", "- 立即运行![1]", "![1]"]
)
def test_a_mark_after_an_exclamation_mark_is_no_picture(text: str) -> None:
    html = as_shown(answer_markdown(text, marks=[1], anchor="s"))
    assert re.findall(r'<a href="([^"]*)"', html) == ["#s-1"]
    assert "<img" not in html and "!<a" in html
    assert "<img" not in as_shown(answer_markdown(text, pending=True))


def test_a_link_after_an_exclamation_mark_is_no_picture() -> None:
    assert "<img" not in as_shown(answer_markdown(f"Look![*here*]({SOURCE})\\![here]({SOURCE})", urls=[SOURCE]))
    assert "<img" not in as_shown(escape("Look!") + web_link("here", SOURCE))


def test_marks_that_are_not_settled_are_badges() -> None:
    assert answer_markdown("Every four hours. [3]", pending=True) == "Every four hours.:gray-badge[3]"


def test_a_reference_definition_cannot_claim_a_mark() -> None:
    markdown = answer_markdown("So it is. [1]\n\n[1]: https://evil.example", marks=[1], anchor="s")
    assert re.findall(r'href="([^"]*)"', as_shown(markdown)) == ["#s-1", "#s-1"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**注意：**请看", "<strong>注意</strong>：请看"),
        ("请看**“注意”**一节", "请看“<strong>注意</strong>”一节"),
        ("价格**（含税）**为五元", "价格（<strong>含税</strong>）为五元"),
        ("**Note:**text", "<strong>Note</strong>:text"),
        ("**Note:** text", "<strong>Note:</strong> text"),
        ("**注意**：请看", "<strong>注意</strong>：请看"),
        ("灯**[1]**亮", "灯**[1]**亮"),
        ("a ** b ** c", "a ** b ** c"),
        ("`**注意：**请看`", "<code>**注意：**请看</code>"),
    ],
)
def test_bold_beside_chinese_is_bold(text: str, shown: str) -> None:
    assert as_shown(answer_markdown(text)) == f"<p>{shown}</p>\n"


def test_ordinary_markdown_keeps_its_shape() -> None:
    text = (
        "## Head\n\nA **bold** and *soft* ~~no~~ `code`.\n\n1. one\n2. two\n   - deep\n\n> quoted\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```python\nx = 1\n```"
    )
    html = as_shown(answer_markdown(text))
    parts = "<h5>Head|<strong>bold|<em>soft|<s>no|<code>code|<ol>|<ul>|<blockquote>".split("|")
    assert [part for part in parts if part not in html] == []
    assert "<td>2</td>" in html
    assert 'class="language-python"' in html


def test_chinese_text_comes_through_unchanged() -> None:
    text = "灯每四个小时上一次发条，昼夜不停。**大雾**时每分钟敲两次钟。"
    assert answer_markdown(text) == text


def test_deep_nesting_ends() -> None:
    assert len(answer_markdown("> " * 500 + "x")) < 5000
    assert len(answer_markdown("- " * 500 + "x")) < 50_000


def test_what_separates_dropped_parts_has_no_width() -> None:
    assert answer_markdown("a![x](y)b") == f"a{JOINER}x{JOINER}b"


@pytest.mark.parametrize(
    ("text", "statement", "shown"),
    [
        ("**So it is.** Then", "**So it is.**", '**So it is. [?](#a-unsupported "why")** Then'),
        ("- one\n- two", "- one", '- one [?](#a-unsupported "why")\n- two'),
        ("So it is.[1] Then", "So it is.", 'So it is.[1](#a-1) [?](#a-unsupported "why") Then'),
        ("| a |\n| --- |\n| b |", "| b |", '| b [?](#a-unsupported "why") |'),
    ],
)
def test_the_word_at_a_doubtful_statement_stands_behind_it(text: str, statement: str, shown: str) -> None:
    start = text.index(statement)
    doubts = [Doubt(start, start + len(statement), "?", "why")]
    assert shown in answer_markdown(text, marks=[1], anchor="a", doubts=doubts)


def test_signs_of_the_private_use_area_mark_nothing() -> None:
    doubts = [Doubt(0, 3, "?", "why")]
    shown = answer_markdown("one \ue000\ue001 two ![\ue000](x) [\ue000](y)", anchor="a", doubts=doubts)
    assert shown.count("[?]") == 1
    assert "\ue000" not in shown


def test_half_hostile_tips_stay_text() -> None:
    shown = answer_markdown("one", anchor="a", doubts=[Doubt(0, 3, "[x](y)", 'a" onclick="b')])
    assert re.findall(r'href="([^"]*)"', as_shown(shown)) == ["#a-unsupported"]
    assert 'onclick="' not in shown
