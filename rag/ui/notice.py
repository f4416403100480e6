"""What a check found, shown as success or as the failure it raised."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.types import Notice
from rag.ui.escape import escape_line
from rag.ui.strings import Language


def draw_notice(check: Callable[[], Notice], language: Language) -> bool:
    """Run `check` and show its sentence; returns whether it went well."""
    try:
        found = check()
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        return False
    st.success(escape_line(say(found, language)), icon=":material/check_circle:")
    return True
