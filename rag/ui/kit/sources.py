"""A turn's answer with its sources: a line of chips, one per page, passage cards, and the panel that they open.

The panel next to the answer has the page's text with the source highlighted, its version, and Previous and Next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.conversations.conversations import PageStamp, find_outdated
from rag.errors import RagError
from rag.locales import Language, label, label_count
from rag.reasoning.extractive import as_prose
from rag.store.values import SCREEN_SECONDS, wait_limit
from rag.text import number_ranges
from rag.types import Answer, Citation, Page, PageVersion, Passage
from rag.ui.kit.actions import none_if_unavailable
from rag.ui.kit.browser import send_to_browser
from rag.ui.kit.markdown import escape_line, is_web_url, shorten, web_link
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button, format_time, site_of
from rag.ui.kit.passages import HEADING, RULE, PageNow, SourceSpan, best_window, passage_markdown, term_spans
from rag.ui.kit.session import Scope, libraries_of, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_CHIPS, _EXCERPT, _LONGEST_TITLE, _LONGEST_QUOTE = 8, 320, 90, 400
_STATES: dict[PageNow, tuple[str, str]] = {
    "gone": ("link_off", "source_missing"),
    "newer": ("history", "source_newer"),
    "off_site": ("cloud_off", "source_off_site"),
}
_SOURCE_KEY = "requested-source"
_AROUND = 8_000


def answer_of(app: App, library: str, turn: TurnView) -> Answer | None:
    """Return the turn's answer, with passage texts from the library; None during its run."""
    if turn.run_id:
        with suppress(RagError):
            current = app.answer(turn.run_id, session().owner)
            if current is not None or turn.state == "running":
                return current
    answer = turn.answer
    return None if answer is None else none_if_unavailable(lambda: _with_texts(app, library, answer)) or answer


def _with_texts(app: App, library: str, answer: Answer) -> Answer:
    """Return a stored answer with the texts of its passages, without passages of changed pages.

    A passage may have been merged with its neighbours, so its text is sliced from the page; if a passage with its id is
    still stored, the page has not changed.
    """
    empty = [passage for passage in answer.passages if not passage.text]
    if not empty:
        return answer
    libraries = {item.id: library_of(app, library, item) for item in empty}
    texts: dict[str, str] = {}
    for name in set(libraries.values()):
        store, own = app.library(name), [item for item in empty if libraries[item.id] == name]
        existing = {passage.id for passage in store.passages([item.id for item in own])}
        pages = store.texts([item.url_hash for item in own if item.id in existing])
        texts |= {item.id: pages.get(item.url_hash, "")[item.start : item.end] for item in own if item.id in existing}
    whole = (replace(item, text=item.text or texts.get(item.id, "")) for item in answer.passages)
    return replace(answer, passages=tuple(item for item in whole if item.text))


def library_of(app: App, library: str, source: Citation | Passage) -> str:
    """Return the source's library if it still exists, else `library`."""
    return source.library if source.library and app.libraries.has(source.library) else library


def pages_now(app: App, library: str, turn: TurnView) -> dict[str, PageNow]:
    """Return the states of cited pages that have changed since the turn, by url_hash."""
    if not turn.stamps:
        return {}
    libraries = libraries_of(app, library, Scope.from_json(turn.settings.get("scope", {})))
    pages = none_if_unavailable(lambda: app.library_view(libraries).stored_pages(list(turn.stamps)))
    if pages is None:
        return {}
    states: dict[str, PageNow] = {key: "off_site" for key, page in pages.items() if page.status == "gone"}
    for key, state in find_outdated(turn, {key: PageStamp.of(page) for key, page in pages.items()}).items():
        states[key] = "gone" if state == "gone" else "newer"
    return states


def anchor_of(run_id: str) -> str:
    """Return the id prefix of an answer's sources, as in its links: letters, digits and a hyphen only."""
    return f"source-{''.join(sign for sign in run_id if sign.isalnum())[-12:]}"


def draw_source_line(
    app: App,
    library: str,
    answer: Answer,
    run_id: str,
    language: Language,
    *,
    lead: Sequence[str] = (),
    states: Mapping[str, PageNow] | None = None,
) -> None:
    """Draw a line below an answer: the Markdown parts of `lead`, and a chip for each cited page; many are collapsed.

    `states` are those of pages that have changed since the answer, by url_hash.
    """
    now = states or {}
    sources = [
        SourceSpan(one.n, library_of(app, library, one), one, _passage_of(answer, one), now.get(one.url_hash))
        for one in sorted(answer.citations, key=lambda one: one.n)
    ]
    session().sources[anchor_of(run_id)] = tuple(sources)  # for the panel
    pages: dict[tuple[str, str], list[SourceSpan]] = {}
    for one in sources:
        pages.setdefault((one.library, one.location.url_hash), []).append(one)
    chips = [_chip(anchor_of(run_id), page, language) for page in pages.values()]
    if parts := [*filter(None, lead), *chips[:_CHIPS]]:
        with st.container(key=f"source-line-{run_id}"):
            st.markdown(" ".join(parts))
    if more := chips[_CHIPS:]:
        words = label_count("sources_more_one", "sources_more", len(more), language)
        with (
            st.expander(words, icon=":material/link:", type="compact", key=f"more-sources-{run_id}"),
            st.container(key=f"source-line-more-{run_id}"),
        ):
            st.markdown(" ".join(more))


def _chip(anchor: str, sources: list[SourceSpan], language: Language) -> str:
    """Return a chip with a page's marks and title; its tooltip has the page's state and first quote."""
    first = sources[0]
    icon, key = _STATES[first.state] if first.state else ("", "")
    sign = f":material/{icon}: " if icon else ""
    marks = f"**{_ranges([source.n for source in sources])}**"
    title = escape_line(shorten(first.location.title or site_of(first.location.url), _LONGEST_TITLE))
    text = f"{label(key, language)}: {first.quote}" if key else first.quote
    return f'[{sign}{marks} {title}](#{anchor}-{first.n} "{tooltip_text(text)}")'


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ranges: `1–4 7` for 1, 2, 3, 4, 7."""
    return " ".join(
        f"{first}–{last}" if last > first + 1 else " ".join(map(str, range(first, last + 1)))
        for first, last in number_ranges(numbers)
    )


def tooltip_text(text: str) -> str:
    """Return page text as one line without Markdown, shortened and escaped, for the title of a Markdown link."""
    lines = (line[len(lead[0]) if (lead := HEADING.match(line)) else 0 :] for line in text.split("\n"))
    plain = " ".join(as_prose(line) for line in lines if not RULE.fullmatch(line))
    return escape_line(shorten(plain, _LONGEST_QUOTE)).replace('"', "'")


def draw_passage(
    app: App, library: str, passage: Passage, question: str, language: Language, *, key: str, number: int = 0
) -> None:
    """Draw a card for a passage with the words of `question` highlighted; `number` is its rank, 0 for none."""
    with st.container(border=True, key=f"source-{key}"):
        badge = f":green-badge[{number}] " if number else ""
        st.markdown(f"{badge}**{web_link(passage.title or passage.url, passage.url)}**")
        within = app.libraries.title(passage.library) if passage.library else ""
        st.caption(_breadcrumb(passage, passage.section, within))
        with st.container(key=f"quote-{key}"):
            st.markdown(excerpt(passage.text, question))
        draw_panel_link(SourceSpan(1, library_of(app, library, passage), passage, passage), key, language)


def draw_panel_link(source: SourceSpan, key: str, language: Language) -> None:
    """Draw a link that opens the page's text in the panel."""
    anchor = anchor_of(key)
    session().sources[anchor] = (source,)
    st.markdown(f":small[[:material/article: {label('source_in_page', language)}](#{anchor}-{source.n})]")


def _breadcrumb(source: Citation | Passage, section: tuple[str, ...], library: str = "") -> str:
    """Return `site · section › section`, without the page's title; `library` is its title, if several were searched."""
    path = " › ".join(escape_line(part) for part in section if part != source.title)
    within = f":material/menu_book: {escape_line(library)}" if library else ""
    return " · ".join(filter(None, (within, escape_line(site_of(source.url)), path)))


def excerpt(text: str, question: str) -> str:
    """Return the part of a passage with most of the question's words, highlighted."""
    left, right = best_window(text, term_spans(question, text), _EXCERPT)
    first, last, end = text.rfind("\n", 0, left) + 1, text.rfind("\n", 0, right) + 1, text.find("\n", right)
    if text.startswith("|", first):  # include whole table rows
        left = first
    if text.startswith("|", last):
        right = end if end >= 0 else len(text)
    part = text[left:right].strip()
    head, tail = ("…\n" if part.startswith(("|", "#")) else "…"), ("\n…" if part.endswith("|") else "…")
    part = f"{head if left else ''}{part}{tail if right < len(text) else ''}"
    return passage_markdown(part, *term_spans(question, part))


def live_url(citation: Citation, page: Page | None, passage: Passage | None) -> str:
    """Return the URL that opens the live page at the citation; the known page text makes the fragment unambiguous."""
    if page is not None and page.text[citation.start : citation.end] == citation.quote:
        return text_fragment(citation.url, page.text, citation.start, citation.end)
    if passage is not None:
        start = citation.start - passage.start
        return text_fragment(citation.url, passage.text, start, start + len(citation.quote))
    return text_fragment(citation.url, citation.quote, 0, len(citation.quote))


def _passage_of(answer: Answer, citation: Citation) -> Passage | None:
    """Return the passage that has the quote, verbatim, at the citation's offset."""
    for passage in answer.passages:
        start = citation.start - passage.start
        same_page = passage.url_hash == citation.url_hash and start >= 0
        if same_page and passage.text[start : start + len(citation.quote)] == citation.quote:
            return passage
    return None


@st.fragment
def draw_panel(app: App, language: Language) -> None:
    """Draw the panel, which opens without redrawing the page: page.js writes a source's id into its text field."""
    source_id = str(st.session_state.get(_SOURCE_KEY) or "")
    anchor, _, number = source_id.rpartition("-")
    sources = session().sources.get(anchor, ())
    index = next((index for index, source in enumerate(sources) if str(source.n) == number), None)
    if index is None:
        st.session_state[_SOURCE_KEY] = ""  # else it would open by itself once its answer is drawn again
    st.text_input(label("sources", language), key=_SOURCE_KEY, label_visibility="collapsed")
    if index is not None:
        with st.container(key="source-panel", gap=None):
            _draw_moves(anchor, sources, index, language)
            _draw_source(app, sources[index], source_id, language)
    send_to_browser("source", source=source_id if index is not None else "", name=label("sources", language))


def _draw_moves(anchor: str, sources: tuple[SourceSpan, ...], index: int, language: Language) -> None:
    """Draw the position among the sources, Previous and Next, and Close."""
    with st.container(horizontal=True, vertical_alignment="center", key="source-moves", gap="small"):
        if len(sources) > 1:
            st.caption(label("source_place", language, place=index + 1, count=len(sources)), width="content")
            for name, icon, step in (("before", "chevron_left", -1), ("after", "chevron_right", 1)):
                exists, text = 0 <= index + step < len(sources), label(f"source_{name}", language)
                target = f"{anchor}-{sources[index + step].n}" if exists else ""
                key = f"source-{name}"
                draw_button(text, icon, key, _open_source, target, type="tertiary", disabled=not exists)
        draw_button(label("source_close", language), "close", "source-close", _open_source, "", type="tertiary")


def _open_source(source_id: str) -> None:
    st.session_state[_SOURCE_KEY] = source_id


def _draw_source(app: App, source: SourceSpan, source_id: str, language: Language) -> None:
    location = source.location
    with wait_limit(SCREEN_SECONDS):
        page = none_if_unavailable(lambda: app.page(source.library, location.url_hash))
        versions = none_if_unavailable(lambda: app.library(source.library).versions(location.url_hash)) if page else ()
    source_text = find_source_text(source, versions or ())
    mark = f":green-badge[{source.n}] " if isinstance(location, Citation) else ""
    st.markdown(f"## {mark}{web_link(location.title or location.url, location.url)}", anchors=False)
    within = app.libraries.title(location.library) if location.library else ""
    section = location.section or (source.passage.section if source.passage else ())
    lines = [_breadcrumb(location, section, within), version_line(source, page, source_text, language)]
    if isinstance(location, Citation) and is_web_url(location.url):
        live = web_link(label("source_live", language), live_url(location, page, source.passage))
        lines.append(f":material/my_location: {live}")
    st.caption("  \n".join(lines))
    # page.js sees by this id, of letters, digits and hyphens only, that the source is drawn.
    with st.container(key="source-text"):
        st.html(f'<span class="place" id="open-{source_id}"></span>')
        st.markdown(passage_markdown(*_crop(source_text)))
    if page and draw_button(label("source_library", language), "menu_book", "source-library", type="tertiary"):
        go("library", page=page.url_hash)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A page's text as cited, or the part that is still known; `text[slice(*span)]` is the source."""

    text: str
    span: tuple[int, int]
    version: PageVersion | None = None


def find_source_text(source: SourceSpan, versions: tuple[PageVersion, ...] | list[PageVersion]) -> SourceText:
    """Return the newest version of the page with the quote at its offset, else the passage, else only the quote."""
    location, quote = source.location, source.quote
    for version in reversed(versions):
        if version.text[location.start : location.end] == quote:
            return SourceText(version.text, (location.start, location.end), version)
    if source.passage is not None:
        start = location.start - source.passage.start
        return SourceText(source.passage.text, (start, start + len(quote)))
    return SourceText(quote, (0, len(quote)))


def _crop(source_text: SourceText) -> tuple[str, tuple[int, int]]:
    """Return whole lines of the text around the source, and its span in them."""
    text, (start, end) = source_text.text, source_text.span
    left = text.rfind("\n", 0, max(0, start - _AROUND)) + 1 if start > _AROUND else 0
    right = text.find("\n", end + _AROUND)
    right = len(text) if right < 0 else right
    head, tail = "…\n" if left else "", "\n…" if right < len(text) else ""
    shift = len(head) - left
    return head + text[left:right] + tail, (start + shift, end + shift)


def version_line(source: SourceSpan, page: Page | None, source_text: SourceText, language: Language) -> str:
    """Return a line with the version of the text, and any change of the page since."""
    parts = []
    if source_text.version is not None:
        key = "source_version_past" if source_text.version.until else "source_version"
        times = {"when": format_time(source_text.version.since), "until": format_time(source_text.version.until)}
        parts.append(label(key, language, number=source_text.version.number, **times))
    elif page is None and source.passage is not None and source.passage.fetched_at:
        parts.append(f":material/public: {label('source_beyond', language)}")
    else:
        parts.append(label("source_gone" if page is None else "source_changed", language))
    state = "newer" if source_text.version is not None and source_text.version.until else source.state
    if state and page is not None:
        icon, key = _STATES[state]
        parts.append(f":orange[:material/{icon}: {escape_line(label(key, language))}]")
    return " · ".join(parts)
