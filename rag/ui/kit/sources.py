"""The sources of an answer: chips in a line, one per page, and cards of passages. Each opens the panel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.locales import Language, label, label_count
from rag.types import Answer, Citation, Page, Passage
from rag.ui.kit.answers import PageNow, home_of
from rag.ui.kit.markdown import escape_line, shorten, web_link
from rag.ui.kit.parts import site_of
from rag.ui.kit.passages import best_window, passage_markdown, term_spans
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App

_CHIPS, _EXCERPT, _LONGEST_TITLE, _LONGEST_QUOTE = 8, 320, 90, 400
STATES: dict[PageNow, tuple[str, str]] = {
    "gone": ("link_off", "source_missing"),
    "newer": ("history", "source_newer"),
    "off_site": ("cloud_off", "source_off_site"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a page, shown next to the answer that cites it; `n` is its mark, `passage` where it was read."""

    n: int
    home: str
    place: Citation | Passage
    passage: Passage | None = None
    state: PageNow | None = None

    @property
    def quote(self) -> str:
        return self.place.quote if isinstance(self.place, Citation) else self.place.text


def anchor_of(run_id: str) -> str:
    """Return the prefix of the ids to which one answer's marks link; letters and digits only."""
    return f"source-{''.join(sign for sign in run_id if sign.isalnum())[-12:]}"


def offer(anchor: str, sources: Iterable[Source]) -> None:
    """Make sources available to this tab's panel: a link to `#{anchor}-{n}` opens one."""
    session().sources[anchor] = tuple(sources)


def draw_line(
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

    `states` are the pages, by url_hash, that differ from the text behind the answer.
    """
    now = states or {}
    sources = [
        Source(one.n, home_of(app, library, one), one, _passage_of(answer, one), now.get(one.url_hash))
        for one in sorted(answer.citations, key=lambda one: one.n)
    ]
    offer(anchor_of(run_id), sources)
    pages: dict[tuple[str, str], list[Source]] = {}
    for one in sources:
        pages.setdefault((one.home, one.place.url_hash), []).append(one)
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


def _chip(anchor: str, sources: list[Source], language: Language) -> str:
    """Return a chip with a page's marks and title; its tooltip has the page's state and first quote."""
    first = sources[0]
    icon, key = STATES[first.state] if first.state else ("", "")
    sign = f":material/{icon}: " if icon else ""
    marks = f"**{_ranges([source.n for source in sources])}**"
    title = escape_line(shorten(first.place.title or site_of(first.place.url), _LONGEST_TITLE))
    text = f"{label(key, language)}: {first.quote}" if key else first.quote
    return f'[{sign}{marks} {title}](#{anchor}-{first.n} "{tip(text)}")'


def _ranges(numbers: Sequence[int]) -> str:
    """Return `1–4 7` for 1, 2, 3, 4, 7, which are in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else " ".join(map(str, run)) for run in runs)


def tip(text: str) -> str:
    """Return the plain tooltip of a text for the title of a Markdown link."""
    return escape_line(shorten(text, _LONGEST_QUOTE)).replace('"', "'")


def draw_passage(
    app: App, library: str, passage: Passage, question: str, language: Language, *, key: str, place: int = 0
) -> None:
    """Draw a card for a passage, the words of `question` highlighted; `place` is its number, if it has one."""
    with st.container(border=True, key=f"source-{key}"):
        badge = f":green-badge[{place}] " if place else ""
        st.markdown(f"{badge}**{web_link(passage.title or passage.url, passage.url)}**")
        within = app.libraries.title(passage.library) if passage.library else ""
        st.caption(location(passage.url, passage.section, within))
        with st.container(key=f"quote-{key}"):
            st.markdown(excerpt(passage.text, question))
        draw_reader(Source(1, home_of(app, library, passage), passage, passage), key, language)


def draw_reader(source: Source, key: str, language: Language) -> None:
    """Draw a link that opens the page's text in the panel."""
    anchor = anchor_of(key)
    offer(anchor, [source])
    st.markdown(f":small[[:material/article: {label('source_in_page', language)}](#{anchor}-{source.n})]")


def location(url: str, section: tuple[str, ...], library: str = "") -> str:
    """Return `site · section › section`; `library` is its title, if several were searched."""
    path = " › ".join(escape_line(part) for part in section)
    within = f":material/menu_book: {escape_line(library)}" if library else ""
    return " · ".join(filter(None, (within, escape_line(site_of(url)), path)))


def excerpt(text: str, question: str) -> str:
    """Return the part of a passage with the most of the question's words, which are highlighted."""
    left, right = _whole_rows(text, *best_window(text, term_spans(question, text), _EXCERPT))
    part = text[left:right].strip()
    head, tail = ("…\n" if part.startswith(("|", "#")) else "…"), ("\n…" if part.endswith("|") else "…")
    part = f"{head if left else ''}{part}{tail if right < len(text) else ''}"
    return passage_markdown(part, *term_spans(question, part))


def _whole_rows(text: str, left: int, right: int) -> tuple[int, int]:
    """Return the span without a table row that is cut."""
    first, last, end = (text.rfind("\n", 0, left) + 1, text.rfind("\n", 0, right) + 1, text.find("\n", right))
    left = first if text.startswith("|", first) else left
    return left, (end if end >= 0 else len(text)) if text.startswith("|", last) else right


def live_address(citation: Citation, page: Page | None, passage: Passage | None) -> str:
    """Return the address that opens the live page at the sentence, made unambiguous by the known text of the page."""
    if page is not None and page.text[citation.start : citation.end] == citation.quote:
        return text_fragment(citation.url, page.text, citation.start, citation.end)
    if passage is not None:
        start = citation.start - passage.start
        return text_fragment(citation.url, passage.text, start, start + len(citation.quote))
    return text_fragment(citation.url, citation.quote, 0, len(citation.quote))


def _passage_of(answer: Answer, citation: Citation) -> Passage | None:
    """Return the passage that contains the quote, checked letter for letter."""
    for passage in answer.passages:
        start = citation.start - passage.start
        same_page = passage.url_hash == citation.url_hash and start >= 0
        if same_page and passage.text[start : start + len(citation.quote)] == citation.quote:
            return passage
    return None
