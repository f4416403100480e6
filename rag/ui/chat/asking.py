"""Asking a question with the choices of this tab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.conversations.conversations import title_of
from rag.errors import RagError
from rag.runs.run import Question
from rag.store.values import Filters
from rag.types import RunMode
from rag.ui.chat.filters import search_options
from rag.ui.kit.session import chat_in_use, chosen_options, person_id, session, set_conversation

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_NOT_COPIED = ("mode", "model", "strategy", "remembered")  # settings that are not copied from an earlier turn


def ask(app: App, library: str, question: str, mode: RunMode | None = None, **options: Any) -> None:
    """Start answering `question` and rerun the page; `options` are those of `start_answer`."""
    start_answer(app, library, question, mode, **options)
    st.rerun()


def start_answer(
    app: App,
    library: str,
    question: str,
    mode: RunMode | None = None,
    *,
    conversation: str | None = None,
    standalone: str = "",
    files: Sequence[tuple[str, bytes]] = (),
    **options: Any,
) -> bool:
    """Start answering `question` in the open conversation or in `conversation`; an empty id starts a new one.

    `standalone` is the meaning of a follow-up as corrected by the user. `mode`, by default that of the tab, and
    `options`, which are `RunOptions`, apply to this question only. `files` are attachments as (name, content). Return
    whether it started; an error becomes a notice.
    """
    state, search = session(), search_options()
    fields: dict[str, Any] = {name: search[name] for name in ("strategy", "weights") if name in search}
    fields |= {"web": "ask", "locale": state.language, "standalone": standalone, **options}
    libraries, filters = (library, *search.get("others", ())), search.get("filters") or Filters()
    request = Question(question, libraries, mode or state.mode, filters, replace(state.choices, **fields))
    settings: dict[str, Any] = {"scope": state.scope.to_json(), **chosen_options(state.choices)}  # without secrets
    if state.chat is not None:
        settings |= {"fast_model": state.chat.fast_model, "temperature": state.chat.temperature}
    settings = {name: value for name, value in settings.items() if value not in ("", None, {})}
    conversation_id = state.conversation if conversation is None else conversation
    return _begin(app, request, conversation_id, settings=settings, chat=state.chat, files=files)


def regenerate(app: App, turn: TurnView, mode: str = "", model: str = "") -> None:
    """In a callback, ask a turn's question again, in another mode or with another model of the service."""
    state, chat = session(), chat_in_use(app)
    settings = {name: value for name, value in turn.settings.items() if name not in _NOT_COPIED}
    try:
        request = app.conversations.repeat_question(turn.id, mode, state.owner)
    except RagError as error:
        state.notices.append(error.notice)
        return
    options = {"settings": settings, "chat": replace(chat, model=model) if chat and model else state.chat}
    _begin(app, request, turn.conversation_id, **options)


def _begin(app: App, question: Question, conversation: str, **options: Any) -> bool:
    state = session()
    try:
        turn = app.converse(question, conversation_id=conversation, owner=state.owner, person=person_id(), **options)
    except RagError as error:
        state.notices.append(error.notice)
        return False
    set_conversation(turn.conversation_id)
    state.new_turn_id = turn.turn_id
    return True


def branch(app: App, library: str, conversation_id: str, turn_id: str, question: str, *, first: bool) -> None:
    """Ask `question` instead of a turn's, in a branch with the earlier turns; the first turn has none."""
    owner = session().owner
    target = ""
    if not first:
        target = app.conversations.branch(conversation_id, turn_id, owner, including=False)
        app.conversations.rename(target, title_of(question), owner)
    ask(app, library, question, conversation=target)
