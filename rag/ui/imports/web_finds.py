"""Pages found by the operator's web search service, for a person to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.locales import say
from rag.ui.kit.escape import escape_line, web_link
from rag.ui.kit.session import person_id
from rag.ui.kit.strings import Language, counted, label
from rag.web.search import WebHit
from rag.web.url_key import split_url

if TYPE_CHECKING:
    from rag.app import App

_HITS = "web-found"


def draw_web_finds(app: App, library: str, chunker: str, force: bool, language: Language) -> str | None:
    """Draw the search and its results; return the id of the import of the selected pages."""
    search = app.imports.web_search
    assert search is not None
    with st.form("web-form", border=False):
        query = st.text_input(label("web_ask", language, name=search.name), key="web-asked", max_chars=400)
        submitted = st.form_submit_button(label("web_go", language), icon=":material/search:", key="web-go")
    if submitted and (query or "").strip():
        _search(app, query, language)
    hits: list[WebHit] | None = st.session_state.get(_HITS)
    if hits is None:
        return None
    if not hits:
        st.caption(label("web_none", language))
        return None
    urls = [hit.url for hit in hits if _draw_hit(hit)]
    words = counted("web_add_one", "web_add", len(urls), language) if urls else label("add_go", language)
    if not st.button(words, type="primary", icon=":material/add:", key="web-add", disabled=not urls):
        return None
    del st.session_state[_HITS]
    return app.imports.add_urls(urls, library=library, owner=person_id(), force=force, chunker=chunker)


def _search(app: App, query: str, language: Language) -> None:
    st.session_state.pop(_HITS, None)
    assert app.imports.web_search is not None
    try:
        with st.spinner(label("web_searching", language)):
            st.session_state[_HITS] = app.imports.web_search.find(query)
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")


def _draw_hit(hit: WebHit) -> bool:
    link = web_link(split_url(hit.url).hostname or hit.url, hit.url)
    selected = st.checkbox(f"**{escape_line(hit.title or hit.url)}**", key=f"web-hit-{hit.url}")
    st.caption(" · ".join([link, escape_line(hit.snippet[:300])] if hit.snippet else [link]))
    return selected
