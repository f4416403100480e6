"""The form for a website: its start URL, how to find its pages, and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import streamlit as st

from rag.ingest.discovery import SiteKind
from rag.ingest.paste import find_urls
from rag.ui.kit.escape import escape_line, is_web_url
from rag.ui.kit.session import person_id
from rag.ui.kit.strings import Language, label
from rag.web.site_scope import MAX_DEPTH, MAX_PAGES, SiteScope
from rag.web.url_key import split_url

if TYPE_CHECKING:
    from rag.app import App

_KINDS: tuple[SiteKind, ...] = get_args(SiteKind)
_PAGES_LIMIT = 20_000
_DEPTH_LIMIT = 20


def draw_site_form(app: App, library: str, chunker: str, force: bool, language: Language) -> str | None:
    """Draw the form; return the id of the import that it starts."""
    form_number = int(st.session_state.get("add-round", 0))
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
    start = site_address(address or "")
    prefix, pages, depth = _limits(kind, start, language)
    if start and kind != "feed":
        scope = SiteScope(start, prefix)
        st.caption(label("site_within", language, place=escape_line(f"{split_url(start).netloc}{scope.folder}")))
    if not st.button(label("site_go", language), type="primary", icon=":material/travel_explore:", key="add-site"):
        return None
    if not start:
        st.error(label("site_start_wrong", language), icon=":material/error:")
        return None
    limits = {"prefix": prefix, "max_pages": pages, "max_depth": depth, "force": force}
    return app.imports.add_site(start, kind, library=library, owner=person_id(), chunker=chunker, **limits)


def site_address(text: str) -> str:
    """Return the typed web address, with `https://` added if missing; empty for none."""
    text = text.strip()
    for candidate in (text, f"https://{text}" if "." in text else ""):
        urls, _ = find_urls(candidate)
        if len(urls) == 1 and " " not in text and is_web_url(urls[0]):
            return urls[0]
    return ""


def _limits(kind: SiteKind, start: str, language: Language) -> tuple[str, int, int]:
    columns = st.columns([2, 1, 1] if kind == "crawl" else [2, 1] if kind == "sitemap" else [1, 2])
    prefix, depth = "", MAX_DEPTH
    if kind != "feed":
        hint = SiteScope(start).folder if start and kind == "crawl" else "/"
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
