"""The frame around every page: title, navigation, sidebar, notices and error handling."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import streamlit as st

from rag.errors import RagError, StoreUnavailableError
from rag.locales import Language, label, say
from rag.store.values import SCREEN_SECONDS, wait_limit
from rag.ui.chat.conversations import apply_url, draw_conversation_list, open_conversation
from rag.ui.kit.actions import draw_failure
from rag.ui.kit.browser import send_to_browser
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import (
    PAGES_OF_PARAMS,
    current_language,
    draw_language_switch,
    draw_manage_menu,
    draw_navigation,
    go,
    shared_links,
)
from rag.ui.kit.parts import draw_button, page_count
from rag.ui.kit.session import check_arrival, count_pages, current_library, get_app, load_chat_model, session, set_param
from rag.ui.library.libraries import draw_library_picker, select_existing_library
from rag.ui.settings.sign_in import admit, draw_person, lacks_access

if TYPE_CHECKING:
    from rag.app import App

_STATIC = Path(__file__).resolve().parent / "static"
_LOGO, _ICON = _STATIC / "logo.svg", _STATIC / "icon.svg"
_WAIT_SECONDS = 0.25
_REPORT_SECONDS = 2.0
_RETRY_SECONDS = 2.0
_DOTS = {"ready": "green", "loading": "orange", "failed": "red"}

logger = logging.getLogger(__name__)


def draw_shell() -> None:
    """Draw the frame, then the selected page."""
    has_arrived = check_arrival()  # before parameters are added to the URL
    language = current_language()
    st.set_page_config(page_title=label("app_name", language), page_icon=str(_ICON), layout="centered")
    st.logo(str(_LOGO), icon_image=str(_ICON), size="large")
    page = draw_navigation(language, hidden=True) if lacks_access() else draw_navigation(language)
    app = open_app(language)
    admit(app, language)
    app = open_app(language)  # for the user just admitted
    load_chat_model(app)
    labels = {name: label(name, language) for name in ("skip", "upload", "copied", "offline", "page_unknown", "keys")}
    send_to_browser("frame", language=label("language_tag", language), **labels)
    if not page.url_path and (links := shared_links()):
        go("add", add=links)
    state = session()
    if moved := state.page != page.url_path:
        state.page, state.shown_conversation, state.missing_library_notice, state.sources = page.url_path, "", None, {}
        # Streamlit first adds the parameters of the page that `go` opens to the URL of the last one, where Back leads.
        for name, users in PAGES_OF_PARAMS.items():
            if page.url_path not in users:
                set_param(name, "")
    head = st.container(key="away")
    with show_errors(language), wait_limit(SCREEN_SECONDS), suppress(StoreUnavailableError):  # shown at the top
        if has_arrived or moved:
            apply_url(app, moved=moved)
        select_existing_library(app, language)
        unread = _unread(app, in_chat=page.url_path == "")
        st.set_page_config(page_title=_title(app, page.title, language, unread))
        _draw_sidebar(app, language, unread)
        with st.container(key="phone-new"):  # in the header of narrow screens, where the sidebar is closed
            if draw_button(label("talk_new", language), "edit_square", "phone-talk-new", type="tertiary"):
                open_conversation(app, "")
                go("chat")
        page.run()
    app.models.end_delay()  # the page is drawn
    if app.outage():
        with head:
            st.fragment(_wait_for_database, run_every=_RETRY_SECONDS)(app, language)
    notices = session().notices
    while notices:
        st.toast(escape_line(say(notices.pop(0), language)))


def _wait_for_database(app: App, language: Language) -> None:
    """Show that the database is unreachable, and redraw the page once it is back."""
    if (notice := app.outage()) is None:
        st.rerun()
    text = f"{say(notice, language)} {label('away_looking', language)}"
    st.warning(escape_line(text), icon=":material/cloud_off:")


def _title(app: App, page: str, language: Language, unread: Sequence[str]) -> str:
    prefix = f"● {label('report_ready', language)} · " if unread or session().report_arrived else ""
    return f"{prefix}{page} · {app.libraries.title(current_library(app))} · {label('app_name', language)}"


def _unread(app: App, *, in_chat: bool) -> list[str]:
    """Return the conversations with an unread report, and mark the open one as read.

    If its report arrived during an automatic redraw, the tab's title shows that until the user's next action.
    """
    state, library = session(), current_library(app)
    unread = app.conversations.unread(library, state.owner)
    state.report_arrived = state.report_arrived and state.is_auto_redraw
    if in_chat and state.conversation in unread:
        app.conversations.mark_read(state.conversation, state.owner)
        unread.remove(state.conversation)
        state.report_arrived = state.is_auto_redraw
    state.is_auto_redraw = False
    return unread


def _check_reports(app: App, unread: Sequence[str]) -> None:
    """Redraw the page when a report is finished, to update the tab's title and the list."""
    if app.conversations.unread(current_library(app), session().owner) != unread:
        session().is_auto_redraw = True
        st.rerun()


def open_app(language: Language) -> App:
    """Return the application for the signed-in user; if it cannot be opened, show why and stop the run."""
    try:
        with st.spinner(label("opening", language), show_time=False):
            return get_app().for_person(session().person)
    except RagError as error:
        st.markdown(f"# {label('start_failed', language)}")
        draw_failure(error.notice, language)
        st.button(label("retry", language))
        st.stop()


@contextmanager
def show_errors(language: Language) -> Iterator[None]:
    """Show a RagError raised in the block as one sentence, in place of the rest of the block."""
    try:
        yield
    except RagError as error:
        draw_failure(error.notice, language)


def report_unexpected(error: Exception) -> bool:
    """Log an unexpected error, and show it on the page without its details."""
    logger.error("A page failed", exc_info=error)
    st.error(label("app_failed", current_language()), icon=":material/error:")
    return True


def _draw_sidebar(app: App, language: Language, unread: Sequence[str]) -> None:
    with st.sidebar:
        draw_library_picker(app, language)
        with show_errors(language):
            draw_conversation_list(app, current_library(app), language, unread)
        if app.count_running("research", "judge"):  # their answers are reports
            st.fragment(_check_reports, run_every=_REPORT_SECONDS)(app, unread)
        with st.container(key="sidebar-foot"):
            draw_person(language)
            _draw_state(app, language)
            with st.container(horizontal=True, vertical_alignment="center", key="sidebar-switches"):
                draw_language_switch("sidebar-language")
                draw_manage_menu(language)


def _draw_state(app: App, language: Language) -> None:
    if app.outage():
        _draw_status(f":{_DOTS['failed']}[●] {label('in_use_away', language)}")
    elif app.models.ready():
        _draw_in_use(app, language, "ready")
    elif problem := app.models.problem():
        _draw_in_use(app, language, "failed")
        draw_failure(problem, language)
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
    _draw_status(f":{_DOTS[models]}[●] {' · '.join(parts)}")


def _draw_status(words: str) -> None:
    """Draw the status as a link to Settings, which has the details."""
    if st.button(words, type="tertiary", key="status", width="stretch"):
        go("settings")
