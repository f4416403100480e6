"""The turns of a conversation: followed while they run, drawn when they have ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.types import Answer, Outcome
from rag.ui.answers import answer_of, pages_now
from rag.ui.asking import ask, await_suggestions
from rag.ui.checked import doubtful, draw_checked
from rag.ui.escape import escape, escape_line
from rag.ui.live import LiveRun
from rag.ui.missing import draw_missing
from rag.ui.navigation import go
from rag.ui.render import answer_markdown
from rag.ui.scope import Scope
from rag.ui.scripts import SHOW, run_script
from rag.ui.session import session
from rag.ui.sources import anchor_of, draw_sources
from rag.ui.strings import Language, label
from rag.ui.trace import draw_live_trace, draw_trace
from rag.ui.turn_actions import draw_actions, draw_again, draw_suggestions
from rag.ui.understood import draw_understood, understood_line
from rag.ui.why import draw_why

if TYPE_CHECKING:
    from rag.agent.conversing.conversations import TurnView
    from rag.app import App

_POLL_SECONDS, _SLOWEST_POLL = 0.3, 1.5
_SHARE = 0.02  # seconds between two looks, for each question that is being answered: looks would fill a core else
_STORED_SECONDS = 5.0
_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "answered": ("green", "check_circle"),
    "caveat": ("orange", "info"),
    "not_in_pages": ("gray", "search_off"),
    "failed": ("red", "error"),
    "conversation": ("blue", "forum"),
}
_UNFINISHED = frozenset({"run_stopped", "turn_interrupted", "run_too_long", "run_failed"})


def draw_turns(app: App, library: str, turns: Sequence[TurnView], language: Language) -> None:
    """All of them, the newest with what can be done next."""
    for turn in turns:
        with st.container(key=f"question-{turn.id}"):
            st.markdown(escape(turn.question))
        _come_into_view(turn)
        answer = answer_of(app, library, turn)
        if answer is None:
            every = min(_SLOWEST_POLL, max(_POLL_SECONDS, _SHARE * app.going_on()))
            st.fragment(_draw_running, run_every=every)(app, turn, language)
        else:
            _draw_answer(app, library, turn, answer, language, newest=turn is turns[-1], first=turn is turns[0])


def _come_into_view(turn: TurnView) -> None:
    """Scroll to a question that was just asked."""
    if session().asked == turn.id:
        session().asked = ""
        with st.container(key="come-into-view"):
            run_script(SHOW, f".st-key-question-{turn.id}")


def _draw_running(app: App, turn: TurnView, language: Language) -> None:
    live = session().live.setdefault(turn.id, LiveRun())
    try:
        live.absorb(app.events(turn.run_id, since=live.next_seq))
    except RagError:
        _draw_elsewhere(app, turn, language)
        return
    if live.answer is not None:
        _end(app, turn)
    if live.standalone:
        st.caption(understood_line(live.standalone, language))
    draw_live_trace(live, language, key=turn.id)
    if live.text:
        with st.container(key=f"answer-{turn.id}"):
            st.markdown(answer_markdown(live.text, pending=True), anchors=False)
    stopping = turn.id in session().stopping
    st.button(
        label("chat_stopping" if stopping else "chat_stop", language),
        icon=":material/stop_circle:",
        key=f"stop-{turn.id}",
        disabled=stopping,
        on_click=_stop,
        args=(app, turn),
    )


def _end(app: App, turn: TurnView) -> None:
    """The answer is there; it is stored a moment later, and only then can the next question be asked."""
    with suppress(RagError, TimeoutError):
        app.wait(turn.run_id, _STORED_SECONDS)
    session().live.pop(turn.id, None)
    session().stopping.discard(turn.id)
    await_suggestions(turn.id)
    st.rerun()


def _draw_elsewhere(app: App, turn: TurnView, language: Language) -> None:
    """The run has not begun yet, or it is another server's: what that one stores is awaited."""
    with suppress(RagError):
        if app.conversations.turn(turn.id, session().owner).state == "running":
            st.markdown(f":primary[:material/progress_activity:] {label('trace_starting', language)}…")
            return
    st.rerun()


def _stop(app: App, turn: TurnView) -> None:
    session().stopping.add(turn.id)
    with suppress(RagError):
        app.cancel(turn.run_id)


def _draw_answer(
    app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, newest: bool, first: bool
) -> None:
    draw_understood(app, library, turn, answer, language)
    _draw_outcome(turn, answer, language)
    if answer.text.strip():
        draw_checked(answer, anchor_of(turn.id), language)
        with st.container(key=f"answer-{turn.id}"):
            st.markdown(_answer_markdown(answer, turn.id, language), anchors=False)
    draw_sources(app, library, answer, turn.id, language, states=pages_now(app, library, turn))
    if answer.outcome in ("not_in_pages", "caveat") and turn.state != "interrupted":
        _draw_missing(app, library, turn, answer, language, newest=newest)
    owner = session().owner
    recall = partial(app.conversations.searches, turn.id, owner) if turn.searches else None
    draw_why(answer, language, key=turn.id, recall=recall)
    draw_trace(answer.steps, language, key=turn.id)
    draw_actions(app, library, turn, answer, language, first=first)
    if newest:
        if _unfinished(turn, answer):
            draw_again(app, library, turn, language)
        else:
            draw_suggestions(app, library, turn, language)
        if answer.reasoner == "extractive" and answer.citations:
            _draw_honest_line(language)


def _unfinished(turn: TurnView, answer: Answer) -> bool:
    code = answer.notice.code if answer.notice else ""
    return turn.state == "interrupted" or answer.outcome == "failed" or code in _UNFINISHED


def _draw_outcome(turn: TurnView, answer: Answer, language: Language) -> None:
    code = answer.notice.code if answer.notice else ""
    if turn.state == "interrupted" or code == "run_stopped":
        st.badge(label("outcome_unfinished", language), icon=":material/pause_circle:", color="orange")
    else:
        color, icon = _OUTCOMES[answer.outcome]
        st.badge(label(f"outcome_{answer.outcome}", language), icon=f":material/{icon}:", color=color)  # type: ignore[arg-type]
    if answer.notice:
        st.caption(escape_line(say(answer.notice, language)))


def _draw_missing(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, newest: bool) -> None:
    """The nearest passages, what was searched and, under the newest answer, ways to go on."""
    scope = Scope.revived(turn.settings.get("scope", {}))
    wish = draw_missing(app, library, turn.id, scope, answer, language, offer=newest)
    if wish == "deep":
        ask(app, library, turn.question, "deep", standalone=answer.standalone)
    elif wish == "unfiltered":
        session().scope = session().scope.unconfined()
        ask(app, library, turn.question, standalone=answer.standalone)


def _answer_markdown(answer: Answer, turn_id: str, language: Language) -> str:
    urls = {citation.url for citation in answer.citations} | {passage.url for passage in answer.passages}
    marks = {citation.n for citation in answer.citations}
    doubts = doubtful(answer, language)
    return answer_markdown(answer.text, urls=urls, marks=marks, anchor=anchor_of(turn_id), doubtful=doubts)


def _draw_honest_line(language: Language) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="honest-line"):
        st.caption(label("chat_extractive", language), width="content")
        if st.button(label("chat_connect", language), type="tertiary", key="connect"):
            go("settings")
