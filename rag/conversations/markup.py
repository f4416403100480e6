"""The Markdown of an answer in other forms: HTML, Word, and Markdown that loads and runs nothing.

Headings, lists, tables, emphasis and code stay; raw HTML, images and links become their text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from markdown_it.utils import EnvType, OptionsDict

from rag.checking.marks import code_spans
from rag.patterns import lazy_regex

HEADING_OFFSET: Final = 2
"""Levels of headings above those of an answer: the conversation's title, and the question."""
_ACTIVE_MARKUP: Final = lazy_regex(r"<|!(?=\[)|\](?=[(:\[])|[$]|&(?=#?\w+;)")
_HEADING: Final = lazy_regex(r"(?m)^( {0,3})(#{1,6})(?=[ \t])")
_FENCE: Final = lazy_regex(r"(?m)^ {0,3}(`{3,}|~{3,})")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["image", "link", "autolink", "reference", "html_block", "html_inline"])


def tame_markdown(text: str) -> str:
    """Escape everything in a text that a Markdown reader would load, run or link."""
    parts, at = [], 0
    for start, end in code_spans(text):
        parts += [_tame(text[at:start]), text[start:end]]
        at = end
    whole = "".join([*parts, _tame(text[at:])])
    fences = _FENCE.findall(whole)
    return f"{whole}\n{fences[-1]}" if len(fences) % 2 else whole


def _tame(text: str) -> str:
    text_below = _HEADING.sub(lambda match: match[1] + "#" * min(6, len(match[2]) + HEADING_OFFSET), text)
    return _ACTIVE_MARKUP.sub(r"\\\g<0>", text_below)


def as_html(text: str, write: Callable[[str], str]) -> str:
    """Return HTML; `write` turns the text between the tags into HTML and escapes it."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + HEADING_OFFSET)}"
    return _Html(write).render(tokens, parser.options, {})


class _Html(RendererHTML):
    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self._write = write

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._write(tokens[idx].content)

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "<br>\n"


def add_to_word(document: Any, text: str) -> None:
    """Add the text to a python-docx document, with its headings from the second level on."""
    for node in SyntaxTreeNode(_parser().parse(text)).children:
        _add_block(document, node)


def _add_block(document: Any, node: SyntaxTreeNode, style: str | None = None, depth: int = 0) -> None:
    match node.type:
        case "heading":
            _add_runs(document.add_heading("", max(2, int(node.tag[1]))), node)
        case "fence" | "code_block":
            document.add_paragraph().add_run(node.content.rstrip()).font.name = "Courier New"
        case "bullet_list" | "ordered_list":
            name = "List Bullet" if node.type == "bullet_list" else "List Number"
            for item in node.children:
                for block in item.children:
                    _add_block(document, block, f"{name} {min(3, depth + 1)}" if depth else name, depth + 1)
        case "table":
            _add_table(document, [row for part in node.children for row in part.children])
        case "blockquote":
            for block in node.children:
                _add_block(document, block, "Quote", depth)
        case "paragraph":
            _add_runs(document.add_paragraph(style=style), node)


def _add_table(document: Any, rows: Sequence[SyntaxTreeNode]) -> None:
    table = document.add_table(len(rows), max(len(row.children) for row in rows), "Table Grid")
    for cells, row in zip(table.rows, rows, strict=True):
        for cell, node in zip(cells.cells, row.children, strict=False):
            _add_runs(cell.paragraphs[0], node)


def _add_runs(paragraph: Any, node: SyntaxTreeNode) -> None:
    for words, marks in _runs(node, frozenset()):
        run = paragraph.add_run(words)
        run.bold, run.italic = "strong" in marks or None, "em" in marks or None
        run.font.strike = "s" in marks or None
        if "code_inline" in marks:
            run.font.name = "Courier New"


def _runs(node: SyntaxTreeNode, marks: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the text of a node in pieces, each with its marks."""
    if node.type in ("softbreak", "hardbreak"):
        yield "\n", marks
    elif node.type in ("text", "code_inline"):
        yield node.content, marks | {node.type}
    for child in node.children:
        yield from _runs(child, marks | {node.type})
