"""Sign-in, if `.streamlit/secrets.toml` has an [auth] section: the user, their access, and signing out.

Without it the app is open to everyone who can reach it, unless AUTH_ALLOW is set: then it is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import streamlit as st

from rag.access import build_person, extract_email, find_refusal
from rag.locales import Language, label
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import draw_language_switch
from rag.ui.kit.parts import draw_button
from rag.ui.kit.session import disconnect_chat_model, get_app, session

if TYPE_CHECKING:
    from rag.app import App


def user_claims() -> Mapping[str, Any] | None:
    """Return the user's claims, at least `is_logged_in`; None if sign-in is not set up."""
    attributes: Mapping[str, Any] = st.user.to_dict()
    return attributes if "is_logged_in" in attributes else None


def lacks_access() -> bool:
    """Return whether the visitor must sign in or has no access."""
    attributes = user_claims()
    return session().refused or (attributes is not None and not attributes.get("is_logged_in"))


def is_administrator(app: App) -> bool:
    """Return whether the user may change settings for everyone; without sign-in, everyone may."""
    attributes, admins, issuers = user_claims(), app.settings.auth_admins, app.settings.auth_verified_issuers
    return attributes is None or (
        bool(attributes.get("is_logged_in")) and not find_refusal(attributes, admins, issuers)
    )


def identity_providers() -> list[str]:
    """Return the names of the identity providers to choose from; one empty name if there is only one."""
    section: Mapping[str, Any] = st.secrets.get("auth", {})
    names = [name for name, value in section.items() if isinstance(value, Mapping) and "client_id" in value]
    return [""] if "client_id" in section or not names else names


def admit(app: App, language: Language) -> None:
    """Admit users who have access; for others draw the reason and stop the run."""
    attributes, allowed, issuers = user_claims(), app.settings.auth_allow, app.settings.auth_verified_issuers
    if attributes is None:
        session().person = None
        if allowed:
            _refuse("not_set_up", {}, language, can_sign_out=False)
        _set_refused(False)
        return
    if not attributes.get("is_logged_in"):
        disconnect_chat_model(app)
        session().person, session().admitted = None, False
        _draw_sign_in(language)
    if reason := find_refusal(attributes, allowed, issuers):
        session().person = None
        _refuse(reason, attributes, language)
    session().person = build_person(
        attributes,
        admins=app.settings.auth_admins,
        verified_issuers=issuers,
        groups_claim=app.settings.auth_groups_claim,
    )
    _set_refused(False)


def _draw_sign_in(language: Language) -> NoReturn:
    with st.container(key="sign-in", horizontal_alignment="center"):
        st.markdown(f"# {label('door_title', language)}", anchors=False)
        st.markdown(label("door_lead", language))
        for name in identity_providers():
            words = label("door_go_to", language, name=escape_line(name)) if name else label("door_go", language)
            if draw_button(words, "login", f"sign-in-{name}", type="primary"):
                st.login(name or None)
        draw_language_switch("language-sign-in")
    st.stop()


def _set_refused(refused: bool) -> None:
    """Store the result, and redraw if the frame of the page was drawn before it was known."""
    session().admitted = not refused
    if session().refused != refused:
        session().refused = refused
        st.rerun()


def _refuse(reason: str, attributes: Mapping[str, Any], language: Language, *, can_sign_out: bool = True) -> NoReturn:
    _set_refused(True)
    with st.container(key="sign-in", horizontal_alignment="center"):
        st.markdown(f"# {label('door_closed', language)}", anchors=False)
        params = {"address": extract_email(attributes), "issuer": str(attributes.get("iss") or "")}
        st.markdown(label(f"door_{reason}", language, **{name: escape_line(value) for name, value in params.items()}))
        if can_sign_out:
            _draw_sign_out(language, "refused-sign-out")
        draw_language_switch("language-sign-in")
    st.stop()


def _draw_sign_out(language: Language, key: str) -> None:
    if draw_button(label("sign_out", language), "logout", key, type="tertiary"):
        disconnect_chat_model(get_app())
        st.logout()


def draw_person(language: Language) -> None:
    """Draw the signed-in user with Sign out, or the note that conversations are shared."""
    person = session().person
    if person is None:
        st.caption(f":material/group: {label('shared_by_all', language)}")
        return
    with st.container(horizontal=True, vertical_alignment="center", key="person", gap="small"):
        st.caption(f":material/person: {escape_line(person.name)}")
        _draw_sign_out(language, "sign-out")
