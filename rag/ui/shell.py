"""What stands around every page: title, style, navigation, sidebar, and the last net for errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import streamlit as st

from rag.errors import RagError, StoreAwayError
from rag.messages import say
from rag.store.ports import SCREEN, patience
from rag.ui.chat.conversations import draw_list, take_from_address
from rag.ui.kit.escape import escape_line
from rag.ui.kit.language import current_language, language_switch
from rag.ui.kit.navigation import navigation
from rag.ui.kit.parts import page_count
from rag.ui.kit.scripts import tell_browser
from rag.ui.kit.session import arrived, count_pages, current_library, get_app, recall_chat, session
from rag.ui.kit.strings import Language, label
from rag.ui.library.libraries import draw_picker, settle_library
from rag.ui.settings.signed_in import admit, draw_person, outside

if TYPE_CHECKING:
    from rag.app import App

_STATIC = Path(__file__).resolve().parent / "static"
_LOGO, _ICON = _STATIC / "logo.svg", _STATIC / "icon.svg"
_WAIT_SECONDS = 1.0
_REPORT_SECONDS = 2.0
_LOOK_SECONDS = 2.0
_LANGUAGE_TAGS: dict[Language, str] = {"en": "en", "zh": "zh-CN"}
_DOTS = {"ready": "green", "loading": "orange", "failed": "red"}

logger = logging.getLogger(__name__)


def draw_shell() -> None:
    """Draw the frame, then the page that was chosen."""
    came = arrived()  # before the address is completed
    language = current_language()
    st.set_page_config(page_title=label("app_name", language), page_icon=str(_ICON), layout="centered")
    st.logo(str(_LOGO), icon_image=str(_ICON), size="large")
    page = navigation(language, hidden=True) if outside() else navigation(language)
    app = open_app(language)
    admit(app, language)
    recall_chat(app)
    words = {name: label(name, language) for name in ("skip", "upload", "copied")}
    tell_browser("frame", language=_LANGUAGE_TAGS[language], **words)
    state = session()
    if moved := state.page != page.url_path:
        state.page, state.shown, state.absent, state.sources = page.url_path, "", None, {}
    head = st.container(key="away")
    with told_in(language), patience(SCREEN), suppress(StoreAwayError):  # the head says so
        if came or moved:
            take_from_address(app, language, moved=moved)
        settle_library(app, language)
        unread = _unread(app, in_chat=page.url_path == "")
        st.set_page_config(page_title=_title(app, page.title, language, unread))
        _sidebar(app, language, unread)
        page.run()
    if app.away():
        with head:
            st.fragment(_wait_for_database, run_every=_LOOK_SECONDS)(app, language)
    _show_notes()


def _wait_for_database(app: App, language: Language) -> None:
    """Say that the database is away, and draw the page again once it is back."""
    if (notice := app.away()) is None:
        st.rerun()
    said = f"{say(notice, language)} {label('away_looking', language)}"
    st.warning(escape_line(said), icon=":material/cloud_off:")


def _title(app: App, page: str, language: Language, unread: Sequence[str]) -> str:
    told = f"● {label('report_ready', language)} · " if unread else ""
    return f"{told}{page} · {app.libraries.title(current_library(app))} · {label('app_name', language)}"


def _unread(app: App, *, in_chat: bool) -> list[str]:
    """The conversations with a report that is not looked at yet. The open one is, unless the page drew itself again."""
    state, library = session(), current_library(app)
    unread = app.conversations.unread(library, state.owner)
    if in_chat and state.conversation in unread and not state.by_itself:
        app.conversations.opened(state.conversation, state.owner)
        unread.remove(state.conversation)
    state.by_itself = False
    return unread


def _look_for_reports(app: App, unread: Sequence[str]) -> None:
    """Draw the page again once a report is finished, so that the tab and the list say so."""
    if app.conversations.unread(current_library(app), session().owner) != unread:
        session().by_itself = True
        st.rerun()


def open_app(language: Language) -> App:
    """The application; where it cannot be opened the page says why and ends here."""
    try:
        with st.spinner(label("opening", language), show_time=False):
            return get_app()
    except RagError as error:
        st.markdown(f"# {label('start_failed', language)}")
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")
        st.button(label("retry", language))
        st.stop()


@contextmanager
def told_in(language: Language) -> Iterator[None]:
    """Say an expected failure inside the block in one sentence, in place of the rest of the block."""
    try:
        yield
    except RagError as error:
        st.error(escape_line(say(error.notice, language)), icon=":material/error:")


def report_unexpected(error: Exception) -> bool:
    """Log what nobody expected and say so on the page without its details."""
    logger.error("A page failed", exc_info=error)
    st.error(label("unexpected", current_language()), icon=":material/error:")
    return True


def _show_notes() -> None:
    """Say in passing what happened before the page was drawn again."""
    notes = session().notes
    while notes:
        st.toast(escape_line(notes.pop(0)))


def _sidebar(app: App, language: Language, unread: Sequence[str]) -> None:
    with st.sidebar:
        draw_picker(app, language)
        with told_in(language):
            draw_list(app, current_library(app), language, unread)
        if app.going_on("research", "judge"):  # whose answers are reports
            st.fragment(_look_for_reports, run_every=_REPORT_SECONDS)(app, unread)
        with st.container(key="sidebar-foot"):
            draw_person(language)
            _in_use(app, language)
            language_switch("sidebar-language")


def _in_use(app: App, language: Language) -> None:
    if app.away():
        st.caption(f":{_DOTS['failed']}[●] {label('in_use_away', language)}")
    elif app.models.ready():
        _draw_in_use(app, language, "ready")
    elif problem := app.models.problem():
        _draw_in_use(app, language, "failed")
        st.error(escape_line(say(problem, language)), icon=":material/error:")
    else:
        st.fragment(_wait_for_models, run_every=_WAIT_SECONDS)(app, language)


def _wait_for_models(app: App, language: Language) -> None:
    if app.models.ready() or app.models.problem():
        st.rerun()
    _draw_in_use(app, language, "loading")


def _draw_in_use(app: App, language: Language, models: Literal["ready", "loading", "failed"]) -> None:
    pages = count_pages(app, current_library(app))
    state = label(f"in_use_{models}", language)
    parts = [page_count(pages, language) if pages else label("in_use_no_pages", language), state]
    if session().chat is None and not app.settings.has_chat_model:
        parts.append(label("in_use_quotes", language))
    st.caption(f":{_DOTS[models]}[●] {' · '.join(parts)}")
