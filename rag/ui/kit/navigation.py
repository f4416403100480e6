"""The pages, their order, and links between them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st
from streamlit.errors import StreamlitAPIException

from rag.ui.kit.strings import Language, label

PageName = Literal["chat", "search", "add", "library", "evaluation", "settings"]

SHARE_PARAMS = ("add", "add_text")
_MAX_SHARED = 4_000
_FOLDER = Path(__file__).resolve().parents[3] / "pages"


class _Entry(NamedTuple):
    file: Path
    icon: str


PAGES: dict[PageName, _Entry] = {
    "chat": _Entry(_FOLDER / "chat.py", ":material/forum:"),
    "add": _Entry(_FOLDER / "add_pages.py", ":material/add_circle:"),
    "library": _Entry(_FOLDER / "library.py", ":material/menu_book:"),
    "search": _Entry(_FOLDER / "search.py", ":material/search:"),
    "evaluation": _Entry(_FOLDER / "evaluation.py", ":material/query_stats:"),
    "settings": _Entry(_FOLDER / "settings.py", ":material/tune:"),
}
_MANAGE: tuple[PageName, ...] = ("evaluation", "settings")
"""Pages in a separate menu."""


def navigation(language: Language, *, hidden: bool = False) -> st.Page:
    """Draw the navigation, unless it is `hidden`, and return the selected page."""
    pages = [
        st.Page(
            entry.file,
            title=label(f"nav_{name}", language),
            icon=entry.icon,
            url_path=name,
            default=name == "chat",
            visibility="hidden" if name in _MANAGE else "visible",
        )
        for name, entry in PAGES.items()
    ]
    return st.navigation(pages, position="hidden" if hidden else "sidebar")


def draw_manage(language: Language) -> None:
    """Draw the menu of pages that are not in the navigation."""
    selected = st.menu_button(
        label("nav_manage", language),
        _MANAGE,
        format_func=lambda name: f"{PAGES[name].icon} {label(f'nav_{name}', language)}",
        type="tertiary",
        key="manage",
    )
    if selected:
        go(selected)


def shared_links() -> str:
    """Return the links that a bookmarklet or a share menu put into the address; they are shown, not added."""
    return " ".join(filter(None, (st.query_params.get(name, "") for name in SHARE_PARAMS)))[:_MAX_SHARED]


def go(name: PageName, **params: str) -> None:
    """Switch to another page. Does nothing where a page runs alone."""
    params = {param: st.query_params[param] for param in ("library", "lang") if param in st.query_params} | params
    with contextlib.suppress(StreamlitAPIException):
        st.switch_page(PAGES[name].file, query_params=params)
