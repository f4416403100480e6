"""The summary of one page, on its screen: the saved one of its current text, and the button that makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rag.errors import RagError
from rag.locales import say
from rag.runs.options import Question
from rag.runs.serialization import answer_from_json, notice_of
from rag.store.values import Filters
from rag.types import Answer, Page
from rag.ui.kit.escape import escape_line
from rag.ui.kit.live import LiveRun
from rag.ui.kit.parts import moment
from rag.ui.kit.render import answer_markdown
from rag.ui.kit.session import session
from rag.ui.kit.source_panel import draw_panel
from rag.ui.kit.sources import anchor_of, draw_line, tip
from rag.ui.kit.strings import Language, label
from rag.ui.kit.trace import live_lines

if TYPE_CHECKING:
    from rag.app import App

_POLL_SECONDS: Final = 0.5
_RULES: Final = "extractive"


def draw_summary(app: App, library: str, page: Page, language: Language) -> None:
    running = st.session_state.get(_key(page))
    saved = app.summary(library, page, language)
    if running:
        st.fragment(_draw_running, run_every=_POLL_SECONDS)(app, page, running, language)
    elif saved is None or saved["by"] != app.reasoner(library, session().chat).name:
        if saved is None:
            st.caption(label("summary_none", language))
        text = label("summary_make" if saved is None else "summary_again", language)
        st.button(text, icon=":material/summarize:", key="summary-make", on_click=_make, args=(app, library, page))
    if saved is not None and not running:
        _draw_saved(app, library, page, saved, language)


def _draw_saved(app: App, library: str, page: Page, row: Mapping[str, Any], language: Language) -> None:
    answer = answer_from_json(
        {"question": "", "mode": "summary", "outcome": "answered", "passages": (), **_fields(row)}
    )
    draw_panel(app, language)
    by = label("summary_rules", language) if row["by"] == _RULES else escape_line(row["by"])
    st.caption(label("summary_by", language, when=moment(row["made"]), by=by))
    if notice := notice_of(row.get("told")):
        st.caption(escape_line(say(notice, language)))
    anchor = f"summary{page.url_hash}"
    with st.container(key=f"answer-{anchor}"):
        marks = {citation.n: tip(citation.quote) for citation in answer.citations}
        st.markdown(answer_markdown(answer.text, marks=marks, anchor=anchor_of(anchor)), anchors=False)
    draw_line(app, library, answer, anchor, language)


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("text", "citations", "statements")}


def _make(app: App, library: str, page: Page) -> None:
    """In a callback, start a summary; an error becomes a notice."""
    state = session()
    language = state.language
    question = Question(label("summary_wish", language), (library,), "summary", Filters(pages=(page.url_hash,)))
    try:
        st.session_state[_key(page)] = app.ask(question, chat=state.chat, owner=state.owner)
    except RagError as error:
        state.notes.append(error.notice)


def _draw_running(app: App, page: Page, run_id: str, language: Language) -> None:
    live = session().live.setdefault(run_id, LiveRun())
    try:
        live.absorb(app.events(run_id, since=live.next_seq, owner=session().owner))
    except RagError:  # the app was restarted meanwhile
        _end(page, run_id, None)
    if live.answer is not None:
        _end(page, run_id, live.answer)
    with st.container(key=f"steps-{run_id}"):
        st.markdown(live_lines(live, language))
    if st.button(label("chat_stop", language), icon=":material/stop_circle:", key="summary-stop"):
        app.cancel(run_id, session().owner)


def _end(page: Page, run_id: str, answer: Answer | None) -> None:
    """Redraw the page with the current summary; the reason for a missing one becomes a notice."""
    session().live.pop(run_id, None)
    st.session_state.pop(_key(page), None)
    if answer is not None and answer.notice and answer.outcome != "answered":
        session().notes.append(answer.notice)
    st.rerun()


def _key(page: Page) -> str:
    return f"summary-run-{page.url_hash}"
