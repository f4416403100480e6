"""A question is asked, with everything that was chosen in this tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.conversations.conversations import title_of
from rag.errors import RagError
from rag.runs.options import Question, RunOptions
from rag.store.values import Filters
from rag.types import RunMode
from rag.ui.chat.filters import search_options
from rag.ui.kit.session import Session, chat_in_use, session, show, whose

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_OF_A_RUN = ("mode", "model", "strategy", "remembered")  # settings of a turn that are made anew


def ask(app: App, library: str, question: str, mode: RunMode | None = None, **how: Any) -> None:
    """Begin to answer `question` and draw the page again; `how` is as in `start`."""
    start(app, library, question, mode, **how)
    st.rerun()


def ask_first(app: App, library: str, question: str, **how: Any) -> None:
    """For callbacks: they run before anything is drawn, so that the question appears at once."""
    start(app, library, question, **how)


def start(
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
    """Begin to answer `question` in the open conversation, or another; an empty id begins one.

    `standalone` is what a follow-up means, as the person put it right; `options` are those of `RunOptions` that hold
    for this question alone. `files` (name, content) came with it. An error is shown as a notice.
    """
    state = session()
    state.mode = mode or state.mode
    where = state.conversation if conversation is None else conversation
    asked = _question(question, library, standalone, options)
    return _begin(app, asked, where, settings=_kept(state), chat=state.chat, files=files)


def regenerate(app: App, turn: TurnView, mode: str = "", model: str = "") -> None:
    """Ask a turn's question again, in another mode or with another model of the service; for callbacks."""
    state, chat = session(), chat_in_use(app)
    kept = {name: value for name, value in turn.settings.items() if name not in _OF_A_RUN}
    try:
        asked = app.conversations.again(turn.id, mode, state.owner)
    except RagError as error:
        state.notes.append(error.notice)
        return
    how = {"settings": kept, "chat": replace(chat, model=model) if chat and model else state.chat}
    _begin(app, asked, turn.conversation_id, **how)


def _begin(app: App, question: Question, conversation: str, **how: Any) -> bool:
    state = session()
    try:
        asked = app.converse(question, conversation_id=conversation, owner=state.owner, person=whose(), **how)
    except RagError as error:
        state.notes.append(error.notice)
        return False
    show(asked.conversation_id)
    state.asked = asked.turn_id
    return True


def _question(text: str, library: str, standalone: str, more: Mapping[str, Any]) -> Question:
    """The words, with what was chosen in this tab beside them."""
    state, chosen = session(), search_options()
    given = {"strategy": chosen.get("strategy", ""), "weights": chosen.get("weights", {}), "standalone": standalone}
    given |= {**state.choices.options(), **more}
    options = RunOptions(web="ask", locale=state.language, **given)
    libraries = (library, *chosen.get("others", ()))
    return Question(text, libraries, state.mode, chosen.get("filters") or Filters(), options)


def branch(app: App, library: str, conversation_id: str, turn_id: str, question: str, *, first: bool) -> None:
    """Ask `question` instead of a turn's, in a branch that keeps the earlier turns."""
    owner = session().owner
    other = ""
    if not first:
        other = app.conversations.branch(conversation_id, turn_id, owner, including=False)
        app.conversations.rename(other, title_of(question), owner)
    ask(app, library, question, conversation=other)


def _kept(state: Session) -> dict[str, Any]:
    """Return the settings to save with the answer, without secrets."""
    kept: dict[str, Any] = {"scope": state.scope.plain(), **state.choices.options()}
    if state.chat is not None:
        kept |= {"fast_model": state.chat.fast_model, "temperature": state.chat.temperature}
    return {name: value for name, value in kept.items() if value not in ("", None, {})}
