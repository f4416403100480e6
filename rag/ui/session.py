"""What one tab remembers, typed, and the one application object that all tabs share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Answer, Retrieval, RunMode
from rag.ui.scope import Scope

if TYPE_CHECKING:
    from rag.app import App, ChatOptions
    from rag.ui.live import LiveRun

_KEY = "pagelight"


@dataclass(slots=True)
class Turn:
    """A question, where it was searched for, and, once its run has ended, its answer."""

    question: str
    run_id: str
    answer: Answer | None = None
    live: LiveRun | None = None
    scope: Scope = field(default_factory=Scope)
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """A search that was made, kept so that it is not made again when the page is drawn again."""

    library: str
    question: str
    scope: Scope
    found: Retrieval


@dataclass(slots=True)
class Session:
    """The state of one tab. Empty strings stand for "not chosen": the default applies."""

    language: str = ""
    library: str = ""
    mode: RunMode = "fast"
    turns: list[Turn] = field(default_factory=list)
    restored: bool = False
    chat: ChatOptions | None = None
    notes: list[str] = field(default_factory=list)
    scope: Scope = field(default_factory=Scope)
    search: Search | None = None

    @property
    def running(self) -> Turn | None:
        """The turn whose answer is still being written, if there is one."""
        return self.turns[-1] if self.turns and self.turns[-1].answer is None else None


def session() -> Session:
    """This tab's state."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Session()
    state: Session = st.session_state[_KEY]
    return state


def build_app() -> App:
    """Build the application from the settings. Raises RagError when a setting or the store is at fault."""
    from rag.app import App
    from rag.config import load_settings

    app = App(load_settings())
    app.start()
    return app


@st.cache_resource(show_spinner=False)
def get_app() -> App:
    """The application, one for all tabs; a failure is not kept, so the next run tries again."""
    return build_app()


def set_param(name: str, value: str | list[str]) -> None:
    """Keep `value` in the page's address, where it survives a reload; an empty one removes it."""
    if not value:
        if name in st.query_params:
            del st.query_params[name]
    elif isinstance(value, list):
        if st.query_params.get_all(name) != value:
            st.query_params[name] = value
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def current_library(app: App) -> str:
    """The library this tab works with: the one chosen here, in the address, or in the settings."""
    state = session()
    state.library = state.library or st.query_params.get("library", "") or app.settings.rag_library
    return state.library


def count_pages(app: App, library: str) -> int:
    """How many pages `library` holds."""
    return app.library(library).page_count()
