"""The sources of an answer: chips in a line, one a page; cards of passages. Each leads to the panel beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from rag.checking.fragments import text_fragment
from rag.types import Answer, Citation, Page, Passage
from rag.ui.kit.answers import PageNow, home_of
from rag.ui.kit.escape import escape_line, shorten, web_link
from rag.ui.kit.highlight import best_window, term_spans
from rag.ui.kit.parts import site_of
from rag.ui.kit.passages import passage_markdown
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App

_CHIPS, _SHOWN, _LONGEST_TITLE, _LONGEST_QUOTE = 8, 320, 90, 400
STATES: dict[PageNow, tuple[str, str]] = {
    "gone": ("link_off", "source_missing"),
    "newer": ("history", "source_newer"),
    "off_site": ("cloud_off", "source_off_site"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a page that is shown beside what rests on it; `n` is its mark, `passage` what it was read in."""

    n: int
    home: str
    place: Citation | Passage
    passage: Passage | None = None
    state: PageNow | None = None

    @property
    def quote(self) -> str:
        return self.place.quote if isinstance(self.place, Citation) else self.place.text


def anchor_of(run_id: str) -> str:
    """The start of the addresses that the marks of one answer lead to; letters and digits only."""
    return f"source-{''.join(sign for sign in run_id if sign.isalnum())[-12:]}"


def offer(anchor: str, sources: Iterable[Source]) -> None:
    """Let the panel of this tab show them: a link to `#{anchor}-{n}` opens it."""
    session().sources[anchor] = tuple(sources)


def draw_line(
    app: App,
    library: str,
    answer: Answer,
    run_id: str,
    language: Language,
    *,
    told: Sequence[str] = (),
    states: Mapping[str, PageNow] | None = None,
) -> None:
    """One line under an answer: what is `told` of it, in Markdown, and a chip for each cited page; many of them fold.

    `states` say, by url_hash, which pages are not what the answer was written from.
    """
    now = states or {}
    found = [
        Source(one.n, home_of(app, library, one), one, _passage_of(answer, one), now.get(one.url_hash))
        for one in sorted(answer.citations, key=lambda one: one.n)
    ]
    offer(anchor_of(run_id), found)
    pages: dict[tuple[str, str], list[Source]] = {}
    for one in found:
        pages.setdefault((one.home, one.place.url_hash), []).append(one)
    chips = [_chip(anchor_of(run_id), page, language) for page in pages.values()]
    if parts := [*filter(None, told), *chips[:_CHIPS]]:
        with st.container(key=f"source-line-{run_id}"):
            st.markdown(" ".join(parts))
    if more := chips[_CHIPS:]:
        words = counted("sources_more_one", "sources_more", len(more), language)
        with (
            st.expander(words, icon=":material/link:", type="compact", key=f"more-sources-{run_id}"),
            st.container(key=f"source-line-more-{run_id}"),
        ):
            st.markdown(" ".join(more))


def _chip(anchor: str, sources: list[Source], language: Language) -> str:
    """The marks that a page has, and its title; what has become of it and its first quote for who points at it."""
    first = sources[0]
    icon, key = STATES[first.state] if first.state else ("", "")
    sign = f":material/{icon}: " if icon else ""
    marks = f"**{_ranges([one.n for one in sources])}**"
    title = escape_line(shorten(first.place.title or site_of(first.place.url), _LONGEST_TITLE))
    told = f"{label(key, language)}: {first.quote}" if key else first.quote
    return f'[{sign}{marks} {title}](#{anchor}-{first.n} "{tip(told)}")'


def _ranges(numbers: Sequence[int]) -> str:
    """`1–4 7` for 1, 2, 3, 4, 7, which are in order."""
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
    """A card for a passage, the words of `question` highlighted; `place` is its number, if it has one."""
    with st.container(border=True, key=f"source-{key}"):
        badge = f":green-badge[{place}] " if place else ""
        st.markdown(f"{badge}**{web_link(passage.title or passage.url, passage.url)}**")
        within = app.libraries.title(passage.library) if passage.library else ""
        st.caption(whereabouts(passage.url, passage.section, within))
        with st.container(key=f"quote-{key}"):
            st.markdown(beginning(passage.text, question))
        draw_reader(Source(1, home_of(app, library, passage), passage, passage), key, language)


def draw_reader(source: Source, key: str, language: Language) -> None:
    """A link that opens the page's text beside it."""
    anchor = anchor_of(key)
    offer(anchor, [source])
    st.markdown(f":small[[:material/article: {label('source_in_page', language)}](#{anchor}-{source.n})]")


def whereabouts(url: str, section: tuple[str, ...], library: str = "") -> str:
    """`site · section › section`; `library` is its title, where several were searched."""
    path = " › ".join(escape_line(part) for part in section)
    within = f":material/menu_book: {escape_line(library)}" if library else ""
    return " · ".join(filter(None, (within, escape_line(site_of(url)), path)))


def beginning(text: str, question: str) -> str:
    """The part of a passage that holds the most of the question's words, which are highlighted."""
    left, right = _whole_rows(text, *best_window(text, term_spans(question, text), _SHOWN))
    shown = text[left:right].strip()
    head, tail = ("…\n" if shown.startswith(("|", "#")) else "…"), ("\n…" if shown.endswith("|") else "…")
    shown = f"{head if left else ''}{shown}{tail if right < len(text) else ''}"
    return passage_markdown(shown, *term_spans(question, shown))


def _whole_rows(text: str, left: int, right: int) -> tuple[int, int]:
    """The same span without a row of a table that is cut."""
    first, last, end = (text.rfind("\n", 0, left) + 1, text.rfind("\n", 0, right) + 1, text.find("\n", right))
    left = first if text.startswith("|", first) else left
    return left, (end if end >= 0 else len(text)) if text.startswith("|", last) else right


def live_address(citation: Citation, page: Page | None, passage: Passage | None) -> str:
    """The address that opens the live page at the sentence, told apart from others by what is known of the page."""
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
