"""Helpers that run actions and checks; a failure shows as one sentence, and the page stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from rag.errors import RagError, StoreAwayError
from rag.locales import Language, say
from rag.types import Notice
from rag.ui.kit.escape import escape_line
from rag.ui.kit.session import session

T = TypeVar("T")


def attempt(action: Callable[[], object], done: Notice | None = None) -> bool:
    """Run `action`; its failure, or else `done`, is shown when the page is drawn next. Return whether it succeeded."""
    try:
        action()
    except RagError as error:
        session().notes.append(error.notice)
        return False
    if done:
        session().notes.append(done)
    return True


def attempt_here(action: Callable[[], object], language: Language) -> bool:
    """Run `action` and show a failure in place, below the field that is wrong. Return whether it succeeded."""
    try:
        action()
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        return False
    return True


def unless_away(ask: Callable[[], T]) -> T | None:
    """Return the database's result; None while it is away, which the top of the page says."""
    try:
        return ask()
    except StoreAwayError:
        return None


def draw_notice(check: Callable[[], Notice], language: Language) -> bool:
    """Run `check` and show its sentence. Return whether it succeeded."""
    try:
        notice = check()
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        return False
    st.success(escape_line(say(notice, language)), icon=":material/check_circle:")
    return True
