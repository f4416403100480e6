"""What a click does or a check finds; where it fails, that is said in one sentence without losing the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from rag.errors import RagError, StoreAwayError
from rag.messages import say
from rag.types import Notice
from rag.ui.kit.escape import escape_line
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language

T = TypeVar("T")


def attempt(action: Callable[[], object], language: Language, done: str = "") -> bool:
    """Run `action`; its failure, or else the words `done`, are said in passing when the page is drawn next."""
    try:
        action()
    except RagError as error:
        session().notes.append(say(error.notice, language))
        return False
    if done:
        session().notes.append(done)
    return True


def unless_away(ask: Callable[[], T]) -> T | None:
    """What the database tells; None while it is away, which the head of the page says."""
    try:
        return ask()
    except StoreAwayError:
        return None


def draw_notice(check: Callable[[], Notice], language: Language) -> bool:
    """Run `check` and show its sentence; returns whether it went well."""
    try:
        found = check()
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        return False
    st.success(escape_line(say(found, language)), icon=":material/check_circle:")
    return True
