"""The panel with a source next to its answer: the page's text with the place marked, its version, and other sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label
from rag.store.values import SCREEN_SECONDS, patience
from rag.types import Citation, Page, PageVersion
from rag.ui.kit.actions import unless_away
from rag.ui.kit.browser import tell_browser
from rag.ui.kit.markdown import escape_line, is_web_url, web_link
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import moment
from rag.ui.kit.passages import passage_markdown
from rag.ui.kit.session import session
from rag.ui.kit.sources import STATES, Source, live_address, location

if TYPE_CHECKING:
    from rag.app import App

_SOURCE_KEY = "wanted-source"
_AROUND = 8_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A page's text as it was when cited, or what is left of it; `text[slice(*span)]` is the place."""

    text: str
    span: tuple[int, int]
    version: PageVersion | None = None


def draw_panel(app: App, language: Language) -> None:
    """Draw the panel, which opens and closes without a redraw of the page; page.js writes the source into its box."""
    st.fragment(_draw_panel)(app, language)


def _draw_panel(app: App, language: Language) -> None:
    st.text_input(label("sources", language), key=_SOURCE_KEY, label_visibility="collapsed")
    source_id = str(st.session_state[_SOURCE_KEY] or "")
    anchor, _, number = source_id.rpartition("-")
    sources = session().sources.get(anchor, ())
    place = next((place for place, source in enumerate(sources) if str(source.n) == number), None)
    if place is not None:
        with st.container(key="source-panel", gap=None):
            _draw_moves(anchor, sources, place, language)
            _draw_source(app, sources[place], source_id, language)
    tell_browser("source", source=source_id if place is not None else "", name=label("sources", language))


def _draw_moves(anchor: str, sources: tuple[Source, ...], place: int, language: Language) -> None:
    """Draw the position among the sources, Previous and Next, and Close."""
    with st.container(horizontal=True, vertical_alignment="center", key="source-moves", gap="small"):
        if len(sources) > 1:
            st.caption(label("source_place", language, place=place + 1, count=len(sources)), width="content")
            for name, icon, step in (("before", "chevron_left", -1), ("after", "chevron_right", 1)):
                exists = 0 <= place + step < len(sources)
                st.button(
                    label(f"source_{name}", language),
                    icon=f":material/{icon}:",
                    type="tertiary",
                    key=f"source-{name}",
                    disabled=not exists,
                    on_click=_open_source,
                    args=(f"{anchor}-{sources[place + step].n}" if exists else "",),
                )
        st.button(
            label("source_close", language),
            icon=":material/close:",
            type="tertiary",
            key="source-close",
            on_click=_open_source,
            args=("",),
        )


def _open_source(source_id: str) -> None:
    st.session_state[_SOURCE_KEY] = source_id


def _draw_source(app: App, source: Source, source_id: str, language: Language) -> None:
    place = source.place
    with patience(SCREEN_SECONDS):
        page = unless_away(lambda: app.page(source.home, place.url_hash))
        versions = unless_away(lambda: app.library(source.home).versions(place.url_hash)) if page else ()
    excerpt = read_source(source, versions or ())
    mark = f":green-badge[{source.n}] " if isinstance(place, Citation) else ""
    st.markdown(f"## {mark}{web_link(place.title or place.url, place.url)}", anchors=False)
    within = app.libraries.title(place.library) if place.library else ""
    section = place.section or (source.passage.section if source.passage else ())
    lines = [location(place.url, section, within), version_line(source, page, excerpt, language)]
    if isinstance(place, Citation) and is_web_url(place.url):
        live = web_link(label("source_live", language), live_address(place, page, source.passage))
        lines.append(f":material/my_location: {live}")
    st.caption("  \n".join(lines))
    # An id of letters, digits and hyphens only, by which page.js sees that this source is drawn.
    with st.container(key="source-text"):
        st.html(f'<span class="place" id="open-{source_id}"></span>')
        st.markdown(passage_markdown(*_crop(excerpt)))
    if page and st.button(
        label("source_library", language), icon=":material/menu_book:", type="tertiary", key="source-library"
    ):
        go("library", page=page.url_hash)


def read_source(source: Source, versions: tuple[PageVersion, ...] | list[PageVersion]) -> Reading:
    """Return the newest of the page's texts with the quote in its place; else the passage; else the quote alone."""
    place, quote = source.place, source.quote
    for version in reversed(versions):
        if version.text[place.start : place.end] == quote:
            return Reading(version.text, (place.start, place.end), version)
    if source.passage is not None:
        start = place.start - source.passage.start
        return Reading(source.passage.text, (start, start + len(quote)))
    return Reading(quote, (0, len(quote)))


def _crop(excerpt: Reading) -> tuple[str, tuple[int, int]]:
    """Return whole lines of the text around the place, and the place in them."""
    text, (start, end) = excerpt.text, excerpt.span
    left = text.rfind("\n", 0, max(0, start - _AROUND)) + 1 if start > _AROUND else 0
    right = text.find("\n", end + _AROUND)
    right = len(text) if right < 0 else right
    head, tail = "…\n" if left else "", "\n…" if right < len(text) else ""
    shift = len(head) - left
    return head + text[left:right] + tail, (start + shift, end + shift)


def version_line(source: Source, page: Page | None, excerpt: Reading, language: Language) -> str:
    """Return the version of the text, and what has happened to the page since."""
    parts = []
    if excerpt.version is not None:
        key = "source_version_past" if excerpt.version.until else "source_version"
        times = {"when": moment(excerpt.version.since), "until": moment(excerpt.version.until)}
        parts.append(label(key, language, number=excerpt.version.number, **times))
    elif page is None and source.passage is not None and source.passage.fetched_at:
        parts.append(f":material/public: {label('source_beyond', language)}")
    else:
        parts.append(label("source_gone" if page is None else "source_changed", language))
    state = "newer" if excerpt.version is not None and excerpt.version.until else source.state
    if state and page is not None:
        icon, key = STATES[state]
        parts.append(f":orange[:material/{icon}: {escape_line(label(key, language))}]")
    return " · ".join(parts)
