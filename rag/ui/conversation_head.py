"""What stands above a conversation: its title, what it used, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.conversations.export import export, file_name
from rag.ui.conversations import show
from rag.ui.doing import attempt
from rag.ui.escape import escape_line
from rag.ui.parts import close
from rag.ui.session import session
from rag.ui.strings import Language, label
from rag.ui.usage import usage_parts

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.store.conversation_table import Conversation

_MENU = "talk-menu"
_KINDS = {"md": "markdown", "html": "html", "docx": "description", "json": "data_object"}


def draw_head(app: App, conversation: Conversation, turns: Sequence[TurnView], language: Language) -> None:
    """Title and usage at the left, the menu at the right."""
    usage = usage_parts(app.conversations.usage(conversation.id, session().owner), language)
    with st.container(horizontal=True, vertical_alignment="center", key="talk-head", gap="small"):
        with st.container(key="talk-title", gap=None):
            st.markdown(f"# {escape_line(conversation.title)}", anchors=False)
            if usage:
                st.caption(label("usage_whole", language, usage=" · ".join(usage)))
        _draw_menu(app, conversation, turns, language)


def _draw_menu(app: App, conversation: Conversation, turns: Sequence[TurnView], language: Language) -> None:
    menu = st.popover(
        label("talk_menu", language), icon=":material/more_horiz:", type="tertiary", key=_MENU, on_change="rerun"
    )
    with menu, st.container(key="talk-actions", gap="small"):
        if not menu.open:
            return
        _draw_rename(app, conversation, language)
        st.caption(label("talk_export", language))
        with st.container(horizontal=True, gap="small", key="talk-files"):
            for kind, icon in _KINDS.items():
                _draw_export(conversation, turns, kind, icon, language)
        _draw_delete(app, conversation, language)


def _draw_rename(app: App, conversation: Conversation, language: Language) -> None:
    key = f"talk-title-{conversation.id}"
    with st.form("talk-rename", border=False):
        st.text_input(label("talk_title", language), value=conversation.title, key=key, max_chars=200)
        st.form_submit_button(
            label("talk_rename", language), key="talk-rename-go", on_click=_rename, args=(app, conversation, language)
        )


def _rename(app: App, conversation: Conversation, language: Language) -> None:
    close(_MENU)
    title = str(st.session_state[f"talk-title-{conversation.id}"] or "").strip()
    if title:
        attempt(lambda: app.conversations.rename(conversation.id, title, session().owner), language)


def _draw_export(
    conversation: Conversation, turns: Sequence[TurnView], kind: str, icon: str, language: Language
) -> None:
    text, media = export(conversation, turns, kind, language)
    st.download_button(
        label(f"talk_as_{kind}", language),
        text,
        file_name=file_name(conversation, kind),
        mime=media,
        icon=f":material/{icon}:",
        on_click="ignore",
        key=f"talk-export-{kind}",
    )


def _draw_delete(app: App, conversation: Conversation, language: Language) -> None:
    sure = st.checkbox(label("talk_delete_sure", language), key=f"talk-sure-{conversation.id}")
    st.button(
        label("talk_delete", language),
        icon=":material/delete:",
        key="talk-delete",
        disabled=not sure,
        on_click=_delete,
        args=(app, conversation, language),
    )


def _delete(app: App, conversation: Conversation, language: Language) -> None:
    close(_MENU)
    owner, done = session().owner, label("talk_deleted", language)
    if attempt(lambda: app.conversations.delete(conversation.id, owner), language, done):
        show("")
