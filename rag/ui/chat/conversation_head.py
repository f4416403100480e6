"""The head of a conversation: title, usage, branches and exports; the view of readers with a link."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.conversations.export import export, file_name
from rag.errors import RagError
from rag.locales import Language, label, say
from rag.ui.chat.answer import draw_evidence, draw_text
from rag.ui.chat.conversation import pin_of
from rag.ui.chat.conversations import open_conversation
from rag.ui.kit.actions import attempt
from rag.ui.kit.markdown import escape, escape_line, shorten
from rag.ui.kit.runs import usage_parts
from rag.ui.kit.session import session
from rag.ui.kit.sources import answer_of

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.store.sql.conversation_table import Conversation

_MENU, _LONGEST = "talk-menu", 60
_KINDS = {"md": "markdown", "html": "html", "docx": "description", "json": "data_object"}
LINK: Final = "shared"
"""The address parameter of a link."""


def draw_head(app: App, conversation: Conversation, turns: Sequence[TurnView], language: Language) -> None:
    """Draw title and usage on the left, the menu on the right."""
    usage = usage_parts(app.conversations.usage(conversation.id, session().owner), language)
    with st.container(horizontal=True, vertical_alignment="center", key="talk-head", gap="small"):
        with st.container(key="talk-title", gap=None):
            st.markdown(f"# {escape_line(conversation.title)}", anchors=False)
            if usage:
                st.caption(label("usage_whole", language, usage=" · ".join(usage)))
            if conversation.branch_of:
                _draw_origin(app, conversation, language)
        _draw_menu(app, conversation, turns, language)
    if pinned := [turn for turn in turns if turn.pinned]:
        links = (f"[{escape_line(shorten(turn.question, _LONGEST))}](#{pin_of(turn.id)})" for turn in pinned)
        with st.container(key="talk-pinned"):
            st.markdown(f":material/keep: :gray[{label('talk_pinned', language)}] {' · '.join(links)}")


def _draw_origin(app: App, conversation: Conversation, language: Language) -> None:
    """Draw a link to the conversation that this one branched from, while it exists."""
    owner = session().owner
    with suppress(RagError):
        source = app.conversations.conversation(
            app.conversations.turn(conversation.branch_of, owner).conversation_id, owner
        )
        text = label("talk_branch_of", language, title=escape_line(source.title))
        st.button(
            text,
            icon=":material/call_split:",
            type="tertiary",
            key="talk-origin",
            on_click=open_conversation,
            args=(app, source.id),
        )


def _draw_menu(app: App, conversation: Conversation, turns: Sequence[TurnView], language: Language) -> None:
    name, icon = ("share", "share") if session().owner else ("take", "download")
    menu = st.popover(
        label(f"talk_{name}", language), icon=f":material/{icon}:", type="tertiary", key=_MENU, on_change="rerun"
    )
    with menu, st.container(key="talk-actions", gap="small"):
        if not menu.open:
            return
        st.caption(label("talk_export", language))
        with st.container(horizontal=True, gap="small", key="talk-files"):
            for kind, icon in _KINDS.items():
                _draw_export(conversation, turns, kind, icon, language)
        if session().owner:  # without sign-in, everyone sees all conversations
            _draw_link(app, conversation, language)


def _draw_link(app: App, conversation: Conversation, language: Language) -> None:
    """Draw the link for readers of the library, and the button that creates or withdraws it."""
    owner = session().owner
    st.caption(label("talk_link_hint" if conversation.link else "talk_link_none", language))
    if conversation.link:
        st.code(f"{(st.context.url or '').partition('?')[0]}?{LINK}={conversation.link}", language=None)
    name, act = ("unlink", app.conversations.unshare) if conversation.link else ("link", app.conversations.share)
    icon = ":material/link_off:" if conversation.link else ":material/link:"
    if st.button(label(f"talk_{name}", language), icon=icon, key=f"talk-{name}"):
        attempt(lambda: act(conversation.id, owner))
        st.rerun()


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


def draw_shared(app: App, link: str, language: Language) -> None:
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
