"""The conversation shown in a tab, and the list of conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label
from rag.types import Notice
from rag.ui.kit.actions import attempt
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button, to_local
from rag.ui.kit.session import CONVERSATION, MODES, Scope, choices_of, session, set_conversation, set_param

if TYPE_CHECKING:
    from rag.app import App
    from rag.store.sql.conversation_table import Conversation

_DAYS = {"talk_today": 0, "talk_yesterday": 1, "talk_week": 7, "talk_month": 30}
_LIST_SIZE = 20
_LONGEST = 80
_MENU_ACTION = "talk-menu-action"


def apply_url(app: App, *, moved: bool) -> None:
    """Open the library and the conversation in the URL; an unknown conversation becomes a notice and is dropped.

    `moved` means that the user switched pages: navigation links have no parameters, so the tab's state then stays.
    """
    state = session()
    params = set(st.query_params) - {"lang"}
    library = st.query_params.get("library", "") or app.settings.rag_library
    if (params or not moved) and library != state.library:
        state.library, state.search, state.scope, state.conversation = library, None, Scope(), ""
    conversation_id = st.query_params.get(CONVERSATION, "")
    if conversation_id and conversation_id != state.conversation:
        _open(app, conversation_id)
    elif not conversation_id and not moved and not state.page:
        state.conversation = ""


def _open(app: App, conversation_id: str) -> None:
    state = session()
    try:
        conversation = app.conversations.conversation(conversation_id, state.owner)
    except RagError as error:
        state.notices.append(error.notice)
        set_param(CONVERSATION, state.conversation)
        return
    state.conversation = conversation.id
    if conversation.library != state.library:
        state.library, state.search = conversation.library, None
    # Restore the options of the last question, e.g. after a reload.
    settings = _last_settings(app, conversation.id)
    mode = settings.get("mode", "")
    state.mode = mode if mode in MODES else state.mode
    state.scope, state.choices = Scope.from_json(settings.get("scope", {})), choices_of(settings)


def _last_settings(app: App, conversation_id: str) -> Mapping[str, Any]:
    """Return the settings of the conversation's last question."""
    turns = app.conversations.turns(conversation_id, session().owner) if conversation_id else []
    return turns[-1].settings if turns else {}


def current_conversation(app: App) -> Conversation | None:
    """Return the open conversation, and keep it in the URL for reloads."""
    state = session()
    conversation = None
    if state.conversation:
        try:
            conversation = app.conversations.conversation(state.conversation, state.owner)
        except RagError:
            state.conversation = ""
    set_param(CONVERSATION, state.conversation)
    return conversation


def open_conversation(app: App, conversation_id: str) -> None:
    """Open a conversation in this tab; its memory options and selected pages replace those of the tab."""
    set_conversation(conversation_id)
    state, settings = session(), _last_settings(app, conversation_id)
    choices, scope = choices_of(settings), Scope.from_json(settings.get("scope", {}))
    state.choices = replace(state.choices, memory=choices.memory, window=choices.window)
    state.scope = replace(state.scope, pages=scope.pages)


def draw_conversation_list(app: App, library: str, language: Language, unread: Sequence[str] = ()) -> None:
    """Draw a button for a new conversation, then the library's latest ones or those that match the search.

    `unread` conversations are marked.
    """
    state = session()
    if draw_button(label("talk_new", language), "edit_square", "talk-new", width="stretch"):
        open_conversation(app, "")
        go("chat")
    query = str(st.session_state.get("talk-search") or "")
    matches = app.conversations.conversations(library, state.owner, query, _LIST_SIZE + 1)
    if not matches and not query:
        return
    st.text_input(
        label("talk_search", language),
        key="talk-search",
        placeholder=label("talk_search", language),
        icon=":material/search:",
        label_visibility="collapsed",
    )
    with st.container(key="talks", gap=None):
        for name, group in groupby(matches[:_LIST_SIZE], partial(group_of, today=to_local(datetime.now(UTC)).date())):
            st.caption(label(name, language))
            for conversation in group:
                _draw_entry(app, conversation, language, unread=conversation.id in unread)
        if not matches:
            st.caption(label("talk_none", language))
        elif len(matches) > _LIST_SIZE:
            st.caption(label("talk_more", language, count=_LIST_SIZE))


def group_of(conversation: Conversation, today: date) -> str:
    """Return the label key of the heading above a conversation."""
    if conversation.pinned:
        return "talk_pinned"
    age = (today - to_local(datetime.fromisoformat(conversation.updated_at)).date()).days
    return next((name for name, days in _DAYS.items() if age <= days), "talk_older")


def _draw_entry(app: App, conversation: Conversation, language: Language, *, unread: bool) -> None:
    """Draw a button that opens the conversation; the open one also has a menu."""
    is_open = conversation.id == session().conversation
    if not is_open:
        _draw_open_button(app, conversation, language, unread=unread, key="other")
    elif st.session_state.get(_MENU_ACTION) == ("talk_rename", conversation.id):
        _draw_rename(app, conversation, language)
    else:
        with st.container(horizontal=True, vertical_alignment="center", key="talk-row", gap=None):
            _draw_open_button(app, conversation, language, unread=unread, key="open")
            _draw_menu(app, conversation, language)
        if st.session_state.get(_MENU_ACTION) == ("talk_delete", conversation.id):
            st.caption(label("talk_delete_sure", language))
            with st.container(horizontal=True, gap="small", key="talk-sure"):
                delete, keep = label("talk_delete", language), label("talk_keep", language)
                st.button(delete, type="primary", key="talk-delete", on_click=_delete, args=(app, conversation))
                st.button(keep, key="talk-keep", on_click=st.session_state.pop, args=(_MENU_ACTION,))


def _draw_rename(app: App, conversation: Conversation, language: Language) -> None:
    title, key = label("talk_title", language), f"talk-title-{conversation.id}"
    with st.form("talk-rename-form", border=False):
        st.text_input(title, conversation.title, key=key, max_chars=200, label_visibility="collapsed")
        with st.container(horizontal=True, gap="small"):
            rename, keep = label("talk_rename", language), label("talk_keep", language)
            st.form_submit_button(rename, type="primary", key="talk-rename", on_click=_rename, args=(app, conversation))
            st.form_submit_button(keep, key="talk-keep", on_click=st.session_state.pop, args=(_MENU_ACTION,))


def _draw_menu(app: App, conversation: Conversation, language: Language) -> None:
    names = ["talk_unpin" if conversation.pinned else "talk_pin", "talk_rename", "talk_delete"]
    st.menu_button(
        label("talk_menu", language),
        names,
        format_func=lambda name: label(name, language),
        icon=":material/more_vert:",
        type="tertiary",
        key=f"talk-menu-{conversation.id}",
        on_click=_choose,
        args=(app, conversation),
    )


def _choose(app: App, conversation: Conversation) -> None:
    name = st.session_state[f"talk-menu-{conversation.id}"]
    st.session_state[_MENU_ACTION] = (name, conversation.id)
    if name in ("talk_pin", "talk_unpin"):
        attempt(lambda: app.conversations.pin(conversation.id, name == "talk_pin", session().owner))


def _rename(app: App, conversation: Conversation) -> None:
    st.session_state.pop(_MENU_ACTION, None)
    title = str(st.session_state[f"talk-title-{conversation.id}"] or "").strip()
    if title:
        attempt(lambda: app.conversations.rename(conversation.id, title, session().owner))


def _delete(app: App, conversation: Conversation) -> None:
    st.session_state.pop(_MENU_ACTION, None)
    owner, done = session().owner, Notice("talk_deleted")
    if attempt(lambda: app.conversations.delete(conversation.id, owner), done):
        set_conversation("")


def _draw_open_button(app: App, conversation: Conversation, language: Language, *, unread: bool, key: str) -> None:
    title = escape_line(conversation.title[:_LONGEST]) or label("talk_untitled", language)
    icon = ":material/call_split:" if conversation.branch_of else None
    if unread:
        title, icon = f"**{title}** :primary[{label('report_ready', language)}]", ":material/mark_chat_unread:"
    if st.button(title, key=f"talk-{key}-{conversation.id}", icon=icon, type="tertiary", width="stretch"):
        open_conversation(app, conversation.id)
        go("chat", conversation=conversation.id)
