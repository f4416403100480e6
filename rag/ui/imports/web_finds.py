"""Pages found on the web by the operator's search service, for a person to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.locales import say
from rag.ui.kit.escape import escape_line, web_link
from rag.ui.kit.session import whose
from rag.ui.kit.strings import Language, counted, label
from rag.web.search import WebHit
from rag.web.url_key import split_url

if TYPE_CHECKING:
    from rag.app import App

_FOUND = "web-found"


def draw_web_finds(app: App, library: str, chunker: str, force: bool, language: Language) -> str | None:
    """The search and what it found; returns the id of the import of the pages that were chosen."""
    search = app.imports.web_search
    assert search is not None
    with st.form("web-form", border=False):
        asked = st.text_input(label("web_ask", language, name=search.name), key="web-asked", max_chars=400)
        go = st.form_submit_button(label("web_go", language), icon=":material/search:", key="web-go")
    if go and (asked or "").strip():
        _search(app, asked, language)
    found: list[WebHit] | None = st.session_state.get(_FOUND)
    if found is None:
        return None
    if not found:
        st.caption(label("web_none", language))
        return None
    chosen = [hit.url for hit in found if _is_chosen(hit)]
    words = counted("web_add_one", "web_add", len(chosen), language) if chosen else label("add_go", language)
    if not st.button(words, type="primary", icon=":material/add:", key="web-add", disabled=not chosen):
        return None
    del st.session_state[_FOUND]
    return app.imports.add_urls(chosen, library=library, owner=whose(), force=force, chunker=chunker)


def _search(app: App, asked: str, language: Language) -> None:
    st.session_state.pop(_FOUND, None)
    assert app.imports.web_search is not None
    try:
        with st.spinner(label("web_searching", language)):
            st.session_state[_FOUND] = app.imports.web_search.find(asked)
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")


def _is_chosen(hit: WebHit) -> bool:
    link = web_link(split_url(hit.url).hostname or hit.url, hit.url)
    chosen = st.checkbox(f"**{escape_line(hit.title or hit.url)}**", key=f"web-hit-{hit.url}")
    st.caption(" · ".join([link, escape_line(hit.snippet[:300])] if hit.snippet else [link]))
    return chosen
