"""Actions on several pages: re-check, exclude, include, delete.

Also the list of a library's pages: one table whose rows open a page or are selected together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from rag.locales import Language, label, label_count
from rag.types import Notice, Page
from rag.ui.kit.actions import attempt, confirm_removal
from rag.ui.kit.parts import data_table, language_name, moment, short_source
from rag.ui.kit.session import person_id, set_param
from rag.ui.library.page_filter import state_of

if TYPE_CHECKING:
    from rag.app import App

_ROW, _HEIGHT = 35, 530


class _Selection(NamedTuple):
    """The page whose cell was clicked, and the selected pages."""

    opened: Page | None
    ticked: list[Page]


def draw_table(pages: Sequence[Page], excluded: Collection[str], identity: str, language: Language) -> _Selection:
    """Draw the table; each list has another `identity` and so another table, since rows are selected by position."""
    rows = _rows_of(pages, excluded, language)
    state = data_table(
        rows,
        hide_index=True,
        column_order=_varying_columns(rows),
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        key=f"table-{language}-{_round()}-{identity}",
        column_config=_columns(language),
        height=min(_ROW * (len(pages) + 1) + 3, _HEIGHT),
        row_height=_ROW,
        placeholder="",
    )
    selection = state["selection"]
    cells = [row for row, _ in selection["cells"] if row < len(pages)]
    selected = [pages[row] for row in selection["rows"] if row < len(pages)]
    return _Selection(pages[cells[0]] if cells else None, selected)


def clear_selection() -> None:
    """Clear the selection before the table is drawn next."""
    st.session_state["table-round"] = _round() + 1


def _round() -> int:
    return int(st.session_state.get("table-round", 0))


def _rows_of(pages: Sequence[Page], excluded: Collection[str], language: Language) -> list[dict[str, object]]:
    now = datetime.now(UTC)
    return [
        {
            "title": page.title or short_source(page.url),
            "state": label(f"row_{state_of(page, excluded, now)}", language),
            "site": page.site,
            "language": language_name(page.language, language),
            "chunks": page.chunks,
            "added": _day(page.added_at),
            "changed": _day(page.updated_at) if page.version > 1 else "",
            "checked": _day(page.checked_at),
        }
        for page in pages
    ]


def _varying_columns(rows: Sequence[dict[str, object]]) -> list[str]:
    """Return the columns to show: the title, and those whose values differ between pages."""
    values = {name: {row[name] for row in rows} for name in rows[0]}
    return [
        name for name, data in values.items() if name == "title" or len(data) > 1 or (len(rows) == 1 and "" not in data)
    ]


def _day(iso: str) -> str:
    return moment(iso)[:10]


def _columns(language: Language) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    widths = {"title": 320, "state": 80, "site": 120, "language": 70, "added": 88, "changed": 88, "checked": 88}
    return {
        "chunks": number(label("column_chunks", language), width=75),
        **{name: text(label(f"column_{name}", language), width=width) for name, width in widths.items()},
    }


def draw_bulk(app: App, library: str, selected: Sequence[Page], excluded: Collection[str], language: Language) -> None:
    """Draw buttons for the selected pages."""
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="bulk", gap="small"):
        st.markdown(f"**{label_count('bulk_one', 'bulk', len(selected), language)}**", width="content")
        draw_page_actions(app, library, selected, excluded, language, key="bulk")


def draw_page_actions(
    app: App, library: str, pages: Sequence[Page], excluded: Collection[str], language: Language, *, key: str
) -> None:
    """Draw the buttons for these pages into the open row: re-check, exclude or include, delete."""
    hashes = [page.url_hash for page in pages]
    web = [page.url_hash for page in pages if page.source == "web"]
    text = label("page_recheck", language)
    hint = None if web else label("page_recheck_no", language)
    if st.button(text, icon=":material/sync:", key=f"{key}-recheck", disabled=not web, help=hint):
        recheck(app, library, web, title=pages[0].title if len(pages) == 1 else "")
    if any(url_hash not in excluded for url_hash in hashes):
        text, hint = label("page_leave_out", language), label("page_leave_out_hint", language)
        if st.button(text, icon=":material/visibility_off:", key=f"{key}-leave-out", help=hint):
            _exclude(app, library, hashes, True)
    if any(url_hash in excluded for url_hash in hashes):
        text = label("page_let_in", language)
        if st.button(text, icon=":material/visibility:", key=f"{key}-let-in"):
            _exclude(app, library, hashes, False)
    if st.button(label("library_remove_go", language), icon=":material/delete:", key=f"{key}-remove"):
        confirm_removal(app, library, pages, language, key, _close_page)


def recheck(app: App, library: str, hashes: Sequence[str] | None, *, site: str = "", title: str = "") -> None:
    """Start a re-check of these pages, or of all, and show its progress."""

    def begin() -> None:
        set_param("job", app.imports.jobs.recheck(library, hashes, site or None, owner=person_id(), title=title))

    attempt(begin)
    st.rerun()


def _exclude(app: App, library: str, hashes: Sequence[str], out: bool) -> None:
    done = Notice("pages_left_out" if out else "pages_let_in")
    attempt(lambda: app.leave_out(library, hashes, out), done)
    st.rerun()


def _close_page() -> None:
    clear_selection()
    set_param("page", "")
