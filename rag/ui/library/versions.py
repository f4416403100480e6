"""The versions of a page's text, and the diff between consecutive ones.

A diff is HTML: the Markdown that extraction leaves (headings, lists, tables) is rendered, removed words are struck
through, added words underlined, and all text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import streamlit as st

from rag.ingest.diff import page_diff
from rag.locales import Language, label, label_count
from rag.types import Page, PageVersion
from rag.ui.kit.parts import escape_html, format_time
from rag.ui.kit.passages import BULLET, CELL, HEADING, ROW, RULE

if TYPE_CHECKING:
    from rag.app import App
    from rag.ingest.diff import DiffPiece

Pieces = Sequence[tuple[str, str]]
"""(kind, text) in order, the kind `same`, `added` or `removed`."""
_MIN_FOLDED = 240
"""Unchanged blocks with fewer characters than this are not collapsed."""
_TAGS = {"same": ("", ""), "added": ("<ins>", "</ins>"), "removed": ("<del>", "</del>")}
_LONGEST = 200_000


def diff_html(pieces: Pieces, language: Language) -> str:
    """Return the diff as HTML; unchanged blocks that are not next to a change are collapsed."""
    blocks = list(_blocks(pieces))
    changed = [
        number for number, block in enumerate(blocks) if any(kind != "same" for line in block for kind, _ in line)
    ]
    near = {number + offset for number in changed for offset in (-1, 0, 1)}
    parts: list[str] = []
    for visible, group in groupby(range(len(blocks)), near.__contains__):
        numbers = list(group)
        html = "".join(_block(blocks[number]) for number in numbers)
        size = sum(len(_text(line)) for number in numbers for line in blocks[number])
        parts.append(html if visible or size < _MIN_FOLDED else _fold(html, size, language))
    return f'<div class="page-html diff">{"".join(parts)}</div>'


def _fold(html: str, size: int, language: Language) -> str:
    text = label("diff_same", language, count=f"{size:,}")
    return f"<details><summary>{escape_html(text)}</summary>{html}</details>"


def _blocks(pieces: Pieces) -> Iterator[list[Pieces]]:
    """Yield the non-empty lines, with the rows of a table grouped."""
    lines = (line for line in _lines(pieces) if _text(line).strip())
    for is_table, group in groupby(lines, lambda line: ROW.fullmatch(_text(line)) is not None):
        if is_table:
            yield list(group)
        else:
            yield from ([line] for line in group)


def _lines(pieces: Pieces) -> Iterator[Pieces]:
    line: list[tuple[str, str]] = []
    for kind, text in pieces:
        for number, part in enumerate(text.split("\n")):
            if number:
                yield line
                line = []
            if part:
                line.append((kind, part))
    yield line


def _text(line: Pieces) -> str:
    return "".join(text for _, text in line)


def _cut(line: Pieces, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the part of a line from `start` to `end`."""
    at = 0
    for kind, text in line:
        part = text[max(0, start - at) : max(0, end - at)]
        if part:
            yield kind, part
        at += len(text)


def _render(pieces: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{_TAGS[kind][0]}{escape_html(text)}{_TAGS[kind][1]}" for kind, text in pieces)


def _block(block: Sequence[Pieces]) -> str:
    line = block[0]
    text = _text(line)
    if ROW.fullmatch(text):
        rows = (row for row in block if not RULE.fullmatch(_text(row)))
        return f"<table>{''.join(map(_row, rows))}</table>"
    for pattern, name in ((HEADING, "head"), (BULLET, "item")):
        if lead := pattern.match(text):
            return f'<p class="{name}">{_render(_cut(line, lead.end(), len(text)))}</p>'
    return f"<p>{_render(line)}</p>"


def _row(row: Pieces) -> str:
    cells = (_trim(row, match) for match in CELL.finditer(_text(row)))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _trim(row: Pieces, match: re.Match[str]) -> str:
    start, end = match.span(1)
    blank = len(match[1]) - len(match[1].lstrip())
    return _render(_cut(row, start + blank, max(start + blank, end - len(match[1]) + len(match[1].rstrip()))))


def draw_versions(app: App, library: str, page: Page, language: Language) -> None:
    """Draw a choice of two consecutive versions, the latest first, and their difference."""
    versions = app.library(library).versions(page.url_hash)
    if len(versions) < 2:
        since = format_time(versions[0].since if versions else page.added_at)
        st.info(label("versions_one", language, since=since), icon=":material/history:")
        return
    changes = list(range(len(versions) - 1, 0, -1))
    place = st.selectbox(
        label("versions_change", language),
        changes,
        format_func=lambda n: _change_name(versions[n - 1], versions[n], language),
        key=f"change-{page.url_hash}",
    )
    place = place if place in changes else changes[0]
    _draw_difference(versions[place - 1], versions[place], language)


def _change_name(old: PageVersion, new: PageVersion, language: Language) -> str:
    return label("versions_step", language, old=old.number, new=new.number, when=format_time(new.since or old.until))


def _draw_difference(old: PageVersion, new: PageVersion, language: Language) -> None:
    if old.title != new.title:
        st.caption(label("versions_title", language))
        st.html(diff_html([("removed", old.title), ("added", " "), ("added", new.title)], language))
    pieces = page_diff(old.text, new.text)
    if not any(piece.kind != "same" for piece in pieces):
        st.info(label("versions_same_text", language), icon=":material/equal:")
        return
    st.caption(_amount(pieces, language))
    excerpt = [(piece.kind, piece.text) for piece in _first_pieces(pieces, _LONGEST)]
    with st.container(border=True, key="version-diff"):
        st.html(diff_html(excerpt, language))
    if len(excerpt) < len(pieces):
        st.caption(label("versions_cut", language))


def _amount(pieces: Sequence[DiffPiece], language: Language) -> str:
    added = sum(len(piece.text) for piece in pieces if piece.kind == "added")
    removed = sum(len(piece.text) for piece in pieces if piece.kind == "removed")
    places = sum(piece.kind != "same" and (n == 0 or pieces[n - 1].kind == "same") for n, piece in enumerate(pieces))
    text = label_count("versions_places_one", "versions_places", places, language)
    return f"{text} · {label('versions_amount', language, added=f'{added:,}', removed=f'{removed:,}')}"


def _first_pieces(pieces: Sequence[DiffPiece], limit: int) -> list[DiffPiece]:
    """Return the first pieces, up to the one that reaches `limit` characters."""
    first: list[DiffPiece] = []
    for piece in pieces:
        if limit <= 0:
            break
        first.append(piece)
        limit -= len(piece.text)
    return first
