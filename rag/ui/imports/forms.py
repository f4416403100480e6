"""Forms that add pages of a website, and pages found by the operator's web search service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from rag.errors import RagError
from rag.ingest.discovery import MAX_DEPTH, MAX_PAGES, SiteKind, SitePlan
from rag.locales import Language, label, label_count
from rag.ui.kit.actions import draw_failure
from rag.ui.kit.markdown import escape_line, is_web_url, web_link
from rag.ui.kit.parts import draw_button
from rag.ui.kit.session import person_id, reset_count
from rag.web.search import WebHit
from rag.web.url_finder import find_urls
from rag.web.urls import split_url

if TYPE_CHECKING:
    from rag.app import App

_KINDS: tuple[SiteKind, ...] = get_args(SiteKind)
_PAGES_LIMIT = 20_000
_DEPTH_LIMIT = 20
_WEB_HITS = "web-found"


def draw_site_form(app: App, library: str, chunker: str, force: bool, language: Language) -> str | None:
    """Draw the form; return the id of the import if it is submitted, else None."""
    form_number = reset_count("add")
    address = st.text_input(
        label("site_start", language), key=f"site-start-{form_number}", placeholder="https://docs.example.org/guide/"
    )
    kind: SiteKind = st.segmented_control(
        label("site_kind", language),
        _KINDS,
        default="sitemap",
        required=True,
        format_func=lambda name: label(f"site_kind_{name}", language),
        key="site-kind",
    )
    st.caption(label(f"site_hint_{kind}", language))
    start = _site_address(address or "")
    prefix, pages, depth = _draw_limits(kind, start, language)
    if start and kind != "feed":
        folder = SitePlan(start, kind, prefix).folder
        st.caption(label("site_within", language, place=escape_line(f"{split_url(start).netloc}{folder}")))
    if not draw_button(label("site_go", language), "travel_explore", "add-site", type="primary"):
        return None
    if not start:
        st.error(label("site_start_wrong", language), icon=":material/error:")
        return None
    limits: dict[str, Any] = {"prefix": prefix, "max_pages": pages, "max_depth": depth, "force": force}
    return app.imports.jobs.submit_site(start, kind, library=library, owner=person_id(), chunker=chunker, **limits)


def _site_address(text: str) -> str:
    """Return the URL in `text`, with `https://` added if missing; empty if it is not a single URL."""
    text = text.strip()
    for candidate in (text, f"https://{text}" if "." in text else ""):
        urls, _ = find_urls(candidate)
        if len(urls) == 1 and " " not in text and is_web_url(urls[0]):
            return urls[0]
    return ""


def _draw_limits(kind: SiteKind, start: str, language: Language) -> tuple[str, int, int]:
    columns = st.columns([2, 1, 1] if kind == "crawl" else [2, 1] if kind == "sitemap" else [1, 2])
    prefix, depth = "", MAX_DEPTH
    if kind != "feed":
        hint = SitePlan(start, kind).folder if start and kind == "crawl" else "/"
        with columns.pop(0):
            prefix = (
                st.text_input(
                    label("site_prefix", language),
                    key="site-prefix",
                    placeholder=hint,
                    help=label("site_prefix_hint", language),
                )
                or ""
            )
    with columns.pop(0):
        pages = st.number_input(label("site_pages", language), 1, _PAGES_LIMIT, MAX_PAGES, key="site-pages")
    if kind == "crawl":
        with columns.pop(0):
            text = label("site_depth", language)
            depth = st.number_input(
                text, 0, _DEPTH_LIMIT, MAX_DEPTH, key="site-depth", help=label("site_depth_hint", language)
            )
    return prefix.strip(), int(pages), int(depth)


def draw_web_finds(app: App, library: str, chunker: str, force: bool, language: Language) -> str | None:
    """Draw the search and its results; return the id of the import of the selected pages."""
    search = app.imports.web_search
    assert search is not None
    with st.form("web-form", border=False):
        query = st.text_input(label("web_ask", language, name=search.name), key="web-asked", max_chars=400)
        submitted = st.form_submit_button(label("web_go", language), icon=":material/search:", key="web-go")
    if submitted and (query or "").strip():
        st.session_state.pop(_WEB_HITS, None)
        try:
            with st.spinner(label("web_searching", language)):
                st.session_state[_WEB_HITS] = search.find(query)
        except RagError as error:
            draw_failure(error.notice, language)
    hits: list[WebHit] | None = st.session_state.get(_WEB_HITS)
    if hits is None:
        return None
    if not hits:
        st.caption(label("web_none", language))
        return None
    urls = []
    for hit in hits:
        link = web_link(split_url(hit.url).hostname or hit.url, hit.url)
        if st.checkbox(f"**{escape_line(hit.title or hit.url)}**", key=f"web-hit-{hit.url}"):
            urls.append(hit.url)
        st.caption(" · ".join([link, escape_line(hit.snippet[:300])] if hit.snippet else [link]))
    words = label_count("web_add_one", "web_add", len(urls), language) if urls else label("add_go", language)
    if not draw_button(words, "add", "web-add", type="primary", disabled=not urls):
        return None
    del st.session_state[_WEB_HITS]
    return app.imports.add_urls(urls, library=library, owner=person_id(), force=force, chunker=chunker)
