"""Roles in a library, for its owners to view and change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.app.roles import EVERYONE, ROLES
from rag.locales import Language, label
from rag.ui.kit.actions import attempt, attempt_here
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import draw_button, format_time
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App
    from rag.store.sql.small_tables import Role


def draw_access(app: App, library: str, language: Language) -> None:
    """Draw the button that opens the roles; nothing without sign-in, or if the user doesn't own the library."""
    if session().person is None or not app.roles.has(library, "owner"):
        return
    with st.popover(label("access", language), icon=":material/group:", key=f"access-{library}"):
        st.caption(label("access_lead", language))
        _draw_everyone(app, library, language)
        for grant in app.roles.grants(library):
            if grant.subject != EVERYONE:
                _draw_grant(app, library, grant.subject, grant.role, language)
        with st.form(f"access-add-{library}", border=False, clear_on_submit=False):
            name = label("access_subject", language)
            subject = st.text_input(name, placeholder="ann@example.com", key="access-subject")
            selected = st.selectbox(
                label("access_role", language),
                ROLES[1:],
                key="access-role",
                format_func=lambda role: label(f"role_{role}_does", language),
            )
            submitted = st.form_submit_button(label("access_grant", language), type="primary", key="access-grant")
            if submitted and attempt_here(lambda: app.roles.grant(library, subject or "", selected), language):
                st.rerun()
        with st.expander(label("access_log", language), type="compact"):
            entries = app.roles.entries(library)
            for entry in entries[:50]:
                text = label(f"audit_{entry.action}", language, detail=entry.detail)
                st.caption(escape_line(f"{format_time(entry.at)} · {entry.person} · {text}"))
            if not entries:
                st.caption(label("access_log_empty", language))


def _draw_everyone(app: App, library: str, language: Language) -> None:
    roles: list[Role] = list(ROLES[:-1])
    current = next((grant.role for grant in app.roles.grants(library) if grant.subject == EVERYONE), "editor")
    key = f"access-everyone-{library}"

    def change() -> None:
        attempt(lambda: app.roles.grant(library, EVERYONE, st.session_state[key]))

    st.selectbox(
        label("access_everyone", language),
        roles,
        roles.index(current) if current in roles else 0,
        key=key,
        format_func=lambda role: label(f"role_{role}_does", language),
        on_change=change,
    )


def _draw_grant(app: App, library: str, subject: str, role: Role, language: Language) -> None:
    revoke = partial(app.roles.revoke, library, subject)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"{escape_line(subject)} · {label(f'role_{role}', language)}")
        text, key = label("access_revoke", language), f"access-revoke-{subject}"
        draw_button(text, "", key, attempt, revoke, type="tertiary")
