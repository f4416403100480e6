"""The turns of a conversation: followed while they run, drawn when they have ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.retrieval.ledger import LEG
from rag.types import Answer, Outcome
from rag.ui.answers import answer_of, pages_now
from rag.ui.asking import ask
from rag.ui.checked import doubtful, draw_checked
from rag.ui.escape import escape, escape_line
from rag.ui.live import LiveRun
from rag.ui.missing import draw_missing
from rag.ui.navigation import go
from rag.ui.remembered import draw_kept
from rag.ui.render import answer_markdown
from rag.ui.research import draw_go_on, draw_live_plan, draw_report, draw_wait
from rag.ui.scope import Scope
from rag.ui.scripts import tell_browser
from rag.ui.session import session
from rag.ui.sources import anchor_of, draw_sources
from rag.ui.strings import LANGUAGES, Language, label
from rag.ui.tools import draw_tools
from rag.ui.trace import doing_line, draw_live_trace, draw_trace
from rag.ui.tree import draw_live_tree, draw_tree
from rag.ui.tree_branch import draw_origin
from rag.ui.turn_actions import draw_actions, draw_again, draw_suggestions
from rag.ui.understood import draw_understood, understood_line
from rag.ui.way import draw_way
from rag.ui.why import draw_why

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_POLL_SECONDS, _SLOWEST_POLL = 0.3, 1.5
_SHARE = 0.02  # seconds between two looks, for each question that is being answered: looks would fill a core else
_STORED_SECONDS = 5.0
_AT_ONCE = 1.0  # seconds in which a quoted answer is there; it is drawn as it comes, without another look
_ELSEWHERE_SECONDS = 2.0
_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "answered": ("green", "check_circle"),
    "caveat": ("orange", "info"),
    "not_in_pages": ("gray", "search_off"),
    "failed": ("red", "error"),
    "conversation": ("blue", "forum"),
}
_MODEL_FAILED = "quoted_model_failed"
_CUT_OFF = frozenset({"run_stopped", "turn_interrupted", "run_too_long", "budget_seconds"})


def draw_turns(app: App, library: str, turns: Sequence[TurnView], language: Language) -> TurnView:
    """All of them, the newest with what can be done next; a question that was just asked stands there first.

    Returns the newest as it was drawn.
    """
    *before, newest = [(turn, st.container()) for turn in turns]
    with newest[1]:
        _draw_question(newest[0])
    for turn, place in before:
        with place:
            _draw_question(turn)
            _draw_turn(app, library, turn, language, turns)
    with newest[1]:
        turn = _followed(app, newest[0], language)
        _draw_turn(app, library, turn, language, [*turns[:-1], turn], newest=True)
    return turn


def _draw_question(turn: TurnView) -> None:
    with st.container(key=f"question-{turn.id}"):
        st.markdown(escape(turn.question))


def _draw_turn(
    app: App, library: str, turn: TurnView, language: Language, turns: Sequence[TurnView], *, newest: bool = False
) -> None:
    answer = answer_of(app, library, turn)
    if answer is None:
        every = min(_SLOWEST_POLL, max(_POLL_SECONDS, _SHARE * app.going_on()))
        st.fragment(_draw_running, run_every=every)(app, library, turn, language)
    else:
        draw_kept(app, turn, language)
        _draw_answer(app, library, turn, answer, language, turns, newest=newest)


def show_place(conversation_id: str, turns: Sequence[TurnView]) -> None:
    """Scroll to the question that was just asked; in a conversation that was just opened, to its end."""
    state, newest = session(), turns[-1].id
    show = f"st-key-question-{newest}" if state.asked == newest else "end" if state.shown != conversation_id else ""
    state.shown = conversation_id
    tell_browser("place", show=show)


def watch(app: App, seen: TurnView) -> None:
    """Draw the page again once the newest turn is not the one `seen`: another tab asked, questions to ask next came."""
    st.fragment(_look, run_every=_ELSEWHERE_SECONDS)(app, seen)


def _look(app: App, seen: TurnView) -> None:
    newest = app.conversations.newest(seen.conversation_id, session().owner)
    if newest is None or (newest.id, newest.state, newest.suggestions) != (seen.id, seen.state, seen.suggestions):
        session().by_itself = True
        st.rerun()


def _followed(app: App, turn: TurnView, language: Language) -> TurnView:
    """A turn that was just asked here, drawn as its answer comes; as it is stored then, if it ends at once."""
    state, until = session(), time.monotonic() + _AT_ONCE
    if state.asked != turn.id:
        return turn
    state.asked = ""
    live, place = state.live.setdefault(turn.id, LiveRun()), st.empty()
    with place.container():
        doing = st.empty()
        with st.container(key=f"answer-live-{turn.id}"):
            written = st.empty()
    with suppress(RagError, TimeoutError):
        while live.answer is None and (events := app.events(turn.run_id, live.next_seq, until - time.monotonic())):
            live.absorb(events)
            doing.markdown(doing_line(live, language))
            if live.text:
                written.markdown(answer_markdown(live.text, pending=True), anchors=False)
        if live.answer is not None:
            app.wait(turn.run_id, _STORED_SECONDS)
            turn = app.conversations.turn(turn.id, state.owner)
    place.empty()
    return turn


def _draw_running(app: App, library: str, turn: TurnView, language: Language) -> None:
    live = session().live.setdefault(turn.id, LiveRun())
    try:
        live.absorb(app.events(turn.run_id, since=live.next_seq))
    except RagError:
        _draw_elsewhere(app, turn, language)
        return
    if live.answer is not None:
        _end(app, turn)
    if live.route:
        draw_way(app, library, turn, live.route, language)
    if line := understood_line(turn.question, live.standalone, live.steps, language):
        st.caption(line)
    if live.plan:
        draw_live_plan(app, turn, live, language)
    elif live.tree:
        draw_live_tree(app, turn, live, language)
    else:
        draw_live_trace(live, language, key=turn.id)
    if live.text:
        with st.container(key=f"answer-{turn.id}"):
            st.markdown(answer_markdown(live.text, pending=True), anchors=False)


def draw_stop(app: App, turn: TurnView, language: Language) -> None:
    """The button that ends the answer that is being written."""
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
    session().by_itself = True
    st.rerun()


def _draw_elsewhere(app: App, turn: TurnView, language: Language) -> None:
    """The run has not begun yet, or it is another server's: what that one stores is awaited."""
    with suppress(RagError):
        now = app.conversations.turn(turn.id, session().owner)
        if now.waits:
            draw_wait(app, now, now.waits[0], language)
            return
        if now.state == "running":
            st.markdown(f":primary[:material/progress_activity:] {label('trace_starting', language)}…")
            return
    st.rerun()


def _stop(app: App, turn: TurnView) -> None:
    session().stopping.add(turn.id)
    with suppress(RagError):
        app.cancel(turn.run_id)


def _draw_answer(
    app: App,
    library: str,
    turn: TurnView,
    answer: Answer,
    language: Language,
    turns: Sequence[TurnView],
    *,
    newest: bool,
) -> None:
    if turn.route:
        draw_way(app, library, turn, turn.route, language)
    draw_understood(app, library, turn, answer, language)
    draw_origin(answer, language)
    _draw_outcome(turn, answer, language)
    cut_off = _cut_off(turn, answer)
    if answer.text.strip():
        draw_checked(answer, anchor_of(turn.id), language)
        with st.container(key=f"answer-{turn.id}"):
            st.markdown(_answer_markdown(answer, turn.id, language), anchors=False)
    draw_tools(answer, language, key=turn.id)
    draw_sources(app, library, answer, turn.id, language, states=pages_now(app, library, turn))
    if answer.outcome in ("not_in_pages", "caveat") and not cut_off:
        _draw_missing(app, library, turn, answer, language, newest=newest)
    owner = session().owner
    recall = partial(app.conversations.searches, turn.id, owner) if turn.searches else None
    if "tree" in answer.trail:
        draw_tree(app, library, turn, answer, turns, language)
    elif answer.trail:
        draw_report(app, library, answer, language, key=turn.id)
    draw_why(answer, language, key=turn.id, recall=recall)
    draw_trace(answer, turn.settings, language, key=turn.id)
    draw_actions(app, library, turn, answer, language, first=turn.id == turns[0].id)
    if newest:
        if cut_off or answer.outcome == "failed" or _code(answer) == _MODEL_FAILED:
            draw_again(app, library, turn, language)
            if turn.can_go_on:
                draw_go_on(app, turn, language)
        else:
            draw_suggestions(app, library, turn, language)
        if answer.reasoner == "extractive" and answer.citations:
            _draw_honest_line(language)


def _cut_off(turn: TurnView, answer: Answer) -> bool:
    """Whether it ended before it was written and checked: then no badge says what it is worth."""
    return turn.state == "interrupted" or _code(answer) in _CUT_OFF


def _code(answer: Answer) -> str:
    return answer.notice.code if answer.notice else ""


def _draw_outcome(turn: TurnView, answer: Answer, language: Language) -> None:
    if answer.mode == "save" and answer.outcome == "conversation":
        return
    if _cut_off(turn, answer):
        st.caption(f":material/pause_circle: {label('outcome_unfinished', language)}")
    else:
        color, icon = _OUTCOMES[answer.outcome]
        told = answer.tools and not answer.citations and answer.outcome == "answered"
        worth = "told" if told else "quoted" if answer.quoted and answer.outcome == "answered" else answer.outcome
        st.badge(label(f"outcome_{worth}", language), icon=f":material/{icon}:", color=color)  # type: ignore[arg-type]
    if answer.notice and answer.text not in (say(answer.notice, one) for one in LANGUAGES):
        st.caption(escape_line(say(answer.notice, language)))
    if answer.passages and all(LEG in one.ranks for one in answer.passages):
        st.caption(f":material/inventory_2: {label('research_in_hand', language)}")
    code = _code(answer)
    if (code == _MODEL_FAILED or code.startswith("chat_")) and st.button(
        label("chat_check", language), icon=":material/tune:", type="tertiary", key=f"model-{turn.id}"
    ):
        go("settings")


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
