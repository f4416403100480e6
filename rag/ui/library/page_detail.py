"""One page of a library: its details, text, summary, chunks, changes, and actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count, language_name, say
from rag.patterns import lazy_regex
from rag.runs.options import Question
from rag.runs.serialization import answer_from_json, notice_of
from rag.store.values import Filters
from rag.types import Answer, Page, Passage
from rag.ui.kit.markdown import answer_markdown, escape_line, shorten, web_link
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import chunk_count, escape_html, format_time, short_source
from rag.ui.kit.passages import passage_markdown, text_height
from rag.ui.kit.runs import LiveRun, live_lines
from rag.ui.kit.session import session, set_param
from rag.ui.kit.sources import anchor_of, draw_panel, draw_source_line, tooltip_text
from rag.ui.library.page_list import draw_page_actions
from rag.ui.library.upkeep import draw_page_schedule
from rag.ui.library.versions import draw_versions

if TYPE_CHECKING:
    from rag.app import App

_TEXT_HEIGHT = 560, 1500, 24
"""Height in pixels; maximum characters and lines of a short text."""
_PART = 60_000
"""Characters of a text sent to the browser at a time."""
_HEADING = lazy_regex(r"(?m)^#{1,6}[ \t]+(\S.*)$")
_LONGEST_QUESTION = 160
_POLL_SECONDS: Final = 0.5
_RULES: Final = "extractive"


def draw_page(app: App, library: str, page: Page, language: Language) -> None:
    """Draw the details of `page`, which must include its text."""
    excluded = app.library(library).excluded_pages()
    if st.button(label("page_all", language), icon=":material/arrow_back:", type="tertiary", key="page-back"):
        set_param("page", "")
        st.rerun()
    with st.container(key="page-detail", gap="small"):
        st.markdown(f"# {escape_line(page.title or short_source(page.url))}", anchors=False)
        st.markdown(web_link(short_source(page.url), page.url))
        st.markdown(_badges(page, page.url_hash in excluded, language))
        st.caption("  \n".join(_facts_of(page, language)))
        _draw_aliases(page, language)
        with st.container(horizontal=True, gap="small", key="page-actions"):
            draw_page_actions(app, library, [page], excluded, language, key="page")
            if page.source == "web":
                draw_page_schedule(app, library, page, language)
    _draw_view(app, library, page, language)


def _badges(page: Page, is_excluded: bool, language: Language) -> str:
    chips = [("orange", "link_off", label("row_gone", language))] if page.status == "gone" else []
    chips += [("blue", "visibility_off", label("row_left_out", language))] if is_excluded else []
    if not chips:
        chips.append(("green", "check_circle", label("row_active", language)))
    if page.version > 1:
        chips.append(("green", "history", label("page_version", language, number=page.version)))
    chips.append(("gray", "translate", language_name(page.language, language)))
    if page.source == "note":
        chips.append(("gray", "sticky_note_2", label("page_note", language)))
    else:
        chips.append(("gray", "public" if page.source == "web" else "draft", escape_line(page.site) or "–"))
    return " ".join(f":{color}-badge[:material/{icon}: {text}]" for color, icon, text in chips)


def _facts_of(page: Page, language: Language) -> list[str]:
    """Return lines of facts: author and dates, then length and when the page was added, updated and checked."""
    origin = [label("page_author", language, name=escape_line(page.author))] if page.author else []
    origin += [label("page_published", language, when=_day(page.published))] if page.published else []
    origin += [label("page_modified", language, when=_day(page.modified))] if page.modified else []
    size = label(
        "page_meta",
        language,
        characters=f"{page.characters or len(page.text):,}",
        chunks=chunk_count(page.chunks, language),
    )
    history = [label("page_added_on", language, when=format_time(page.added_at))]
    if page.updated_at and page.updated_at != page.added_at:
        history.append(label("page_updated_on", language, updated=format_time(page.updated_at)))
    if page.checked_at:
        history.append(label("page_checked", language, when=format_time(page.checked_at)))
    if page.failures:
        history.append(label_count("page_failures_one", "page_failures", page.failures, language))
    return [" · ".join(line) for line in (origin, [size, *history]) if line]


def _day(when: str) -> str:
    """Return the day of a date or time that a page states."""
    return escape_line(when[:10])


def _draw_aliases(page: Page, language: Language) -> None:
    if not page.aliases:
        return
    with st.expander(label_count("page_alias_one", "page_aliases", len(page.aliases), language), type="compact"):
        st.markdown("\n".join(f"- {web_link(short_source(url), url)}" for url in page.aliases))


def _draw_view(app: App, library: str, page: Page, language: Language) -> None:
    views = ["text", "summary", "chunks", "versions", "cited"]
    view = st.segmented_control(
        label("page_view", language),
        views,
        default="text",
        required=True,
        format_func=lambda name: label(f"page_{name}", language),
        key="page-view",
        label_visibility="collapsed",
    )
    if view == "summary":
        _draw_summary(app, library, page, language)
    elif view == "versions":
        draw_versions(app, library, page, language)
    elif view == "chunks":
        _draw_chunks(app.library(library).chunks(page.url_hash), page, language)
    elif view == "cited":
        _draw_cited(app, library, page, language)
    else:
        _draw_text(page, language)


def _draw_text(page: Page, language: Language) -> None:
    start, end = _choose_part(page, "text")
    with st.container(height=text_height(page.text, *_TEXT_HEIGHT), border=True, key=f"page-text-{page.url_hash}"):
        st.markdown(passage_markdown(page.text[start:end]) or label("page_no_text", language))


def _draw_chunks(chunks: list[Passage], page: Page, language: Language) -> None:
    st.caption(label("page_chunks_hint", language))
    start, end = _choose_part(page, "chunks")
    visible = [(n, chunk) for n, chunk in enumerate(chunks, 1) if chunk.start < end and chunk.end > start]
    start, end = min([start, *(chunk.start for _, chunk in visible)]), max([end, *(chunk.end for _, chunk in visible)])
    first = visible[0][0] if visible else 1
    with st.container(height=text_height(page.text, *_TEXT_HEIGHT), border=True, key="page-chunk-map"):
        st.html(chunks_html(page.text[start:end], [chunk for _, chunk in visible], language, first=first, offset=start))


def text_html(text: str) -> str:
    """Return `text` as HTML with headings in bold."""
    return _HEADING.sub(r"<b>\1</b>", escape_html(text))


@dataclass(frozen=True, slots=True)
class _Segment:
    """A span of text that is covered by the same chunks; `chunks` are their indexes, in order."""

    start: int
    end: int
    chunks: tuple[int, ...]


def segments_of(length: int, spans: Sequence[tuple[int, int]]) -> Iterator[_Segment]:
    """Yield the segments between the chunk boundaries of a text, in order and without gaps."""
    borders = sorted({0, length, *(place for span in spans for place in span if 0 <= place <= length)})
    for start, end in pairwise(borders):
        covering = [n for n, (first, last) in enumerate(spans) if first <= start and end <= last]
        yield _Segment(start, end, tuple(covering))


def chunks_html(text: str, chunks: Sequence[Passage], language: Language, *, first: int = 1, offset: int = 0) -> str:
    """Return the text as HTML with chunks in alternating shades, each preceded by its number and span.

    Overlaps have a third shade. `text` begins at `offset` of its page; `first` is the number of the first chunk.
    """
    spans = [(chunk.start - offset, chunk.end - offset) for chunk in chunks]
    parts: list[str] = []
    for segment in segments_of(len(text), spans):
        starting = [place for place, (start, _) in enumerate(spans) if start == segment.start]
        parts += [_chunk_mark(chunks[place], first + place, language) for place in starting]
        content = text_html(text[segment.start : segment.end])
        parts.append(f'<span class="{_shade(segment.chunks)}">{content}</span>' if segment.chunks else content)
    return f'<div class="page-html">{"".join(parts)}</div>'


def _shade(chunks: tuple[int, ...]) -> str:
    return "chunk-both" if len(chunks) > 1 else f"chunk-{chunks[0] % 2}"


def _chunk_mark(chunk: Passage, number: int, language: Language) -> str:
    span = label("page_chunk_span", language, start=f"{chunk.start:,}", end=f"{chunk.end:,}")
    path = " › ".join(chunk.section)
    text = f"<b>{number}</b> {text_html(span)}" + (f" · {text_html(path)}" if path else "")
    return f'<span class="chunk-mark">{text}</span>'


def _choose_part(page: Page, view: str) -> tuple[int, int]:
    """Draw the pagination of a long text, and return the span of the selected part."""
    borders = parts_of(page.text)
    if len(borders) <= 2:
        return 0, len(page.text)
    number = st.pagination(len(borders) - 1, key=f"part-{view}-{page.url_hash}")
    return borders[number - 1], borders[number]


def parts_of(text: str, size: int = _PART) -> list[int]:
    """Return the boundaries of the parts of `text`, cut at line ends where possible: 0, …, its length."""
    borders = [0]
    while len(text) - borders[-1] > size:
        line = text.rfind("\n", borders[-1] + size // 2, borders[-1] + size)
        borders.append(line + 1 if line >= 0 else borders[-1] + size)
    return [*borders, len(text)] if text else [0]


def _draw_cited(app: App, library: str, page: Page, language: Language) -> None:
    """Draw the user's questions whose answers cite the page, newest first, as links to their conversations."""
    turns = app.conversations.find_citing_turns(library, page.url_hash, session().owner)
    if not turns:
        st.info(label("cited_none", language), icon=":material/format_quote:")
    for place, turn in enumerate(turns):
        with st.container(key=f"cited-{place}", gap=None):
            text = escape_line(shorten(turn.question, _LONGEST_QUESTION))
            if st.button(text, type="tertiary", icon=":material/forum:", key=f"cited-open-{place}"):
                go("chat", conversation=turn.conversation_id)
            st.caption(format_time(turn.created_at))


def _draw_summary(app: App, library: str, page: Page, language: Language) -> None:
    running = st.session_state.get(_summary_key(page))
    saved = app.summary(library, page, language)
    if running:
        st.fragment(_draw_running_summary, run_every=_POLL_SECONDS)(app, page, running, language)
    elif saved is None or saved["by"] != app.reasoner(library, session().chat).name:
        if saved is None:
            st.caption(label("summary_none", language))
        text = label("summary_make" if saved is None else "summary_again", language)
        st.button(
            text, icon=":material/summarize:", key="summary-make", on_click=_make_summary, args=(app, library, page)
        )
    if saved is not None and not running:
        _draw_saved_summary(app, library, page, saved, language)


def _draw_saved_summary(app: App, library: str, page: Page, row: Mapping[str, Any], language: Language) -> None:
    fields = {name: row[name] for name in ("text", "citations", "statements")}
    answer = answer_from_json({"question": "", "mode": "summary", "outcome": "answered", "passages": (), **fields})
    draw_panel(app, language)
    by = label("summary_rules", language) if row["by"] == _RULES else escape_line(row["by"])
    st.caption(label("summary_by", language, when=format_time(row["made"]), by=by))
    if notice := notice_of(row.get("told")):
        st.caption(escape_line(say(notice, language)))
    anchor = f"summary{page.url_hash}"
    with st.container(key=f"answer-{anchor}"):
        marks = {citation.n: tooltip_text(citation.quote) for citation in answer.citations}
        st.markdown(answer_markdown(answer.text, marks=marks, anchor=anchor_of(anchor)), anchors=False)
    draw_source_line(app, library, answer, anchor, language)


def _make_summary(app: App, library: str, page: Page) -> None:
    """In a callback, start a summary; an error becomes a notice."""
    state = session()
    language = state.language
    question = Question(label("summary_wish", language), (library,), "summary", Filters(pages=(page.url_hash,)))
    try:
        st.session_state[_summary_key(page)] = app.ask(question, chat=state.chat, owner=state.owner)
    except RagError as error:
        state.notices.append(error.notice)


def _draw_running_summary(app: App, page: Page, run_id: str, language: Language) -> None:
    live = session().live_runs.setdefault(run_id, LiveRun())
    try:
        live.absorb(app.events(run_id, since=live.next_seq, owner=session().owner))
    except RagError:  # the app was restarted meanwhile
        _end_summary(page, run_id, None)
    if live.answer is not None:
        _end_summary(page, run_id, live.answer)
    with st.container(key=f"steps-{run_id}"):
        st.markdown(live_lines(live, language))
    if st.button(label("chat_stop", language), icon=":material/stop_circle:", key="summary-stop"):
        app.cancel(run_id, session().owner)


def _end_summary(page: Page, run_id: str, answer: Answer | None) -> None:
    """Redraw the page with the saved summary; if there is none, the reason becomes a notice."""
    session().live_runs.pop(run_id, None)
    st.session_state.pop(_summary_key(page), None)
    if answer is not None and answer.notice and answer.outcome != "answered":
        session().notices.append(answer.notice)
    st.rerun()


def _summary_key(page: Page) -> str:
    return f"summary-run-{page.url_hash}"
