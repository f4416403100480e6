"""The cards under an answer: where each citation stands, highlighted in its surroundings; and those of passages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.types import Answer, Citation, Page, Passage
from rag.ui.answers import PageNow, home_of
from rag.ui.escape import escape_line, is_web_url, web_link
from rag.ui.highlight import best_window, term_spans
from rag.ui.parts import site_of
from rag.ui.passages import passage_markdown
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_AROUND_QUOTE = 140
_AROUND_PASSAGE = 900
_SHOWN = 320
_STATES: dict[PageNow | Literal["beyond"], tuple[str, str]] = {
    "gone": ("link_off", "source_missing"),
    "newer": ("history", "source_newer"),
    "off_site": ("cloud_off", "source_off_site"),
    "beyond": ("public", "source_beyond"),
}


def anchor_of(run_id: str) -> str:
    """The start of the ids that the marks of one answer lead to."""
    return f"source-{''.join(sign for sign in run_id if sign.isalnum())[-12:]}"


def draw_sources(
    app: App,
    library: str,
    answer: Answer,
    run_id: str,
    language: Language,
    *,
    states: Mapping[str, PageNow] | None = None,
) -> None:
    """A card for each citation; `states` say, by url_hash, which pages are not what the answer was written from."""
    if answer.citations:
        homes = {(home_of(app, library, one), one.url_hash) for one in answer.citations}
        pages = {home: app.library(home[0]).page(home[1]) for home in homes}
        st.markdown(f"## {label('sources', language)}", anchors=False)
        for citation in answer.citations:
            _draw_citation(
                app, library, answer, citation, pages, run_id, language, (states or {}).get(citation.url_hash)
            )


def _draw_citation(
    app: App,
    library: str,
    answer: Answer,
    citation: Citation,
    pages: Mapping[tuple[str, str], Page | None],
    run_id: str,
    language: Language,
    state: PageNow | None,
) -> None:
    key = f"{run_id}-{citation.n}"
    home = home_of(app, library, citation)
    page = pages.get((home, citation.url_hash))
    passage = _passage_of(answer, citation)
    section = passage.section if passage and not citation.section else citation.section
    with st.container(border=True, key=f"source-{key}"):
        # Static markup with an id made of letters and digits only: what the mark in the answer leads to.
        st.html(f'<span class="place" id="{anchor_of(run_id)}-{citation.n}"></span>')
        beyond = page is None and passage is not None and bool(passage.fetched_at)
        told = _mark("beyond", language) if beyond else _state(page, citation, language, state)
        within = app.libraries.title(citation.library) if citation.library else ""
        _draw_head(f":green-badge[{citation.n}] ", citation.title, citation.url, section, told, within)
        with st.container(key=f"quote-{key}"):
            st.markdown(_quote_in_context(citation, passage, page))
        if is_web_url(citation.url):
            live = web_link(label("source_live", language), live_address(citation, page, passage))
            st.markdown(f":small[:material/my_location: {live}]")
        draw_reader(app, home, citation, passage, key, language)


def live_address(citation: Citation, page: Page | None, passage: Passage | None) -> str:
    """The address that opens the live page at the sentence, told apart from others by what is known of the page."""
    if page is not None and page.text[citation.start : citation.end] == citation.quote:
        return text_fragment(citation.url, page.text, citation.start, citation.end)
    if passage is not None:
        start = citation.start - passage.start
        return text_fragment(citation.url, passage.text, start, start + len(citation.quote))
    return text_fragment(citation.url, citation.quote, 0, len(citation.quote))


def _state(page: Page | None, citation: Citation, language: Language, state: PageNow | None = None) -> str:
    """A mark where the page is no longer what the answer was written from."""
    if page is None:
        state = "gone"
    elif state is None and page.text[citation.start : citation.end] != citation.quote:
        state = "newer"
    return _mark(state, language) if state else ""


def _mark(state: PageNow | Literal["beyond"], language: Language) -> str:
    icon, key = _STATES[state]
    return f" :orange-badge[:material/{icon}: {escape_line(label(key, language))}]"


def draw_passage(
    app: App, library: str, passage: Passage, question: str, language: Language, *, key: str, place: int = 0
) -> None:
    """A card for a passage, the words of `question` highlighted; `place` is its number, if it has one."""
    with st.container(border=True, key=f"source-{key}"):
        within = app.libraries.title(passage.library) if passage.library else ""
        _draw_head(f":green-badge[{place}] " if place else "", passage.title, passage.url, passage.section, "", within)
        with st.container(key=f"quote-{key}"):
            st.markdown(_beginning(passage.text, question))
        draw_reader(app, home_of(app, library, passage), passage, passage, key, language)


def _beginning(text: str, question: str) -> str:
    """The part of a passage that holds the most of the question's words, which are highlighted."""
    left, right = best_window(text, term_spans(question, text), _SHOWN)
    shown = text[left:right].strip()
    shown = f"{'…' if left else ''}{shown}{'…' if right < len(text) else ''}"
    return passage_markdown(shown, *term_spans(question, shown))


def _draw_head(badge: str, title: str, url: str, section: tuple[str, ...], state: str = "", library: str = "") -> None:
    """`library` is its title, where several were searched."""
    st.markdown(f"{badge}**{web_link(title or url, url)}**{state}")
    path = " › ".join(escape_line(part) for part in section)
    within = f":material/menu_book: {escape_line(library)}" if library else ""
    st.caption(" · ".join(filter(None, (within, escape_line(site_of(url)), path))))


def _quote_in_context(citation: Citation, passage: Passage | None, page: Page | None = None) -> str:
    """The quote, highlighted, with a little of its passage or page on both sides, in its own paragraph."""
    text, start = _surroundings(citation, passage, page)
    end = start + len(citation.quote)
    left, right = _window(text, start, end, _AROUND_QUOTE)
    before = text[left:start].rpartition("\n")[2] if "\n" in text[left:start] else None
    head = ("…" if left else "") + text[left:start] if before is None else before
    after, cut, _ = text[end:right].partition("\n")
    tail = after + ("…" if right < len(text) and not cut else "")
    return passage_markdown(head + citation.quote + tail, (len(head), len(head) + len(citation.quote)))


def _surroundings(citation: Citation, passage: Passage | None, page: Page | None) -> tuple[str, int]:
    """The text that the quote stands in, and where: its passage, else its page while that holds it, else itself."""
    if passage is not None:
        return passage.text, citation.start - passage.start
    if page is not None and page.text[citation.start : citation.end] == citation.quote:
        return page.text, citation.start
    return citation.quote, 0


def _window(text: str, start: int, end: int, around: int) -> tuple[int, int]:
    """The span from `around` characters before `start` to `around` after `end`, at word boundaries."""
    left, right = max(0, start - around), min(len(text), end + around)
    while 0 < left < start and text[left - 1].isascii() and text[left - 1].isalnum():
        left += 1
    while end < right < len(text) and text[right].isascii() and text[right].isalnum():
        right -= 1
    return left, right


def draw_reader(
    app: App, library: str, place: Citation | Passage, passage: Passage | None, key: str, language: Language
) -> None:
    """A closed expander that reads the page's stored text only once it is opened."""
    reader = st.expander(
        label("source_in_page", language),
        key=f"read-{key}",
        icon=":material/article:",
        type="compact",
        on_change="rerun",
    )
    if not reader.open:
        return
    with reader, st.container(key=f"page-text-{key}"):
        page = app.library(library).page(place.url_hash)
        note, text, span = _reading(page, place, passage)
        if note:
            st.caption(label(note, language))
        st.markdown(passage_markdown(text, span))


def _reading(
    page: Page | None, place: Citation | Passage, passage: Passage | None
) -> tuple[str, str, tuple[int, int] | None]:
    """What to show of a page: a note's label or empty, the text, and the span to highlight in it."""
    quote = place.quote if isinstance(place, Citation) else place.text
    if page is not None and page.text[place.start : place.end] == quote:
        left, right = _window(page.text, place.start, place.end, _AROUND_PASSAGE)
        head = "…" if left else ""
        tail = "…" if right < len(page.text) else ""
        shift = len(head) - left
        return "", head + page.text[left:right] + tail, (place.start + shift, place.end + shift)
    note = "source_gone" if page is None else "source_changed"
    if passage is None or isinstance(place, Passage):
        return note, quote, (0, len(quote))
    start = place.start - passage.start
    return note, passage.text, (start, start + len(quote))


def _passage_of(answer: Answer, citation: Citation) -> Passage | None:
    """The passage that the quote stands in, checked letter for letter."""
    for passage in answer.passages:
        start = citation.start - passage.start
        same_page = passage.url_hash == citation.url_hash and start >= 0
        if same_page and passage.text[start : start + len(citation.quote)] == citation.quote:
            return passage
    return None
