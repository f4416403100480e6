"""Which conversation a tab shows, and the list of those there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.ui.choices import Choices
from rag.ui.escape import escape_line
from rag.ui.navigation import go
from rag.ui.scope import Scope
from rag.ui.session import session, set_param
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.store.conversation_table import Conversation

_PARAM = "conversation"
_LISTED = 20
_LONGEST = 80


def take_from_address(app: App, language: Language, *, moved: bool) -> None:
    """Show the library and the conversation that the address names; an unknown one is said so and forgotten.

    `moved` tells that another page is drawn than before. A link of the navigation names nothing: then what the tab
    works with stays.
    """
    state = session()
    named = set(st.query_params) - {"lang"}
    library = st.query_params.get("library", "") or app.settings.rag_library
    if (named or not moved) and library != state.library:
        state.library, state.search, state.scope, state.conversation = library, None, Scope(), ""
    wanted = st.query_params.get(_PARAM, "")
    if wanted and wanted != state.conversation:
        _open(app, wanted, language)
    elif not wanted and not moved and not state.page:
        state.conversation = ""


def _open(app: App, wanted: str, language: Language) -> None:
    state = session()
    try:
        found = app.conversations.conversation(wanted, state.owner)
    except RagError as error:
        state.notes.append(say(error.notice, language))
        set_param(_PARAM, state.conversation)
        return
    state.conversation = found.id
    if found.library != state.library:
        state.library, state.search = found.library, None
    _choose_as_before(app, found.id)


def _choose_as_before(app: App, conversation_id: str) -> None:
    """A tab that was loaded anew goes on with what the last question was asked with; a reload has lost it."""
    state = session()
    turns = app.conversations.turns(conversation_id, state.owner)
    kept = turns[-1].settings if turns else {}
    state.mode = kept.get("mode", state.mode)
    state.scope = Scope.revived(kept.get("scope", {}))
    state.choices = Choices.revived(kept)


def _remember_as_before(app: App, conversation_id: str) -> None:
    """How a conversation is remembered belongs to it, whatever else this tab has chosen."""
    turns = app.conversations.turns(conversation_id, session().owner) if conversation_id else []
    kept = Choices.revived(turns[-1].settings if turns else {})
    session().choices = replace(session().choices, memory=kept.memory, window=kept.window)


def current(app: App) -> Conversation | None:
    """The open conversation; the address is made to name it, so that a reload finds it again."""
    state = session()
    found = None
    if state.conversation:
        try:
            found = app.conversations.conversation(state.conversation, state.owner)
        except RagError:
            state.conversation = ""
    set_param(_PARAM, state.conversation)
    return found


def show(conversation_id: str) -> None:
    """Let this tab show another conversation, or with an empty id a new one."""
    session().conversation = conversation_id
    set_param(_PARAM, conversation_id)


def draw_list(app: App, library: str, language: Language, unread: Sequence[str] = ()) -> None:
    """A button for a new conversation, then the latest of the library, or those that hold the words looked for.

    Those that are `unread` have a mark.
    """
    state = session()
    if st.button(label("talk_new", language), icon=":material/edit_square:", key="talk-new", width="stretch"):
        show("")
        _remember_as_before(app, "")
        go("chat")
    wanted = str(st.session_state.get("talk-search") or "")
    found = app.conversations.conversations(library, state.owner, wanted)
    if not found and not wanted:
        return
    st.text_input(
        label("talk_search", language),
        key="talk-search",
        placeholder=label("talk_search", language),
        icon=":material/search:",
        label_visibility="collapsed",
    )
    with st.container(key="talks", gap=None):
        for one in found[:_LISTED]:
            _draw_entry(app, one, language, unread=one.id in unread)
    if not found:
        st.caption(label("talk_none", language))
    elif len(found) > _LISTED:
        st.caption(label("talk_more", language, count=_LISTED))


def _draw_entry(app: App, conversation: Conversation, language: Language, *, unread: bool) -> None:
    is_open = conversation.id == session().conversation
    title = escape_line(conversation.title[:_LONGEST]) or label("talk_untitled", language)
    icon = ":material/call_split:" if conversation.branch_of else None
    if unread:
        title, icon = f"**{title}** :primary[{label('report_ready', language)}]", ":material/mark_chat_unread:"
    key = f"talk-{'open' if is_open else 'other'}-{conversation.id}"
    if st.button(title, key=key, icon=icon, type="tertiary", width="stretch"):
        show(conversation.id)
        _remember_as_before(app, conversation.id)
        go("chat", conversation=conversation.id)
