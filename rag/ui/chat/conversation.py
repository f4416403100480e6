"""A conversation: its header with usage and exports, its turns and running answers, and the view of a shared link."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.conversations.export import export, file_name
from rag.errors import RagError
from rag.locales import Language, label, say
from rag.ui.chat.answer import draw_answer, draw_evidence, draw_text
from rag.ui.chat.asking import branch
from rag.ui.chat.conversations import open_conversation
from rag.ui.chat.filters import draw_page_picker_button
from rag.ui.chat.research import draw_live_plan, draw_wait
from rag.ui.chat.route import draw_route
from rag.ui.chat.tree import draw_live_tree
from rag.ui.chat.turn_actions import followup_line
from rag.ui.kit.actions import attempt, attempt_and_rerun
from rag.ui.kit.browser import send_to_browser
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.markdown import answer_markdown, escape, escape_line, shorten
from rag.ui.kit.parts import draw_button
from rag.ui.kit.runs import current_line, live_lines, usage_parts
from rag.ui.kit.session import person_id, session
from rag.ui.kit.sources import answer_of

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.store.sql.conversation_table import Conversation

_POLL_SECONDS, _SLOWEST_POLL = 0.2, 1.5
_POLL_SECONDS_PER_RUN = 0.02  # seconds between polls per running question, so that polling does not saturate a core
_CLICK_SECONDS = 0.3  # seconds until a click takes effect while an answer is followed
_STORED_SECONDS = 5.0
_QUICK_SECONDS = 1.0  # seconds to wait for quick, quoted answers, which then need no poll
_WATCH_SECONDS = 2.0
_LONGEST_QUESTION, _LONGEST_TITLE = 10_000, 40
_EDITING, _BRANCH = "question-edited", "call_split"
_MENU, _LONGEST = "talk-menu", 60
_KINDS = {"md": "markdown", "html": "html", "docx": "description", "json": "data_object"}
LINK: Final = "shared"
"""The query parameter of a shared link."""


def draw_head(
    app: App, library: str, conversation: Conversation, turns: Sequence[TurnView], language: Language
) -> None:
    """Draw title and usage on the left, the page picker's button and the menu on the right."""
    usage = usage_parts(app.conversations.usage(conversation.id, session().owner), language)
    with st.container(horizontal=True, vertical_alignment="center", key="talk-head", gap="small"):
        with st.container(key="talk-title", gap=None):
            st.markdown(f"# {escape_line(conversation.title)}", anchors=False)
            if usage:
                st.caption(label("usage_whole", language, usage=" · ".join(usage)))
            if conversation.branch_of:
                with suppress(RagError):  # the original may be deleted
                    turn = app.conversations.turn(conversation.branch_of, session().owner)
                    source = app.conversations.conversation(turn.conversation_id, session().owner)
                    text = label("talk_branch_of", language, title=escape_line(source.title))
                    draw_button(text, _BRANCH, "talk-origin", open_conversation, app, source.id, type="tertiary")
        draw_page_picker_button(app, library, language)
        _draw_menu(app, conversation, turns, language)
    if pinned := [turn for turn in turns if turn.pinned]:
        links = (f"[{escape_line(shorten(turn.question, _LONGEST))}](#{_pin_of(turn.id)})" for turn in pinned)
        with st.container(key="talk-pinned"):
            st.markdown(f":material/keep: :gray[{label('talk_pinned', language)}] {' · '.join(links)}")


def _draw_menu(app: App, conversation: Conversation, turns: Sequence[TurnView], language: Language) -> None:
    owner = session().owner
    name, icon = ("share", "share") if owner else ("take", "download")
    menu = st.popover(
        label(f"talk_{name}", language), icon=f":material/{icon}:", type="tertiary", key=_MENU, on_change="rerun"
    )
    with menu, st.container(key="talk-actions", gap="small"):
        if not menu.open:
            return
        st.caption(label("talk_export", language))
        with st.container(horizontal=True, gap="small", key="talk-files"):
            for kind, icon in _KINDS.items():
                content, media = export(conversation, turns, kind, language)
                text, name = label(f"talk_as_{kind}", language), file_name(conversation, kind)
                key, icon = f"talk-export-{kind}", f":material/{icon}:"
                st.download_button(text, content, name, media, key, icon=icon, on_click="ignore")
        if not owner:  # without sign-in, everyone sees all conversations
            return
        st.caption(label("talk_link_hint" if conversation.link else "talk_link_none", language))
        if conversation.link:
            st.code(f"{(st.context.url or '').partition('?')[0]}?{LINK}={conversation.link}", language=None)
        name, act = ("unlink", app.conversations.unshare) if conversation.link else ("link", app.conversations.share)
        icon = "link_off" if conversation.link else "link"
        if draw_button(label(f"talk_{name}", language), icon, f"talk-{name}"):
            attempt_and_rerun(lambda: act(conversation.id, owner))


def draw_turns(app: App, library: str, turns: Sequence[TurnView], language: Language) -> TurnView:
    """Draw all turns, sending the newest question to the browser first; return the newest turn as drawn."""
    *earlier, newest = [(turn, st.container()) for turn in turns]
    branches: dict[str, list[Conversation]] = {}
    for item in app.conversations.branches(turns[0].conversation_id, session().owner):
        branches.setdefault(item.branch_of, []).append(item)

    def draw(turn: TurnView) -> None:
        first = turn.id == turns[0].id
        _draw_question(app, library, turn, language, first=first, branches=branches.get(turn.id, ()))

    with newest[1]:
        draw(newest[0])
    for turn, place in earlier:
        with place:
            draw(turn)
            _draw_turn(app, library, turn, language, turns)
    with newest[1]:
        turn = _follow_briefly(app, newest[0], language)
        _draw_turn(app, library, turn, language, [*turns[:-1], turn], newest=True)
    return turn


def _draw_turn(
    app: App, library: str, turn: TurnView, language: Language, turns: Sequence[TurnView], *, newest: bool = False
) -> None:
    answer = answer_of(app, library, turn)
    if answer is None:
        st.fragment(_draw_running, run_every=_poll_interval(app))(app, library, turn, language, count())
    else:
        _draw_saved_note(app, turn, language)
        draw_answer(app, library, turn, answer, language, turns, newest=newest)


def _draw_saved_note(app: App, turn: TurnView, language: Language) -> None:
    """Draw the note that a message saved to memory, with Undo; nothing for other messages."""
    note_id = turn.settings.get("remembered")
    if not note_id:
        return
    note = next((one for one in app.memory.notes(person_id()) if one.id == note_id), None)
    with st.container(horizontal=True, vertical_alignment="center", key=f"remembered-{turn.id}", gap="small"):
        text = label("remembered_kept", language, note=escape_line(note.text)) if note else ""
        st.caption(f":material/bookmark: {text or label('remembered_gone', language)}", width="content")
        if note:
            undo, key = label("remembered_undo", language), f"remembered-undo-{turn.id}"
            forget = partial(app.memory.forget, person_id(), note.id)
            draw_button(undo, "", key, attempt, forget, type="tertiary")


def scroll_to_newest(conversation_id: str, turns: Sequence[TurnView]) -> None:
    """Scroll to a question that was just asked, or to the end of a conversation that was just opened."""
    state, newest = session(), turns[-1].id
    opened = "end" if state.shown_conversation != conversation_id else ""
    scroll_to = f"st-key-question-{newest}" if state.new_turn_id == newest else opened
    state.shown_conversation = conversation_id
    send_to_browser("place", scroll_to=scroll_to)


@st.fragment(run_every=_WATCH_SECONDS)
def watch_newest(app: App, seen: TurnView) -> None:
    """Redraw the page when the newest turn differs from `seen`: another tab asked, or follow-up questions arrived."""
    newest = app.conversations.last_turn(seen.conversation_id, session().owner)
    if newest is None or (newest.id, newest.state, newest.suggestions) != (seen.id, seen.state, seen.suggestions):
        session().is_auto_redraw = True
        st.rerun()


def _follow_briefly(app: App, turn: TurnView, language: Language) -> TurnView:
    """Follow a turn just asked in this tab for up to _QUICK_SECONDS; if it ends by then, return it as stored."""
    state, until = session(), time.monotonic() + _QUICK_SECONDS
    if state.new_turn_id != turn.id:
        return turn
    state.new_turn_id = ""
    live, place = state.live_runs.setdefault(turn.id, LiveRun()), st.empty()
    with place.container():
        status = st.empty()
        status.markdown(current_line(live, language))
        with st.container(key=f"answer-live-{turn.id}"):
            output = st.empty()
    with suppress(RagError, TimeoutError):
        while live.answer is None and (
            events := app.events(turn.run_id, live.next_seq, until - time.monotonic(), state.owner)
        ):
            live.absorb(events)
            if live.text:
                status.empty()
                output.markdown(answer_markdown(live.text, pending=True), anchors=False)
        if live.answer is not None:
            app.wait(turn.run_id, _STORED_SECONDS, state.owner)
            turn = app.conversations.turn(turn.id, state.owner)
    place.empty()
    return turn


def _draw_running(app: App, library: str, turn: TurnView, language: Language, polls: Iterator[int]) -> None:
    """Draw the state of a run. From the second of `polls` on, which blocks nothing else, follow it to its end."""
    live, follows = session().live_runs.setdefault(turn.id, LiveRun()), next(polls) > 0
    above = st.container()
    with st.container(key=f"steps-{turn.id}"):
        steps = st.empty()
    with st.container(key=f"answer-{turn.id}"):
        text = st.empty()
    last_text = followup = ""
    while True:
        try:
            wait = _CLICK_SECONDS if follows else 0.0
            live.absorb(app.events(turn.run_id, live.next_seq, wait, session().owner))
        except RagError:
            _draw_remote_run(app, turn, language)
            return
        if live.answer is not None:
            _finish(app, turn)
        if live.text != last_text:
            last_text = live.text
            text.markdown(answer_markdown(last_text, pending=True), anchors=False)
        if live.route or live.plan or live.tree:
            with above:
                _draw_choices(app, library, turn, live, language)
            if not (live.plan or live.tree):
                steps.markdown(live_lines(live, language))
            return
        if not followup:
            followup = followup_line(turn.question, live.standalone, live.steps, language)
            above.caption(followup) if followup else None
        steps.markdown(live_lines(live, language))  # even if unchanged: a click can end this run here
        if not follows:
            return
        time.sleep(_poll_interval(app))


def _poll_interval(app: App) -> float:
    return min(_SLOWEST_POLL, max(_POLL_SECONDS, _POLL_SECONDS_PER_RUN * app.count_running()))


def _draw_choices(app: App, library: str, turn: TurnView, live: LiveRun, language: Language) -> None:
    """Draw the parts that the user can change during a run, once per poll."""
    if live.route:
        draw_route(app, library, turn, live.route, language)
    if line := followup_line(turn.question, live.standalone, live.steps, language):
        st.caption(line)
    if live.plan:
        draw_live_plan(app, turn, live, language)
    elif live.tree:
        draw_live_tree(app, turn, live, language)


def draw_stop(app: App, turn: TurnView, language: Language) -> None:
    """Draw the button that stops the running answer."""
    stopping = turn.id in session().stopping
    text = label("chat_stopping" if stopping else "chat_stop", language)
    draw_button(text, "stop_circle", f"stop-{turn.id}", _stop, app, turn, disabled=stopping)


def _finish(app: App, turn: TurnView) -> None:
    """Redraw once the finished answer is stored, since only then can the next question be asked."""
    with suppress(RagError, TimeoutError):
        app.wait(turn.run_id, _STORED_SECONDS, session().owner)
    session().live_runs.pop(turn.id, None)
    session().stopping.discard(turn.id)
    session().is_auto_redraw = True
    st.rerun()


def _draw_remote_run(app: App, turn: TurnView, language: Language) -> None:
    """Draw the stored state of a run that has not started yet or runs on another server."""
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


def _draw_question(
    app: App, library: str, turn: TurnView, language: Language, *, first: bool, branches: Sequence[Conversation] = ()
) -> None:
    """Draw the question and, below it, the `branches` from it. `first`: no question precedes it."""
    if st.session_state.get(_EDITING) == turn.id:
        _draw_edit_form(app, library, turn, language, first=first)
        return
    if turn.pinned:  # static markup, with an id of letters, digits and hyphens only
        st.html(f'<span class="place" id="{_pin_of(turn.id)}"></span>')
    with st.container(key=f"question-{turn.id}"):
        st.markdown(escape(turn.question))
    with st.container(horizontal=True, horizontal_alignment="right", key=f"asked-{turn.id}", gap="small"):
        for item in branches:
            title, key = escape_line(shorten(item.title, _LONGEST_TITLE)), f"to-branch-{item.id}"
            draw_button(title, _BRANCH, key, open_conversation, app, item.id, type="tertiary")
        draw_button(label("branch", language), "edit", f"branch-{turn.id}", _edit, turn.id, type="tertiary")


def _pin_of(turn_id: str) -> str:
    """Return the element id to which the link of a pinned answer leads."""
    return f"pinned-{turn_id}"


def _edit(turn_id: str) -> None:
    """In a callback, start editing; an empty id ends it."""
    st.session_state[_EDITING] = turn_id


def _draw_edit_form(app: App, library: str, turn: TurnView, language: Language, *, first: bool) -> None:
    with st.form(f"branch-form-{turn.id}", border=False):
        question = st.text_area(
            label("branch_question", language),
            value=turn.question,
            key=f"branch-question-{turn.id}",
            max_chars=_LONGEST_QUESTION,
            height="content",
            label_visibility="collapsed",
        )
        st.caption(label("branch_lead", language))
        with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            st.form_submit_button(
                label("branch_not", language), key=f"branch-not-{turn.id}", on_click=_edit, args=("",)
            )
            submitted = st.form_submit_button(label("branch_go", language), type="primary", key=f"branch-go-{turn.id}")
    if submitted and question and question.strip():
        _edit("")
        branch(app, library, turn.conversation_id, turn.id, question.strip(), first=first)


def draw_shared_conversation(app: App, link: str, language: Language) -> None:
    """Draw the conversation with this link, or a warning if there is none."""
    try:
        conversation, turns = app.conversations.find_by_link(link)
    except RagError as error:
        st.warning(escape_line(say(error.notice, language)), icon=":material/link_off:")
        return
    with st.container(key="talk-title", gap=None):
        st.markdown(f"# {escape_line(conversation.title)}", anchors=False)
        st.caption(f":material/visibility: {label('talk_shared', language)}")
    for turn in turns:
        with st.container(key=f"question-{turn.id}"):
            st.markdown(escape(turn.question))
        if (answer := answer_of(app, conversation.library, turn)) is not None:
            draw_text(turn, answer, language)
            draw_evidence(app, conversation.library, turn, answer, language)
