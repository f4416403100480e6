"""The turns of a conversation: followed while they run, drawn when they have ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.ui.chat.answer import draw_answer
from rag.ui.chat.followup import followup_line
from rag.ui.chat.question import draw_question
from rag.ui.chat.remembered import draw_kept
from rag.ui.chat.research import draw_live_plan, draw_wait
from rag.ui.chat.tree import draw_live_tree
from rag.ui.chat.way import draw_way
from rag.ui.kit.answers import answer_of
from rag.ui.kit.live import LiveRun
from rag.ui.kit.render import answer_markdown
from rag.ui.kit.scripts import tell_browser
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label
from rag.ui.kit.trace import doing_line, live_lines

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.store.sql.conversation_table import Conversation

_POLL_SECONDS, _SLOWEST_POLL = 0.2, 1.5
_SHARE = 0.02  # seconds between two looks, for each question that is being answered: looks would fill a core else
_UNTIL_CLICKED = 0.3  # seconds in which a click takes effect while an answer is followed
_STORED_SECONDS = 5.0
_AT_ONCE = 1.0  # seconds in which a quoted answer is there; it is drawn as it comes, without another look
_ELSEWHERE_SECONDS = 2.0


def draw_turns(app: App, library: str, turns: Sequence[TurnView], language: Language) -> TurnView:
    """All of them, the newest with what can be done next; a question that was just asked stands there first.

    Returns the newest as it was drawn.
    """
    *before, newest = [(turn, st.container()) for turn in turns]
    branches: dict[str, list[Conversation]] = {}
    for one in app.conversations.branches(turns[0].conversation_id, session().owner):
        branches.setdefault(one.branch_of, []).append(one)

    def draw(turn: TurnView) -> None:
        first = turn.id == turns[0].id
        draw_question(app, library, turn, language, first=first, branches=branches.get(turn.id, ()))

    with newest[1]:
        draw(newest[0])
    for turn, place in before:
        with place:
            draw(turn)
            _draw_turn(app, library, turn, language, turns)
    with newest[1]:
        turn = _followed(app, newest[0], language)
        _draw_turn(app, library, turn, language, [*turns[:-1], turn], newest=True)
    return turn


def _draw_turn(
    app: App, library: str, turn: TurnView, language: Language, turns: Sequence[TurnView], *, newest: bool = False
) -> None:
    answer = answer_of(app, library, turn)
    if answer is None:
        st.fragment(_draw_running, run_every=_pause(app))(app, library, turn, language, count())
    else:
        draw_kept(app, turn, language)
        draw_answer(app, library, turn, answer, language, turns, newest=newest)


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
        doing.markdown(doing_line(live, language))
        with st.container(key=f"answer-live-{turn.id}"):
            written = st.empty()
    with suppress(RagError, TimeoutError):
        while live.answer is None and (
            events := app.events(turn.run_id, live.next_seq, until - time.monotonic(), state.owner)
        ):
            live.absorb(events)
            if live.text:
                doing.empty()
                written.markdown(answer_markdown(live.text, pending=True), anchors=False)
        if live.answer is not None:
            app.wait(turn.run_id, _STORED_SECONDS, state.owner)
            turn = app.conversations.turn(turn.id, state.owner)
    place.empty()
    return turn


def _draw_running(app: App, library: str, turn: TurnView, language: Language, looks: Iterator[int]) -> None:
    """Draw a run as it is. From the second of its `looks` on, which holds up nothing else, follow it to its end."""
    live, follows = session().live.setdefault(turn.id, LiveRun()), next(looks) > 0
    above = st.container()
    with st.container(key=f"steps-{turn.id}"):
        steps = st.empty()
    with st.container(key=f"answer-{turn.id}"):
        text = st.empty()
    shown = followed_up = ""
    while True:
        try:
            wait = _UNTIL_CLICKED if follows else 0.0
            live.absorb(app.events(turn.run_id, live.next_seq, wait, session().owner))
        except RagError:
            _draw_elsewhere(app, turn, language)
            return
        if live.answer is not None:
            _end(app, turn)
        if live.text != shown:
            shown = live.text
            text.markdown(answer_markdown(shown, pending=True), anchors=False)
        if live.route or live.plan or live.tree:
            with above:
                _draw_choices(app, library, turn, live, language)
            if not (live.plan or live.tree):
                steps.markdown(live_lines(live, language))
            return
        if not followed_up:
            followed_up = followup_line(turn.question, live.standalone, live.steps, language)
            above.caption(followed_up) if followed_up else None
        steps.markdown(live_lines(live, language))  # also where nothing changed: here a click ends this run
        if not follows:
            return
        time.sleep(_pause(app))


def _pause(app: App) -> float:
    """Return the seconds between two looks."""
    return min(_SLOWEST_POLL, max(_POLL_SECONDS, _SHARE * app.going_on()))


def _draw_choices(app: App, library: str, turn: TurnView, live: LiveRun, language: Language) -> None:
    """Draw what can be changed while it runs: such widgets are drawn once a look."""
    if live.route:
        draw_way(app, library, turn, live.route, language)
    if line := followup_line(turn.question, live.standalone, live.steps, language):
        st.caption(line)
    if live.plan:
        draw_live_plan(app, turn, live, language)
    elif live.tree:
        draw_live_tree(app, turn, live, language)


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
        app.wait(turn.run_id, _STORED_SECONDS, session().owner)
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
        app.cancel(turn.run_id, session().owner)
