"""One page of a library: its details, text, summary, chunks, versions with their changes, and actions.

A diff is HTML: the Markdown that extraction leaves (headings, lists, tables) is rendered, removed words are struck
through, added words underlined, and all text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.errors import RagError
from rag.ingest.diff import page_diff
from rag.locales import Language, label, label_count, language_name, say
from rag.runs.run import Question, answer_from_json, notice_of
from rag.store.values import Filters
from rag.text import lazy_regex
from rag.types import Answer, Page, PageVersion, Passage
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.markdown import answer_markdown, escape_line, shorten, web_link
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import chunk_count, draw_button, draw_switch, escape_html, format_time, short_source
from rag.ui.kit.passages import BULLET, CELL, HEADING, ROW, RULE, passage_markdown, text_height
from rag.ui.kit.runs import live_lines
from rag.ui.kit.session import session, set_param
from rag.ui.kit.sources import anchor_of, draw_panel, draw_source_line, tooltip_text
from rag.ui.library.page_list import draw_page_actions
from rag.ui.library.upkeep import draw_page_schedule

if TYPE_CHECKING:
    from rag.app import App

Pieces = Sequence[tuple[str, str]]
"""(kind, text) in order, the kind `same`, `added` or `removed`."""
_MIN_FOLDED = 240
"""Unchanged blocks with fewer characters than this are not collapsed."""
_TAGS = {"same": ("", ""), "added": ("<ins>", "</ins>"), "removed": ("<del>", "</del>")}
_LONGEST = 200_000


def diff_html(pieces: Pieces, language: Language) -> str:
    """Return the diff as HTML; unchanged blocks that are not next to a change are collapsed."""
    blocks = list(_blocks(pieces))
    changed = [
        number for number, block in enumerate(blocks) if any(kind != "same" for line in block for kind, _ in line)
    ]
    near = {number + offset for number in changed for offset in (-1, 0, 1)}
    parts: list[str] = []
    for visible, group in groupby(range(len(blocks)), near.__contains__):
        numbers = list(group)
        html = "".join(_block(blocks[number]) for number in numbers)
        size = sum(len(_text(line)) for number in numbers for line in blocks[number])
        if not visible and size >= _MIN_FOLDED:
            summary = escape_html(label("diff_same", language, count=f"{size:,}"))
            html = f"<details><summary>{summary}</summary>{html}</details>"
        parts.append(html)
    return f'<div class="page-html diff">{"".join(parts)}</div>'


def _blocks(pieces: Pieces) -> Iterator[list[Pieces]]:
    """Yield the non-empty lines, with the rows of a table grouped."""
    lines = (line for line in _lines(pieces) if _text(line).strip())
    for is_table, group in groupby(lines, lambda line: ROW.fullmatch(_text(line)) is not None):
        if is_table:
            yield list(group)
        else:
            yield from ([line] for line in group)


def _lines(pieces: Pieces) -> Iterator[Pieces]:
    line: list[tuple[str, str]] = []
    for kind, text in pieces:
        for number, part in enumerate(text.split("\n")):
            if number:
                yield line
                line = []
            if part:
                line.append((kind, part))
    yield line


def _text(line: Pieces) -> str:
    return "".join(text for _, text in line)


def _cut(line: Pieces, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the part of a line from `start` to `end`."""
    at = 0
    for kind, text in line:
        part = text[max(0, start - at) : max(0, end - at)]
        if part:
            yield kind, part
        at += len(text)


def _render(pieces: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{_TAGS[kind][0]}{escape_html(text)}{_TAGS[kind][1]}" for kind, text in pieces)


def _block(block: Sequence[Pieces]) -> str:
    line = block[0]
    text = _text(line)
    if ROW.fullmatch(text):
        rows = (row for row in block if not RULE.fullmatch(_text(row)))
        return f"<table>{''.join(map(_row, rows))}</table>"
    for pattern, name in ((HEADING, "head"), (BULLET, "item")):
        if lead := pattern.match(text):
            return f'<p class="{name}">{_render(_cut(line, lead.end(), len(text)))}</p>'
    return f"<p>{_render(line)}</p>"


def _row(row: Pieces) -> str:
    cells = []
    for match in CELL.finditer(_text(row)):
        start = match.end(1) - len(match[1].lstrip())
        cells.append(f"<td>{_render(_cut(row, start, start + len(match[1].strip())))}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def draw_versions(app: App, library: str, page: Page, language: Language) -> None:
    """Draw a choice of two consecutive versions, the latest first, and their difference."""
    versions = app.library(library).versions(page.url_hash)
    if len(versions) < 2:
        since = format_time(versions[0].since if versions else page.added_at)
        st.info(label("versions_one", language, since=since), icon=":material/history:")
        return
    changes = list(range(len(versions) - 1, 0, -1))

    def name(place: int) -> str:
        old, new = versions[place - 1], versions[place]
        when = format_time(new.since or old.until)
        return label("versions_step", language, old=old.number, new=new.number, when=when)

    title = label("versions_change", language)
    place = st.selectbox(title, changes, format_func=name, key=f"change-{page.url_hash}")
    place = place if place in changes else changes[0]
    _draw_difference(versions[place - 1], versions[place], language)


def _draw_difference(old: PageVersion, new: PageVersion, language: Language) -> None:
    if old.title != new.title:
        st.caption(label("versions_title", language))
        st.html(diff_html([("removed", old.title), ("added", " "), ("added", new.title)], language))
    pieces = page_diff(old.text, new.text)
    if not any(piece.kind != "same" for piece in pieces):
        st.info(label("versions_same_text", language), icon=":material/equal:")
        return
    added = sum(len(piece.text) for piece in pieces if piece.kind == "added")
    removed = sum(len(piece.text) for piece in pieces if piece.kind == "removed")
    places = sum(piece.kind != "same" and (n == 0 or pieces[n - 1].kind == "same") for n, piece in enumerate(pieces))
    text = label_count("versions_places_one", "versions_places", places, language)
    st.caption(f"{text} · {label('versions_amount', language, added=f'{added:,}', removed=f'{removed:,}')}")
    excerpt, size = list[tuple[str, str]](), 0
    for piece in pieces:
        if size >= _LONGEST:
            break
        excerpt.append((piece.kind, piece.text))
        size += len(piece.text)
    with st.container(border=True, key="version-diff"):
        st.html(diff_html(excerpt, language))
    if len(excerpt) < len(pieces):
        st.caption(label("versions_cut", language))


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
    if draw_button(label("page_all", language), "arrow_back", "page-back", type="tertiary"):
        set_param("page", "")
        st.rerun()
    with st.container(key="page-detail", gap="small"):
        st.markdown(f"# {escape_line(page.title or short_source(page.url))}", anchors=False)
        st.markdown(web_link(short_source(page.url), page.url))
        st.markdown(badges(page, page.url_hash in excluded, language))
        st.caption("  \n".join(_facts_of(page, language)))
        if page.aliases:
            text = label_count("page_alias_one", "page_aliases", len(page.aliases), language)
            with st.expander(text, type="compact"):
                st.markdown("\n".join(f"- {web_link(short_source(url), url)}" for url in page.aliases))
        with st.container(horizontal=True, gap="small", key="page-actions"):
            draw_page_actions(app, library, [page], excluded, language, key="page")
            if page.source == "web":
                draw_page_schedule(app, library, page, language)
    _draw_view(app, library, page, language)


def badges(page: Page, is_excluded: bool, language: Language) -> str:
    """Return the badges of a page: its state, version, language, and site."""
    chips = [("orange", "link_off", label("row_gone", language))] if page.status == "gone" else []
    chips += [("blue", "visibility_off", label("row_left_out", language))] if is_excluded else []
    if not chips:
        chips.append(("green", "check_circle", label("row_active", language)))
    if page.version > 1:
        chips.append(("green", "history", label("page_version", language, number=page.version)))
    chips.append(("gray", "translate", language_name(page.language, language)))
    if page.source == "note":
        chips.append(("gray", "sticky_note_2", label("page_note", language)))
    elif page.site:
        chips.append(("gray", "public" if page.source == "web" else "draft", escape_line(page.site)))
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


def _draw_view(app: App, library: str, page: Page, language: Language) -> None:
    views: dict[str, Callable[[], None]] = {
        "text": lambda: _draw_text(page, language),
        "summary": lambda: _draw_summary(app, library, page, language),
        "chunks": lambda: _draw_chunks(app.library(library).chunks(page.url_hash), page, language),
        "versions": lambda: draw_versions(app, library, page, language),
        "cited": lambda: _draw_cited(app, library, page, language),
    }
    views[draw_switch(label("page_view", language), list(views), "page_", "page-view", language, default="text")]()


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


def segments_of(length: int, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield (start, end, indexes of the covering spans) between the boundaries of a text's spans, without gaps."""
    borders = sorted({0, length, *(place for span in spans for place in span if 0 <= place <= length)})
    for start, end in pairwise(borders):
        yield start, end, [n for n, (first, last) in enumerate(spans) if first <= start and end <= last]


def chunks_html(text: str, chunks: Sequence[Passage], language: Language, *, first: int = 1, offset: int = 0) -> str:
    """Return the text as HTML with chunks in alternating shades, each preceded by its number and span.

    Overlaps have a third shade. `text` begins at `offset` of its page; `first` is the number of the first chunk.
    """
    spans = [(chunk.start - offset, chunk.end - offset) for chunk in chunks]
    parts: list[str] = []
    for begin, end, covering in segments_of(len(text), spans):
        for number, (chunk, (start, _)) in enumerate(zip(chunks, spans, strict=True), first):
            if start == begin:
                span = label("page_chunk_span", language, start=f"{chunk.start:,}", end=f"{chunk.end:,}")
                path = f" · {text_html(' › '.join(chunk.section))}" if chunk.section else ""
                parts.append(f'<span class="chunk-mark"><b>{number}</b> {text_html(span)}{path}</span>')
        content = text_html(text[begin:end])
        if covering:
            shade = "chunk-both" if len(covering) > 1 else f"chunk-{covering[0] % 2}"
            content = f'<span class="{shade}">{content}</span>'
        parts.append(content)
    return f'<div class="page-html">{"".join(parts)}</div>'


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
            if draw_button(text, "forum", f"cited-open-{place}", type="tertiary"):
                go("chat", conversation=turn.conversation_id)
            st.caption(format_time(turn.created_at))


def _draw_summary(app: App, library: str, page: Page, language: Language) -> None:
    if running := st.session_state.get(_summary_key(page)):
        st.fragment(_draw_running_summary, run_every=_POLL_SECONDS)(app, page, running, language)
        return
    saved = app.summary(library, page, language)
    if saved is None:
        st.caption(label("summary_none", language))
    if saved is None or saved["by"] != app.reasoner(library, session().chat).name:
        text = label("summary_make" if saved is None else "summary_again", language)
        draw_button(text, "summarize", "summary-make", _make_summary, app, library, page)
    if saved is None:
        return
    fields = {name: saved[name] for name in ("text", "citations", "statements")}
    answer = answer_from_json({"question": "", "mode": "summary", "outcome": "answered", "passages": (), **fields})
    draw_panel(app, language)
    by = label("summary_rules", language) if saved["by"] == _RULES else escape_line(saved["by"])
    st.caption(label("summary_by", language, when=format_time(saved["made"]), by=by))
    if notice := notice_of(saved.get("told")):
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
    if draw_button(label("chat_stop", language), "stop_circle", "summary-stop"):
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
