"""The turns of a conversation: asked, followed while they run, drawn when they have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.types import Answer, Outcome, RunMode
from rag.ui.escape import escape, escape_line
from rag.ui.filters import search_options
from rag.ui.live import LiveRun
from rag.ui.missing import draw_missing
from rag.ui.navigation import go
from rag.ui.render import answer_markdown
from rag.ui.session import Turn, session, set_param
from rag.ui.sources import anchor_of, draw_sources
from rag.ui.strings import Language, label
from rag.ui.trace import draw_live_trace, draw_trace
from rag.ui.why import draw_why

if TYPE_CHECKING:
    from rag.app import App

_POLL_SECONDS = 0.3
_KEPT_IN_ADDRESS = 12
_LONGEST_IN_ADDRESS = 500
_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "answered": ("green", "check_circle"),
    "caveat": ("orange", "info"),
    "not_in_pages": ("gray", "search_off"),
    "failed": ("red", "error"),
}


def ask(app: App, library: str, question: str, mode: RunMode | None = None) -> None:
    """Start a run for `question` and draw the page again."""
    start(app, library, question, mode)
    st.rerun()


def start(app: App, library: str, question: str, mode: RunMode | None = None) -> None:
    """Start a run for `question`; what was said before goes along."""
    state = session()
    state.mode = mode or state.mode
    history = [(turn.question, turn.answer.text) for turn in state.turns if turn.answer]
    run_id = app.ask(question, mode=state.mode, library=library, history=history, chat=state.chat, **search_options())
    state.turns.append(Turn(question, run_id, scope=state.scope))
    _keep_in_address()


def clear() -> None:
    """Begin anew. A run that still goes on ends by itself; nobody looks at it any more."""
    session().turns = []
    _keep_in_address()
    st.rerun()


def restore_turns(app: App) -> None:
    """After a reload: bring back the runs that the address names, running or ended."""
    state = session()
    if state.restored or state.turns:
        _keep_in_address()
        return
    state.restored = True
    for run_id in st.query_params.get_all("run")[-_KEPT_IN_ADDRESS:]:
        try:
            answer = app.answer(run_id)
        except RagError as error:
            state.notes.append(say(error.notice, state.language))
            continue
        question = answer.question if answer else st.query_params.get("q", "")
        state.turns.append(Turn(question, run_id, answer))
    _keep_in_address()


def _keep_in_address() -> None:
    """The runs, and the question of the one that still goes on, so that a reload finds them again."""
    state = session()
    set_param("run", [turn.run_id for turn in state.turns[-_KEPT_IN_ADDRESS:]])
    set_param("q", state.running.question[:_LONGEST_IN_ADDRESS] if state.running else "")


def draw_turn(app: App, library: str, turn: Turn, language: Language) -> None:
    """A question and its answer, or the run that is writing it."""
    with st.container(key=f"question-{turn.run_id}"):
        st.markdown(escape(turn.question))
    if not _ended(app, turn):
        st.fragment(_draw_running, run_every=_POLL_SECONDS)(app, turn, language)
    elif turn.answer is not None:
        _draw_answer(app, library, turn, turn.answer, language)


def _ended(app: App, turn: Turn) -> bool:
    """Take in what happened since the last look; whether the answer is there."""
    if turn.answer is None:
        live = turn.live = turn.live or LiveRun()
        live.absorb(app.events(turn.run_id, since=live.next_seq))
        turn.answer = live.answer
    return turn.answer is not None


def _draw_running(app: App, turn: Turn, language: Language) -> None:
    if _ended(app, turn) or turn.live is None:
        st.rerun()
    live = turn.live
    draw_live_trace(live, language, key=turn.run_id)
    if live.text:
        with st.container(key=f"answer-{turn.run_id}"):
            st.markdown(answer_markdown(live.text, pending=True), anchors=False)
    st.button(
        label("chat_stopping" if turn.stopping else "chat_stop", language),
        icon=":material/stop_circle:",
        key=f"stop-{turn.run_id}",
        disabled=turn.stopping,
        on_click=_stop,
        args=(app, turn),
    )


def _stop(app: App, turn: Turn) -> None:
    turn.stopping = True
    app.cancel(turn.run_id)


def _draw_answer(app: App, library: str, turn: Turn, answer: Answer, language: Language) -> None:
    color, icon = _OUTCOMES[answer.outcome]
    st.badge(label(f"outcome_{answer.outcome}", language), icon=f":material/{icon}:", color=color)  # type: ignore[arg-type]
    if answer.notice:
        st.caption(escape_line(say(answer.notice, language)))
    if answer.text.strip():
        with st.container(key=f"answer-{turn.run_id}"):
            st.markdown(_answer_markdown(answer, turn.run_id), anchors=False)
    draw_sources(app, library, answer, turn.run_id, language)
    if answer.outcome in ("not_in_pages", "caveat"):
        _draw_missing(app, library, turn, answer, language)
    draw_why(answer, language, key=turn.run_id)
    draw_trace(answer.steps, answer.model_calls, language, key=turn.run_id)
    if answer.reasoner == "extractive" and answer.citations and turn is session().turns[-1]:
        _draw_honest_line(language)


def _draw_missing(app: App, library: str, turn: Turn, answer: Answer, language: Language) -> None:
    """The nearest passages, what was searched and, under the newest answer, ways to go on."""
    newest = turn is session().turns[-1]
    wish = draw_missing(app, library, turn, answer, language, offer=newest)
    if wish == "deep":
        ask(app, library, turn.question, "deep")
    elif wish == "unfiltered":
        session().scope = session().scope.unconfined()
        ask(app, library, turn.question)


def _answer_markdown(answer: Answer, run_id: str) -> str:
    urls = {citation.url for citation in answer.citations} | {passage.url for passage in answer.passages}
    marks = {citation.n for citation in answer.citations}
    return answer_markdown(answer.text, urls=urls, marks=marks, anchor=anchor_of(run_id))


def _draw_honest_line(language: Language) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="honest-line"):
        st.caption(label("chat_extractive", language), width="content")
        if st.button(label("chat_connect", language), type="tertiary", key="connect"):
            go("settings")
