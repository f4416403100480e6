"""The selected library, and actions on libraries: create, rename, delete, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError, StoreAwayError
from rag.locales import Language, label, say
from rag.types import Notice
from rag.ui.kit.actions import attempt, attempt_here, draw_decision, draw_failure
from rag.ui.kit.choices import Scope
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import moment, page_count
from rag.ui.kit.session import Session, count_pages, current_library, session, set_param, show, stay

if TYPE_CHECKING:
    from rag.app import App

_LONGEST_TITLE = 60


def settle_library(app: App, language: Language) -> None:
    """Select a library that exists: if the tab's one does not, say so and take the first."""
    state = session()
    try:
        app.libraries.check(current_library(app))
    except StoreAwayError:
        return
    except RagError as error:
        others = [info.name for info in app.libraries.infos()]
        default = app.settings.rag_library
        use_library(others[0] if others and default not in others else default)
        state.absent = error.notice
    if state.absent:
        st.warning(escape_line(say(state.absent, language)), icon=":material/info:")


def use_library(name: str) -> None:
    """Switch this tab to another library, and reset what it showed of the one before."""
    _select(session(), name)
    show("")
    for param in ("job", "find", "page"):
        set_param(param, "")


def _select(state: Session, name: str) -> None:
    state.library, state.scope, state.search, state.absent, state.conversation = name, Scope(), None, None, ""


def draw_picker(app: App, language: Language) -> None:
    """Draw the choice of libraries, and the button that creates one."""
    current = current_library(app)
    titles = {info.name: info.display_name for info in app.libraries.infos()}
    titles.setdefault(current, current)  # not listed while the engine is away
    # Each library has separate fields, so that a late click changes nothing in another one.
    picker = f"library-picker-{current}"
    st.selectbox(
        label("library", language),
        list(titles),
        list(titles).index(current),
        key=picker,
        format_func=lambda name: titles.get(name, name),
        help=label("library_help", language),
        on_change=lambda: use_library(st.session_state[picker]),
    )
    set_param("library", "" if current == app.settings.rag_library else current)
    with (
        st.popover(label("library_new", language), icon=":material/add:", type="tertiary", key=f"new-beside-{current}"),
        st.form(f"library-new-{current}", border=False),
    ):
        title = draw_title_field(f"library-name-{current}", language)
        if st.form_submit_button(
            label("library_create", language), type="primary", key="library-create", on_click=stay
        ):
            _create(app, title, language)
        else:
            session().made = None


def draw_title_field(key: str, language: Language, title: str = "") -> str:
    """Draw a field for a library's title."""
    hint = label("library_new_hint", language)
    name = label("library_new_name", language)
    return st.text_input(name, title, key=key, placeholder=hint, max_chars=_LONGEST_TITLE) or ""


def _create(app: App, title: str, language: Language) -> None:
    """Create a library and switch to it, only once if the form is sent twice.

    Streamlit ends this run for the next click wherever its state is read, but not between the two.
    """
    state = session()
    try:
        if state.made != title:
            _select(state, app.libraries.create(title))
            state.made = title
    except RagError as error:
        draw_failure(error.notice, language)
        return
    use_library(state.library)
    st.rerun()


def draw_rename(app: App, library: str, language: Language) -> None:
    title = app.libraries.title(library)
    with st.popover(label("library_rename", language), icon=":material/edit:", key=f"rename-{library}-{title}"):
        new_title = draw_title_field(f"rename-title-{library}", language, title)
        submitted = st.button(label("library_rename_go", language), type="primary", key="library-rename")
        if submitted and attempt_here(lambda: app.libraries.rename(library, new_title), language):
            st.rerun()


def draw_removal(app: App, library: str, language: Language) -> None:
    """Draw the button that deletes a library; the one that opens first stays and has none."""
    if library == app.settings.rag_library:
        return
    text, icon = label("library_remove", language), ":material/delete:"
    if st.button(text, icon=icon, type="tertiary", key="library-remove"):
        _confirm_remove(app, library, app.libraries.title(library), language)


def _confirm_remove(app: App, library: str, title: str, language: Language) -> None:
    @st.dialog(label("library_remove_title", language))
    def ask() -> None:
        pages = page_count(count_pages(app, library), language)
        st.markdown(label("library_remove_sentence", language, title=escape_line(title), pages=pages))
        if draw_decision(label("library_remove_go", language), "library-remove-go", language):
            done = Notice("library_removed_done", {"title": title})
            if attempt(lambda: app.remove_library(library), done):
                use_library(app.settings.rag_library)
            st.rerun()

    ask()


def draw_removed(app: App, language: Language) -> None:
    """Draw the deleted libraries that can be restored."""
    for info in app.libraries.removed_libraries():
        until = moment(info.restorable_until.isoformat())
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"removed-{info.name}"):
            st.caption(label("library_kept", language, title=escape_line(info.display_name), until=until))
            if st.button(label("library_restore", language), icon=":material/undo:", key=f"restore-{info.name}"):
                if attempt(lambda name=info.name: app.libraries.restore(name)):  # type: ignore[misc]
                    use_library(info.name)
                st.rerun()
