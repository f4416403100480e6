"""A question is asked, with everything that was chosen in this tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.runs.options import Question, RunOptions
from rag.store.query import Filters
from rag.types import RunMode
from rag.ui.chat.filters import search_options
from rag.ui.kit.session import Session, session, show, whose

if TYPE_CHECKING:
    from rag.app import App


def ask(app: App, library: str, question: str, mode: RunMode | None = None, **how: Any) -> None:
    """Begin to answer `question` and draw the page again; `how` is as in `start`."""
    start(app, library, question, mode, **how)
    st.rerun()


def ask_first(app: App, library: str, question: str, **how: Any) -> None:
    """For callbacks: they run before anything is drawn, so that the question stands on the page at once."""
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
    for this question alone. `files` (name, content) came with it. What stands in the way is said in passing.
    """
    state = session()
    state.mode = mode or state.mode
    try:
        asked = app.converse(
            _question(question, library, standalone, options),
            conversation_id=state.conversation if conversation is None else conversation,
            owner=state.owner,
            person=whose(),
            chat=state.chat,
            settings=_kept(state),
            files=files,
        )
    except RagError as error:
        state.notes.append(say(error.notice, "zh" if state.language == "zh" else "en"))
        return False
    show(asked.conversation_id)
    state.asked = asked.turn_id
    return True


def _question(text: str, library: str, standalone: str, more: Mapping[str, Any]) -> Question:
    """The words, with what was chosen in this tab beside them."""
    state, chosen = session(), search_options()
    given = {"strategy": chosen.get("strategy", ""), "weights": chosen.get("weights", {}), "standalone": standalone}
    given |= {**state.choices.options(), **more}
    options = RunOptions(web="ask", locale="zh" if state.language == "zh" else "en", **given)
    libraries = (library, *chosen.get("others", ()))
    return Question(text, libraries, state.mode, chosen.get("filters") or Filters(), options)


def branch(app: App, library: str, conversation_id: str, turn_id: str, question: str, *, first: bool) -> None:
    """Ask `question` in the place of a turn's, in a conversation of its own that keeps what was said before."""
    owner = session().owner
    other = ""
    if not first:
        other = app.conversations.branch(conversation_id, turn_id, owner, including=False)
        app.conversations.rename(other, question, owner)
    ask(app, library, question, conversation=other)


def _kept(state: Session) -> dict[str, Any]:
    """What is stored beside the answer, and nothing secret."""
    kept: dict[str, Any] = {"scope": state.scope.plain(), **state.choices.options()}
    if state.chat is not None:
        kept |= {"fast_model": state.chat.fast_model, "temperature": state.chat.temperature}
    return {name: value for name, value in kept.items() if value not in ("", None, {})}
