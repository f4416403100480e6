"""The route of a message: its reason, applied inline options, saved sources, and other routes to choose."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, say
from rag.types import SAVED, Notice
from rag.ui.chat.asking import ask, start_answer
from rag.ui.kit.actions import attempt, confirm_removal, none_if_unavailable
from rag.ui.kit.job_progress import draw_import_card, draw_progress
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button
from rag.ui.kit.session import jobs_of, session
from rag.web.urls import mentions_any

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_ICONS = {  # in the order of the menu
    "ask": "forum",
    "save": "bookmark_add",
    "save_then_ask": "bookmark_add",
    "summarise": "summarize",
    "what_changed": "update",
    "statistics": "monitoring",
    "calculate": "calculate",
    "date": "calendar_today",
    "web": "public",
    "remove": "delete",
    "small_talk": "waving_hand",
    "unknown": "help",
}
_PLAIN = {"route": "ask", "addresses": (), "job": ""}
_SAVING = ("save", "save_then_ask")
_LONGEST, _LIMIT = 60, 5
_STOP_SECONDS = 2.0


def draw_route(app: App, library: str, turn: TurnView, data: Mapping[str, Any], language: Language) -> None:
    """Draw chips for the route and applied inline options, a menu of other routes, and the results of saving."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"way-{turn.id}", gap="xsmall"):
        if (route := data["route"]) != "ask":
            text = f":material/{_ICONS[route]}: {label(f'way_{route}', language)}"
            hint = f"{escape_line(say(Notice(**data['reason']), language))}  \n{label('way_undo', language)}"
            undo = partial(_choose, app, library, turn, data, "ask")
            draw_button(text, "close", f"route-{turn.id}", undo, icon_position="right", help=hint)
        for kind, words in data["wishes"].items():
            text, key = escape_line(shorten(words, _LONGEST)), f"inline-option-{kind}-{turn.id}"
            without = (*data.get("without", ()), kind)
            resend = partial(_resend, app, library, turn, without=without, **_attachments(data))
            hint = label("way_wish_off", language, kind=label(f"wish_{kind}", language))
            draw_button(text, "close", key, resend, icon_position="right", help=hint)
        draw_route_menu(app, library, turn, language, data)
    if data.get("confirm"):
        text = label("way_confirm", language, count=data["confirm"])
        resend = partial(_resend, app, library, turn, confirmed=True)
        draw_button(text, "bookmark_add", f"way-confirm-{turn.id}", resend, type="primary")
    _draw_saving(app, library, turn, data, language)


def draw_route_menu(
    app: App, library: str, turn: TurnView, language: Language, data: Mapping[str, Any] = _PLAIN
) -> None:
    """Draw the menu of other routes for a message; by default for one that was routed as a plain question."""
    saves = bool(data["addresses"] or data.get("job"))
    unavailable = {data["route"], "small_talk", "unknown"} | (set() if saves else set(_SAVING))
    if app.imports.web_search is None:
        unavailable.add("web")
    options = [key for key in _ICONS if key not in unavailable]

    def line(route: str) -> str:
        name = label("way_ask_instead" if route == "ask" else f"way_{route}", language)
        return f":material/{_ICONS[route]}: {name}"

    st.menu_button(
        label("way_other", language),
        options,
        format_func=line,
        type="tertiary",
        key=f"way-other-{turn.id}",
        on_click=_choose_other,
        args=(app, library, turn, data),
    )


def _choose_other(app: App, library: str, turn: TurnView, data: Mapping[str, Any]) -> None:
    if route := st.session_state[f"way-other-{turn.id}"]:
        _choose(app, library, turn, data, route)


def _attachments(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message's attachments, to send them again."""
    return {"saving": data["job"]} if data.get("job") and not data["addresses"] else {}


def draw_page_removal(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw a button for each page to remove or, if none matches, each nearest page; a dialog asks for confirmation."""
    rows = turn.route.get("remove") or turn.route.get("near") or ()
    for place, row in enumerate(rows):
        name = row["library"] or library
        pages = none_if_unavailable(lambda name=name, row=row: app.library(name).stored_pages([row["url_hash"]]))  # type: ignore[misc]
        if pages is not None and not pages:
            text = label("way_removed", language, title=escape_line(row["title"]))
            st.caption(f":green[:material/check:] {text}")
        elif pages:
            text = escape_line(label("way_remove_page", language, title=shorten(row["title"], _LONGEST)))
            if draw_button(text, "delete", f"remove-{place}-{turn.id}"):
                confirm_removal(app, name, list(pages.values()), language, f"turn-{turn.id}-{place}")


def _draw_saving(app: App, library: str, turn: TurnView, data: Mapping[str, Any], language: Language) -> None:
    """Draw the progress of an import, then the result of each source."""
    if data.get("job") and "saved" not in data:
        with suppress(RagError):
            draw_progress(app, jobs_of(app).job(data["job"]), language)
        return
    rows = sorted(data.get("saved", ()), key=lambda row: row["status"] in SAVED)  # failures first
    hashes = [row["url_hash"] for row in rows if row["url_hash"]]
    pages = none_if_unavailable(lambda: app.library(library).stored_pages(hashes)) or {}
    if data["route"] == "save":
        saved = [row["url_hash"] for row in rows if row["status"] in SAVED]
        draw_import_card(app, library, saved, partial(ask, app, library), language, key=turn.id)
        rows = [row for row in rows if row["status"] not in SAVED]
    for place, row in enumerate(rows[:_LIMIT]):
        good = row["status"] in SAVED
        icon = ":green[:material/check:]" if good else ":orange[:material/error:]"
        page = pages.get(row["url_hash"])
        text = _saving_line(row, page.title if page else "", language)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"saved-{place}-{turn.id}"):
            st.caption(f"{icon} {escape_line(text)}", width="content")
            key = f"saved-open-{place}-{turn.id}"
            if good and st.button(label("way_open", language), type="tertiary", key=key):
                go("library", page=row["url_hash"])
    failed = bool(data.get("job")) and any(row["status"] == "failed" for row in rows)
    if failed and draw_button(label("retry", language), "replay", f"saved-retry-{turn.id}"):
        attempt(lambda: jobs_of(app).retry_failed(data["job"]))
        go("add", job=data["job"])
    if len(rows) > _LIMIT and st.button(
        label("way_all", language, count=len(rows)), type="tertiary", key=f"saved-all-{turn.id}"
    ):
        go("add", job=data["job"])


def _saving_line(row: Mapping[str, Any], title: str, language: Language) -> str:
    """Return a source's result after its page's title, else after its name unless that is part of it."""
    sentence = say(Notice(**row["notice"]), language) if row["notice"] else ""
    if not title and mentions_any(sentence, row["source"], row["url"]):
        return sentence
    return " · ".join(filter(None, (shorten(title or row["source"], _LONGEST), sentence)))


def _choose(app: App, library: str, turn: TurnView, data: Mapping[str, Any], route: str) -> None:
    """Use another route for this message and, from now on, for similar ones."""
    if attempt(lambda: app.overrule(library, turn.question, route, session().owner)):
        _resend(app, library, turn, route=route, **_attachments(data))


def _resend(app: App, library: str, turn: TurnView, **options: Any) -> None:
    """Send the message again; a run in progress is stopped first."""
    with suppress(RagError, TimeoutError):
        app.cancel(turn.run_id, session().owner)
        app.wait(turn.run_id, _STOP_SECONDS, session().owner)
    start_answer(app, library, turn.question, **options)
