"""The list of a library's pages: one table, however long, whose rows open a page or are ticked for all at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import streamlit as st

from rag.types import Page
from rag.ui.parts import language_name, moment, short_source
from rag.ui.shelf import state_of
from rag.ui.strings import Language, label

_ROW, _HEIGHT = 35, 530


class Picked(NamedTuple):
    """The page whose cell was clicked, and those that are ticked."""

    opened: Page | None
    ticked: list[Page]


def draw_table(pages: Sequence[Page], left_out: Collection[str], identity: str, language: Language) -> Picked:
    """`identity` tells one list from another: rows are picked by their place, so another list is another table."""
    rows = rows_of(pages, left_out, language)
    state = st.dataframe(
        rows,
        hide_index=True,
        column_order=[name for name in rows[0] if any(row[name] != "" for row in rows)],
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        key=f"table-{language}-{_round()}-{identity}",
        column_config=_columns(language),
        height=min(_ROW * (len(pages) + 1) + 3, _HEIGHT),
        row_height=_ROW,
        placeholder="",
    )
    chosen = state["selection"]
    cells = [row for row, _ in chosen["cells"] if row < len(pages)]
    ticked = [pages[row] for row in chosen["rows"] if row < len(pages)]
    return Picked(pages[cells[0]] if cells else None, ticked)


def forget_picks() -> None:
    """Nothing is picked when the table is drawn next."""
    st.session_state["table-round"] = _round() + 1


def _round() -> int:
    return int(st.session_state.get("table-round", 0))


def rows_of(pages: Sequence[Page], left_out: Collection[str], language: Language) -> list[dict[str, object]]:
    now = datetime.now(UTC)
    return [
        {
            "title": page.title or short_source(page.url),
            "state": label(f"row_{state_of(page, left_out, now)}", language),
            "site": page.site,
            "language": language_name(page.language, language),
            "chunks": page.chunks,
            "added": _day(page.added_at),
            "changed": _day(page.updated_at) if page.version > 1 else "",
            "checked": _day(page.checked_at),
        }
        for page in pages
    ]


def _day(iso: str) -> str:
    return moment(iso)[:10]


def _columns(language: Language) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    widths = {"title": 255, "state": 90, "site": 150, "language": 75, "added": 88, "changed": 88, "checked": 88}
    return {
        "chunks": number(label("column_chunks", language), width=75),
        **{name: text(label(f"column_{name}", language), width=width) for name, width in widths.items()},
    }
