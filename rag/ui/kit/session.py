"""The typed state of one tab with its choices, and the application object that all tabs share."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, TypeVar

import streamlit as st
from streamlit.runtime import Runtime

from rag.config import load_settings
from rag.errors import StoreUnavailableError
from rag.runs.run import RunOptions
from rag.store.values import Filters
from rag.types import Notice, Retrieval, RunMode
from rag.ui.kit.browser import browser_id
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.passages import SourceSpan

if TYPE_CHECKING:
    from rag.access import Person
    from rag.app import App, ChatOptions
    from rag.evaluation.evaluation import Evaluation
    from rag.ingest.jobs.service import Jobs

T = TypeVar("T")

_KEY = "pagelight"
CONVERSATION = "conversation"  # its query parameter
MODES: Final[tuple[RunMode, ...]] = ("fast", "deep", "research", "judge")
"""Modes that a user can choose; the others follow from the route of a message."""
NEED_MODEL: Final[tuple[RunMode, ...]] = ("deep", "judge")
"""Modes that add little to Fast without a chat model."""
_CHOICES: Final = (
    *("compose", "approve", "judge_each", "tree_order", "memory", "window", "calls", "tokens", "seconds"),
    *("max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop"),
)
"""The `RunOptions` that a user can choose."""
_NOT_FILTERS = ("strategy", "libraries", "weights")


def chosen_options(choices: RunOptions) -> dict[str, Any]:
    """Return the options that differ from the defaults."""
    standard = RunOptions()
    values = {name: getattr(choices, name) for name in _CHOICES}
    return {name: value for name, value in values.items() if value != getattr(standard, name)}


def choices_of(settings: Mapping[str, Any]) -> RunOptions:
    """Return the answer options in the settings of an earlier question."""
    values = {name: settings[name] for name in _CHOICES if name in settings}
    return RunOptions(**values | {"stop": tuple(settings.get("stop", ()))})


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a search; empty fields don't limit it. `pages` are url_hashes, dates days in the user's time zone.

    `libraries` are searched in addition to the open one; `weights` are those of all libraries, 1 by default.
    """

    pages: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    section: str = ""
    since: date | None = None
    until: date | None = None
    strategy: str = ""
    libraries: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def filter_count(self) -> int:
        """Number of active filters."""
        return sum(bool(getattr(self, one.name)) for one in fields(self) if one.name not in _NOT_FILTERS)

    def without(self, name: str, value: str = "") -> Scope:
        """Return this scope without one filter, or without one of that filter's values."""
        current: Any = getattr(self, name)
        remaining: Any = getattr(Scope(), name)
        if isinstance(current, tuple) and value:
            remaining = tuple(item for item in current if item != value)
        return replace(self, **{name: remaining})

    def without_filters(self) -> Scope:
        """Return this scope without its filters; the strategy and the libraries stay."""
        return Scope(strategy=self.strategy, libraries=self.libraries, weights=self.weights)

    def filters_only(self) -> Scope:
        """Return only this scope's filters."""
        return replace(self, strategy="", libraries=(), weights={})

    def to_json(self) -> dict[str, Any]:
        """Return the non-empty fields as JSON values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name)}
        return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scope:
        """Return the scope from the result of `to_json`, also after a JSON round trip."""
        values: dict[str, Any] = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        for name, value in values.items():
            if name in ("since", "until"):
                values[name] = date.fromisoformat(value)
            elif isinstance(value, list):
                values[name] = tuple(value)
        return cls(**values)

    def filters(self, minutes_behind: int = 0) -> Filters | None:
        """Return the filters of a search, if any. `minutes_behind` is how far the user's clock is behind UTC."""
        if not self.filter_count:
            return None
        return Filters(
            pages=self.pages,
            sites=self.sites,
            languages=self.languages,
            sections=(self.section,) if self.section else (),
            since=_iso_time(self.since, time.min, minutes_behind),
            until=_iso_time(self.until, time(23, 59, 59), minutes_behind),
        )

    def options(self, minutes_behind: int = 0) -> dict[str, Any]:
        """Return the arguments for `App.search`, without those left at their defaults."""
        weights = dict(self.weights) if self.libraries else {}
        arguments = {
            "strategy": self.strategy,
            "filters": self.filters(minutes_behind),
            "others": self.libraries,
            "weights": weights,
        }
        return {name: value for name, value in arguments.items() if value}


def _iso_time(day: date | None, at: time, minutes_behind: int) -> str:
    """Return the time `at` on the user's `day`, in ISO 8601 with its offset; empty for no day."""
    if day is None:
        return ""
    return datetime.combine(day, at, timezone(timedelta(minutes=-minutes_behind))).isoformat()


@dataclass(frozen=True, slots=True)
class Search:
    """A search and its result, cached so that a redraw does not repeat it."""

    library: str
    question: str
    scope: Scope
    result: Retrieval


@dataclass(slots=True)
class Session:
    """The state of one tab. An empty string means "not chosen": the default applies.

    `created_title` is the title of the library just created, `conversation` the id of the open conversation,
    `shown_conversation` of the one on display. `live_runs` has the runs that this tab follows, by turn or run id;
    `stopping` has the turns it asked to stop, `new_turn_id` the turn just asked. `current_params` are the query
    parameters last set, `previous_params` those at the start of the latest run. `clicked` is true in a run after a
    click, `page` is the current page. `id` is a secret of this tab; `chat` the browser's chat model, see
    `load_chat_model`. `admitted` is true once the user has access; `is_auto_redraw` if the page is redrawn
    automatically, perhaps while the user is away; `report_arrived` if a report arrived meanwhile. `notices` wait to be
    shown; `missing_library_notice` is about a library requested on this page that does not exist. `page_counts` has the
    last page counts by library, `sources` the page's sources by the prefix of their links.
    """

    language: str = ""
    library: str = ""
    created_title: str | None = None
    mode: RunMode = "fast"
    conversation: str = ""
    person: Person | None = None
    refused: bool = False
    admitted: bool = False
    live_runs: dict[str, LiveRun] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)
    new_turn_id: str = ""
    current_params: dict[str, str] | None = None
    previous_params: dict[str, str] | None = None
    clicked: bool = False
    page: str = ""
    shown_conversation: str = ""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    chat: ChatOptions | None = None
    notices: list[Notice] = field(default_factory=list)
    missing_library_notice: Notice | None = None
    scope: Scope = field(default_factory=Scope)
    choices: RunOptions = field(default_factory=RunOptions)
    search: Search | None = None
    is_auto_redraw: bool = False
    report_arrived: bool = False
    page_counts: dict[str, int] = field(default_factory=dict)
    sources: dict[str, tuple[SourceSpan, ...]] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Owner of the conversations shown; empty for shared ones."""
        return self.person.owner if self.person else ""


def session() -> Session:
    """Return this tab's state."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Session()
    state: Session = st.session_state[_KEY]
    return state


def is_admitted(session_id: str) -> bool:
    """Return whether the open tab with this id has access. May be called from any thread."""
    tab = Runtime.instance().get_app_session(session_id)
    return tab is not None and _KEY in tab.session_state and bool(tab.session_state[_KEY].admitted)


def browser_key() -> str:
    """Return the key of a connected chat model: the browser's id, or this tab's if cookies are off."""
    return browser_id() or session().id


def person_id() -> str:
    """Return the id for imports, notes and answer limits: the signed-in user's, else a digest of the browser's id."""
    return session().owner or hashlib.sha256(browser_key().encode()).hexdigest()[:32]


def evaluation_of(app: App) -> Evaluation:
    """Return the sets, runs and labels of the signed-in user; without sign-in, everyone's."""
    return app.evaluation.of(session().owner)


def jobs_of(app: App) -> Jobs:
    """Return the imports of the signed-in user; without sign-in, everyone's."""
    return app.imports.jobs.of(session().owner or None)


def load_chat_model(app: App) -> None:
    """Load the chat model that was connected in any tab of this browser."""
    session().chat = app.chats.connections.get(browser_key(), session().owner)


def chat_in_use(app: App) -> ChatOptions | None:
    """Return the chat model of the session, else that of the settings; None if there is none."""
    return session().chat or app.chats.of_settings()


def save_chat_model(app: App, chat: ChatOptions) -> None:
    app.chats.connections.add(browser_key(), session().owner, chat)
    session().chat = chat


def disconnect_chat_model(app: App) -> None:
    """Disconnect this browser's chat model; its tabs lose it when they are drawn next."""
    app.chats.connections.forget(browser_key())


def build_app() -> App:
    """Build and start the application. Raises RagError if a setting is invalid or the store fails."""
    from rag.app import App  # takes a second, in which the server already responds

    app = App(load_settings())
    app.start()
    return app


@st.cache_resource(show_spinner=False)
def get_app() -> App:
    """Return the application, shared by all tabs; a failure is not cached, so the next run tries again."""
    return build_app()


def set_param(name: str, value: str) -> None:
    """Set a query parameter of the URL, which survives a reload; an empty `value` removes it."""
    if not value:
        if name in st.query_params:
            del st.query_params[name]
    elif st.query_params.get(name) != value:
        st.query_params[name] = value
    session().current_params = st.query_params.to_dict()


def cached(name: str, key: object, compute: Callable[[], T]) -> T:
    """Return this tab's value `name`, computed again only when `key` changes."""
    stored: tuple[object, T] | None = st.session_state.get(name)
    if stored is None or stored[0] != key:
        stored = st.session_state[name] = (key, compute())
    return stored[1]


def reset_count(name: str) -> int:
    """Return how often the widgets `name` were reset in this tab; as part of widget keys it empties them."""
    return int(st.session_state.get(f"{name}-resets", 0))


def reset_widgets(name: str) -> None:
    """Empty the widgets `name`, whose keys contain their `reset_count`."""
    st.session_state[f"{name}-resets"] = reset_count(name) + 1


def mark_click() -> None:
    """In a button's callback, mark the run as a click, so that its URL does not count as a navigation."""
    session().clicked = True


def set_conversation(conversation_id: str) -> None:
    """Open another conversation in this tab; an empty id opens a new one."""
    session().conversation = conversation_id
    set_param(CONVERSATION, conversation_id)


def check_arrival() -> bool:
    """Return whether the URL came from a link, Back, Forward or a reload, not from this tab. Call it once per run."""
    state, params = session(), st.query_params.to_dict()
    clicked, state.clicked = state.clicked, False
    if clicked and params == state.previous_params != state.current_params:
        # The browser sent this click before it received its current URL.
        st.query_params.from_dict(state.current_params or {})
        return False
    previous, state.current_params, state.previous_params = state.current_params, params, params
    return previous != params


def current_library(app: App) -> str:
    """Return this tab's library: the one chosen here, in the URL, or in the settings."""
    state = session()
    state.library = state.library or st.query_params.get("library", "") or app.settings.rag_library
    return state.library


def libraries_of(app: App, library: str, scope: Scope) -> list[str]:
    """Return `library` and those of `scope` that still exist."""
    return [library, *(name for name in scope.libraries if app.libraries.has(name))]


def count_pages(app: App, library: str) -> int:
    """Return the number of pages in `library`; while the database is unreachable, the last known number."""
    counts = session().page_counts
    with suppress(StoreUnavailableError):
        counts[library] = app.library(library).page_count()
    return counts.get(library, 0)


def is_empty(app: App, library: str) -> bool:
    """Return whether `library` is known to be empty."""
    return not count_pages(app, library) and app.outage() is None
