"""The pages, their order, navigation between them, and the UI language.

The language is that of the switch, else of the URL, else of the switch at an earlier visit, else of the browser.
"""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from rag.locales import LANGUAGES, Language, choose_language, label
from rag.ui.kit.browser import LANGUAGE_COOKIE
from rag.ui.kit.session import session, set_param

PageName = Literal["chat", "search", "add", "library", "evaluation", "settings"]
SHARE_PARAMS = ("add", "add_text")
_MAX_SHARED = 4_000
_FOLDER = Path(__file__).resolve().parents[3] / "pages"
_MANAGE: tuple[PageName, ...] = ("evaluation", "settings")
"""Pages in a separate menu."""
PAGES_OF_PARAMS: dict[str, tuple[PageName, ...]] = {
    "page": ("library",),
    "job": ("add", "library"),
    "find": ("search",),
    "set": ("evaluation",),
}
"""The pages that use a parameter of the URL."""


_PAGES: dict[PageName, tuple[Path, str]] = {
    "chat": (_FOLDER / "chat.py", ":material/forum:"),
    "add": (_FOLDER / "add_pages.py", ":material/add_circle:"),
    "library": (_FOLDER / "library.py", ":material/menu_book:"),
    "search": (_FOLDER / "search.py", ":material/search:"),
    "evaluation": (_FOLDER / "evaluation.py", ":material/query_stats:"),
    "settings": (_FOLDER / "settings.py", ":material/tune:"),
}
"""The file and the icon of each page, in order."""


def draw_navigation(language: Language, *, hidden: bool = False) -> st.Page:
    """Draw the navigation, unless it is `hidden`, and return the selected page."""
    pages = [
        st.Page(
            file,
            title=label(f"nav_{name}", language),
            icon=icon,
            url_path=name,
            default=name == "chat",
            visibility="hidden" if name in _MANAGE else "visible",
        )
        for name, (file, icon) in _PAGES.items()
    ]
    return st.navigation(pages, position="hidden" if hidden else "sidebar")


def draw_manage_menu(language: Language) -> None:
    """Draw the menu of pages that are not in the navigation."""
    selected = st.menu_button(
        label("nav_manage", language),
        _MANAGE,
        format_func=lambda name: f"{_PAGES[name][1]} {label(f'nav_{name}', language)}",
        type="tertiary",
        key="manage",
    )
    if selected:
        go(selected)


def shared_links() -> str:
    """Return the links that a bookmarklet or a share menu put into the URL; they are shown, not added."""
    return " ".join(filter(None, (st.query_params.get(name, "") for name in SHARE_PARAMS)))[:_MAX_SHARED]


def go(name: PageName, **params: str) -> None:
    """Switch to another page; do nothing if the page runs without the navigation."""
    params = {param: st.query_params[param] for param in ("library", "lang") if param in st.query_params} | params
    with contextlib.suppress(StreamlitAPIException):
        st.switch_page(_PAGES[name][0], query_params=params)


def _default_language() -> Language:
    """Return the language of the last switch in this browser, else the browser's preferred one, else English."""
    return choose_language(f"{st.context.cookies.get(LANGUAGE_COOKIE, '')},{st.context.locale or ''}")


def current_language() -> Language:
    """Return the UI language, kept in the URL if it differs from the default."""
    state = session()
    tag = state.language or st.query_params.get("lang", "")
    language = tag if tag in LANGUAGES else _default_language()
    state.language = language
    set_param("lang", "" if language == _default_language() else language)
    return language


def draw_language_switch(key: str) -> None:
    """Draw the language switch; its callback takes effect before anything else is drawn."""
    language = current_language()
    st.session_state[key] = language
    st.segmented_control(
        label("language", language),
        LANGUAGES,
        key=key,
        format_func=partial(label, "language_name"),
        required=True,
        on_change=_choose_language,
        args=(key,),
        label_visibility="collapsed",
    )


def _choose_language(key: str) -> None:
    session().language = st.session_state[key]
