"""Roles in a library, as its owners see and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.app.roles import EVERYONE, ROLES
from rag.ui.kit.attempt import attempt, attempt_here
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import moment
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.store.sql.grant_table import Role


def draw_access(app: App, library: str, language: Language) -> None:
    """The button to the roles; nothing without sign-in, or for people who don't own the library."""
    if session().person is None or not app.roles.has(library, "owner"):
        return
    with st.popover(label("access", language), icon=":material/group:", key=f"access-{library}"):
        st.caption(label("access_lead", language))
        _everyone(app, library, language)
        for grant in app.roles.grants(library):
            if grant.subject != EVERYONE:
                _grant(app, library, grant.subject, grant.role, language)
        _add(app, library, language)
        with st.expander(label("access_log", language), type="compact"):
            _log(app, library, language)


def _everyone(app: App, library: str, language: Language) -> None:
    """What everyone who is signed in may do."""
    roles: list[Role] = list(ROLES[:-1])
    now = next((one.role for one in app.roles.grants(library) if one.subject == EVERYONE), "editor")
    key = f"access-everyone-{library}"

    def change() -> None:
        attempt(lambda: app.roles.grant(library, EVERYONE, st.session_state[key]))

    st.selectbox(
        label("access_everyone", language),
        roles,
        roles.index(now) if now in roles else 0,
        key=key,
        format_func=lambda role: label(f"role_{role}_does", language),
        on_change=change,
    )


def _grant(app: App, library: str, subject: str, role: Role, language: Language) -> None:
    def revoke() -> None:
        attempt(lambda: app.roles.revoke(library, subject))

    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    row.markdown(f"{escape_line(subject)} · {label(f'role_{role}', language)}")
    row.button(label("access_revoke", language), key=f"access-revoke-{subject}", type="tertiary", on_click=revoke)


def _add(app: App, library: str, language: Language) -> None:
    with st.form(f"access-add-{library}", border=False, clear_on_submit=False):
        subject = st.text_input(label("access_subject", language), placeholder="ann@example.com", key="access-subject")
        chosen = st.selectbox(
            label("access_role", language),
            ROLES[1:],
            key="access-role",
            format_func=lambda role: label(f"role_{role}_does", language),
        )
        if st.form_submit_button(label("access_grant", language), type="primary", key="access-grant") and attempt_here(
            lambda: app.roles.grant(library, subject or "", chosen), language
        ):
            st.rerun()


def _log(app: App, library: str, language: Language) -> None:
    entries = app.roles.entries(library)
    for one in entries[:50]:
        what = label(f"audit_{one.action}", language, detail=one.detail)
        st.caption(escape_line(f"{moment(one.at)} · {one.person} · {what}"))
    if not entries:
        st.caption(label("access_log_empty", language))
