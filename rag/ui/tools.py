"""The tools that were called for an answer: a line for each."""

from __future__ import annotations

import streamlit as st

from rag.tools import use_line
from rag.types import Answer
from rag.ui.escape import escape_line
from rag.ui.strings import Language


def draw_tools(answer: Answer, language: Language, *, key: str) -> None:
    """`Calculator: 15% * 240 = 36`; nothing where none was called."""
    if not answer.tools:
        return
    with st.container(key=f"tools-{key}", gap="xsmall"):
        for use in answer.tools:
            icon = "error" if use.failed else "build"
            st.caption(f":material/{icon}: {escape_line(use_line(use, language, answer.text))}")
