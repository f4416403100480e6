"""A shared conversation, as readers of its library see it: questions, answers and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.errors import RagError
from rag.locales import say
from rag.ui.chat.answer import draw_evidence, draw_text
from rag.ui.kit.answers import answer_of
from rag.ui.kit.escape import escape, escape_line
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

LINK: Final = "shared"
"""The address parameter of a link."""


def draw_shared(app: App, link: str, language: Language) -> None:
    """Draw the conversation with this link, or a warning if there is none."""
    try:
        conversation, turns = app.conversations.linked(link)
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
