"""Streamlit Markdown from plain text, shown literally, and from text that a model wrote.

Streamlit's Markdown is CommonMark and GFM with extensions. Some apply after parsing, where backslash escapes no longer
protect: icon and emoji shortcodes, bare links, arrows. A word joiner (U+2060, zero width, no line break) inside the
pattern disables these.

A model's text is parsed as Markdown (always the whole text so far, so that an incomplete construct never shows as
something else) and rendered from the syntax tree: images are dropped, raw HTML is text, links remain only if they lead
to the answer's sources, everything else is escaped. No result needs `unsafe_allow_html`. Page text is rendered by
`rag.ui.kit.passages`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from rag.text import lazy_regex, strip_controls

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

JOINER = "\u2060"

_SHORTCODE = lazy_regex(r":(?=[\w+-][\w+/-]*:|material/)")
_BARE_LINK = lazy_regex(r"(?i)(https?:|www)(?=//|\.)")
_BARE_ADDRESS = lazy_regex(r"(?<=[-.\w+])@(?=[-\w])")
_ARROW = lazy_regex(r"(?<!\S)(?=(?:<->|->|<-|--|>=|<=|~=)(?!\S))")
_SPECIAL = lazy_regex(r"[\\`*_{}\[\]<>|~$&:^]|!\Z")  # a last "!" would turn a link after the text into an image
_LINE_START = lazy_regex(r"(?m)^([ \t]*)(?:([#+\-=!])|(\d{1,9})([.)]))")
_WEB_URL = lazy_regex(r"(?i)https?://[^\s<>\"\\`]+", re.ASCII)
_MARK = lazy_regex(r"\[(\d{1,3})\]")
_MARKS = lazy_regex(r"(?:\[\d{1,3}\])+")
_BOLD = lazy_regex(r"(?<![*\\])\*\*(?![*\s])([^*\n]{1,400})(?<!\s)\*\*(?!\*)")
_CODE = lazy_regex(r"(`{3,}[^`]*+(?:`{3,}|$)|`[^`\n]*+`)")
_MARKUP = frozenset("[]()<>`_~\\|!")
_FIRST_SIGN = 0xE000
_MAX_SIGNS = 0x1000
_SIGN = lazy_regex("[\ue000-\uefff]")
# Code in other languages shows as plain text, since Streamlit draws some, such as mermaid and math.
_CODE_LANGUAGES = {"bash", "c", "cpp", "css", "diff", "go", "html", "ini", "java", "javascript", "js", "json"}
_CODE_LANGUAGES |= {"kotlin", "python", "rust", "sh", "sql", "toml", "ts", "typescript", "xml", "yaml"}


def escape(text: str) -> str:
    """Return Streamlit Markdown that shows `text` literally; line breaks stay as in the source."""
    text = strip_controls(text)
    text = _SHORTCODE.sub(":" + JOINER, text)
    text = _BARE_LINK.sub(lambda match: match[1] + JOINER, text)
    text = _BARE_ADDRESS.sub("@" + JOINER, text)
    text = _ARROW.sub(JOINER, text)
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return _LINE_START.sub(r"\1\3\\\2\4", text)


def code_block(code: str, language: str = "text") -> str:
    """Return a code block that shows `code` literally."""
    code = strip_controls(code).rstrip()
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{ticks}{language}\n{code}\n{ticks}"


def escape_line(text: str) -> str:
    """Escape a title, label or name like `escape`, and collapse white space to single spaces."""
    return escape(" ".join(text.split()))


def shorten(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters, with an ellipsis in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def web_link(text: str, url: str) -> str:
    """Return a Markdown link that shows `text`, or only the text if `url` is not a plain web URL."""
    caption = escape_line(text)
    return f"[{caption}](<{url}>)" if is_web_url(url) else caption


def is_web_url(url: str) -> bool:
    return _WEB_URL.fullmatch(url) is not None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A statement `text[start:end]` that is not fully supported, with a word to show after it and a tooltip.

    `partly` selects the target, and so the style, of the word's link.
    """

    start: int
    end: int
    word: str
    tooltip: str
    partly: bool = False


@dataclass(frozen=True, slots=True)
class _Rules:
    """The links and marks that an answer may contain."""

    urls: frozenset[str]
    marks: Mapping[int, str]
    anchor: str
    pending: bool
    doubts: tuple[Doubt, ...] = ()


def answer_markdown(
    text: str,
    *,
    urls: Iterable[str] = (),
    marks: Iterable[int] | Mapping[int, str] = (),
    anchor: str = "",
    pending: bool = False,
    doubts: Sequence[Doubt] = (),
) -> str:
    """Return a model's answer as Streamlit Markdown.

    `urls` are the URLs of its sources; `marks` are its citation numbers, or a mapping from these to tooltips that are
    escaped for a Markdown title. A mark `[n]` becomes a link to the page's element `{anchor}-{n}`. With `pending`, for
    an answer in progress whose marks may change, marks show as grey badges. After the statement of each of `doubts`,
    its word links to `{anchor}-unsupported` or `{anchor}-partly`, with its tooltip as the title.
    """
    tips = marks if isinstance(marks, Mapping) else dict.fromkeys(marks, "")
    rules = _Rules(frozenset(map(_key, urls)), tips, anchor, pending, tuple(doubts))
    return _SIGN.sub("", _blocks(_parse(_repair_bold(_insert_signs(text, rules.doubts))), rules))


def _insert_signs(text: str, doubts: Sequence[Doubt]) -> str:
    """Insert a private-use character after each statement; the Markdown parser leaves it in place."""
    text = _SIGN.sub(" ", text)
    for place, doubt in sorted(enumerate(doubts), key=lambda pair: -pair[1].end)[:_MAX_SIGNS]:
        marks = _MARKS.match(text, doubt.end)
        at = marks.end() if marks else doubt.end
        if not marks:  # stay inside emphasis, whose end must not precede a letter, and inside a table's last cell
            at = len(text[:at].rstrip("*_~| "))
        text = text[:at] + chr(_FIRST_SIGN + place) + text[at:]
    return text


def _repair_bold(text: str) -> str:
    """Move punctuation out of bold text next to a letter, where CommonMark would show the asterisks.

    `**注意：**请看` becomes `**注意**：请看`; Chinese has no spaces between words.
    """
    return "".join(part if place % 2 else _BOLD.sub(_move_out, part) for place, part in enumerate(_CODE.split(text)))


def _move_out(bold: re.Match[str]) -> str:
    body, lead, tail = bold[1], "", ""
    before, after = bold.string[: bold.start()][-1:], bold.string[bold.end() : bold.end() + 1]
    if after.isalnum():
        inside = body.rstrip(_punctuation(body))
        body, tail = inside, body[len(inside) :]
    if before.isalnum():
        inside = body.lstrip(_punctuation(body))
        lead, body = body[: len(body) - len(inside)], inside
    return f"{lead}**{body}**{tail}" if body.strip() else bold[0]


def _punctuation(text: str) -> str:
    """Return the punctuation in `text` that has no meaning in Markdown."""
    return "".join(sign for sign in set(text) - _MARKUP if unicodedata.category(sign)[0] in "PS")


def _parse(text: str) -> Sequence[SyntaxTreeNode]:
    from markdown_it.tree import SyntaxTreeNode  # takes 0.1 s, which would delay the server's start

    return SyntaxTreeNode(_parser().parse(text)).children


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Reference definitions would turn a mark like [1] into a link of the model's choice.
    options = {"html": False, "linkify": False, "maxNesting": 12}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    return parser.disable(["reference", "html_block", "html_inline"])


def _blocks(nodes: Sequence[SyntaxTreeNode], rules: _Rules, *, tight: bool = False) -> str:
    parts = [_block(node, rules) for node in nodes]
    return ("\n" if tight else "\n\n").join(part for part in parts if part.strip())


def _block(node: SyntaxTreeNode, rules: _Rules) -> str:
    match node.type:
        case "heading":
            text = _inline(node, rules).replace("\n", " ")
            return f"{'#' * (5 if node.tag in ('h1', 'h2') else 6)} {text}"
        case "fence" | "code_block":
            language = node.info.strip().lower() if node.type == "fence" else ""
            return code_block(node.content, language if language in _CODE_LANGUAGES else "text")
        case "blockquote":
            return _prefix(_blocks(node.children, rules), "> ", "> ")
        case "bullet_list" | "ordered_list":
            return _list(node, rules)
        case "table":
            return _table(node, rules)
        case "hr":
            return "---"
        case _:
            return _inline(node, rules)


def _list(node: SyntaxTreeNode, rules: _Rules) -> str:
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
    items = []
    for place, item in enumerate(node.children):
        sign = f"{first + place}. " if node.type == "ordered_list" else "- "
        items.append(_prefix(_blocks(item.children, rules), sign, " " * len(sign)) or sign.rstrip())
    return "\n".join(items)


def _prefix(text: str, first: str, rest: str) -> str:
    if not text:
        return ""
    head, *others = text.split("\n")
    return "\n".join([first + head, *((rest + line).rstrip() for line in others)])


def _table(node: SyntaxTreeNode, rules: _Rules) -> str:
    rows = (row for part in node.children for row in part.children)
    return markdown_table(
        [[_inline(cell, rules, in_table=True).replace("\n", " ") for cell in row.children] for row in rows]
    )


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of escaped cells, of which the first is the head, as a Markdown table; short rows are filled up."""
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _inline(node: SyntaxTreeNode, rules: _Rules, *, in_table: bool = False) -> str:
    return "".join(_span(child, rules, in_table) for child in node.children)


def _span(node: SyntaxTreeNode, rules: _Rules, in_table: bool) -> str:
    match node.type:
        case "text":
            return _text(node.content, rules)
        case "softbreak":
            return "\n"
        case "hardbreak":
            return "\\\n"
        case "code_inline":
            return _code(node.content, in_table)
        case "image":
            if _is_mark(node.content, rules):  # of a sentence that ends in "!"
                return "\\!" + _mark(int(node.content), rules)
            return JOINER + escape_line(node.content) + JOINER
        case "link":
            return _link(node, rules, in_table)
    inside = "".join(_span(child, rules, in_table) for child in node.children)
    sign = {"em": "*", "strong": "**", "s": "~~"}.get(node.type, "")
    return f"{sign}{inside}{sign}"


def _code(content: str, in_table: bool) -> str:
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if content.startswith("`") or content.endswith("`") else ""
    return f"{ticks}{pad}{content.replace('|', chr(92) + '|') if in_table else content}{pad}{ticks}"


def _link(node: SyntaxTreeNode, rules: _Rules, in_table: bool) -> str:
    text = "".join(child.content for child in node.walk() if child.type in ("text", "code_inline"))
    if _is_mark(text, rules):
        return _mark(int(text), rules)
    href = str(node.attrs.get("href", ""))
    if _key(href) in rules.urls:
        return web_link(text, href)
    return JOINER + _inline(node, rules, in_table=in_table) + JOINER


def _is_mark(text: str, rules: _Rules) -> bool:
    return text.isdecimal() and text.isascii() and (rules.pending or int(text) in rules.marks)


def _text(content: str, rules: _Rules) -> str:
    """Return a text with its marks and, after a doubtful statement, a link, whose border replaces a colour."""
    out, at = [], 0
    for sign in _SIGN.finditer(content):
        out.append(_link_marks(content[at : sign.start()], rules))
        at = sign.end()
        if (place := ord(sign.group()) - _FIRST_SIGN) < len(rules.doubts):
            doubt = rules.doubts[place]
            kind, title = "partly" if doubt.partly else "unsupported", escape_line(doubt.tooltip).replace('"', "")
            out.append(f' [{escape_line(doubt.word)}](#{rules.anchor}-{kind} "{title}")')
    return "".join([*out, _link_marks(content[at:], rules)])


def _link_marks(content: str, rules: _Rules) -> str:
    parts = _MARK.split(content)
    # split alternates text and mark numbers; spaces before a mark are removed.
    last = len(parts) - 1
    return "".join(
        _mark(int(part), rules) if place % 2 else escape(part if place == last else part.rstrip(" "))
        for place, part in enumerate(parts)
    )


def _mark(number: int, rules: _Rules) -> str:
    if rules.pending:
        return f":gray-badge[{number}]"
    if number in rules.marks and rules.anchor:
        tip = f' "{rules.marks[number]}"' if rules.marks[number] else ""
        return f"[{number}](#{rules.anchor}-{number}{tip})"
    return f"\\[{number}\\]"


def _key(url: str) -> str:
    return urldefrag(url).url.rstrip("/")
