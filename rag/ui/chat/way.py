"""Which way a message went and why, what it wished for, what was saved of it; one click chooses another way."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.errors import RagError
from rag.messages import say
from rag.types import SAVED, Notice
from rag.ui.chat.asking import ask_first
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.job_progress import draw_progress
from rag.ui.kit.navigation import go
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_ICONS = {
    "ask": "forum",
    "save": "bookmark_add",
    "save_then_ask": "bookmark_add",
    "summarise": "summarize",
    "what_changed": "update",
    "statistics": "monitoring",
    "calculate": "calculate",
    "date": "calendar_today",
    "web": "public",
    "small_talk": "waving_hand",
    "unknown": "help",
}
_PLAIN = {"route": "ask", "addresses": (), "job": ""}
_SAVING = ("save", "save_then_ask")
_LONGEST, _SHOWN = 60, 5
_STOP_SECONDS = 2.0


def draw_way(app: App, library: str, turn: TurnView, told: Mapping[str, Any], language: Language) -> None:
    """One line, with another way behind it; below, what was wished for and what became of what is saved."""
    route = told["route"]
    with st.container(horizontal=True, vertical_alignment="center", key=f"way-{turn.id}", gap="small"):
        reason = (
            escape_line(say(Notice(**told["reason"]), language)) if route != "ask" or told["by"] != "classifier" else ""
        )
        line = f":material/{_ICONS[route]}: **{label(f'way_{route}', language)}**"
        st.caption(f"{line} · {reason}" if reason else line, width="content")
        _draw_wishes(app, library, turn, told, language)
        if route != "ask":
            _draw_choice(app, library, turn, told, "ask", language)
        with st.popover(label("way_other", language), type="tertiary", key=f"way-other-{turn.id}"):
            for other in _others(told):
                _draw_choice(app, library, turn, told, other, language)
    _draw_confirm(app, library, turn, told, language)
    _draw_saving(app, turn, told, language)


def draw_ways(app: App, library: str, turn: TurnView, language: Language) -> None:
    """The ways that a message could have gone which was taken for a plain question."""
    st.caption(label("way_instead", language))
    for other in _others(_PLAIN):
        _draw_choice(app, library, turn, _PLAIN, other, language)


def _draw_choice(
    app: App, library: str, turn: TurnView, told: Mapping[str, Any], route: str, language: Language
) -> None:
    st.button(
        label("way_ask_instead" if route == "ask" else f"way_{route}", language),
        icon=f":material/{_ICONS[route]}:",
        type="tertiary",
        key=f"way-{route}-{turn.id}",
        on_click=_choose,
        args=(app, library, turn, told, route, language),
    )


def _others(told: Mapping[str, Any]) -> list[str]:
    """The ways that the message could go instead, beside a question."""
    saves = bool(told["addresses"] or told.get("job"))
    possible = (one for one in _ICONS if saves or one not in _SAVING)
    return [one for one in possible if one not in (told["route"], "ask", "small_talk", "unknown")]


def _draw_wishes(app: App, library: str, turn: TurnView, told: Mapping[str, Any], language: Language) -> None:
    for kind, words in told["wishes"].items():
        st.button(
            escape_line(shorten(words, _LONGEST)),
            icon=":material/close:",
            icon_position="right",
            key=f"wish-{kind}-{turn.id}",
            help=label("way_wish_off", language, kind=label(f"wish_{kind}", language)),
            on_click=_again,
            args=(app, library, turn),
            kwargs={**_kept(told), "without": _without(told, kind)},
        )


def _without(told: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    return (*told.get("without", ()), kind)


def _kept(told: Mapping[str, Any]) -> dict[str, Any]:
    """What was handed in beside the words of the message, to be handed in again."""
    return {"saving": told["job"]} if told.get("job") and not told["addresses"] else {}


def _draw_confirm(app: App, library: str, turn: TurnView, told: Mapping[str, Any], language: Language) -> None:
    if told.get("confirm"):
        st.button(
            label("way_confirm", language, count=told["confirm"]),
            type="primary",
            icon=":material/bookmark_add:",
            key=f"way-confirm-{turn.id}",
            on_click=_again,
            args=(app, library, turn),
            kwargs={"confirmed": True},
        )


def _draw_saving(app: App, turn: TurnView, told: Mapping[str, Any], language: Language) -> None:
    """How far it is, while it goes on; then what became of each source."""
    if told.get("job") and "saved" not in told:
        with suppress(RagError):
            draw_progress(app, app.imports.jobs.job(told["job"]), language)
        return
    rows = told.get("saved", ())
    for place, row in enumerate(rows[:_SHOWN]):
        good = row["status"] in SAVED
        icon = ":green[:material/check:]" if good else ":orange[:material/error:]"
        sentence = escape_line(say(Notice(**row["notice"]), language)) if row["notice"] else ""
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"saved-{place}-{turn.id}"):
            st.caption(f"{icon} {escape_line(shorten(row['source'], _LONGEST))} · {sentence}", width="content")
            key = f"saved-open-{place}-{turn.id}"
            if good and st.button(label("way_open", language), type="tertiary", key=key):
                go("library", page=row["url_hash"])
    if len(rows) > _SHOWN and st.button(
        label("way_all", language, count=len(rows)), type="tertiary", key=f"saved-all-{turn.id}"
    ):
        go("add", job=told["job"])


def _choose(app: App, library: str, turn: TurnView, told: Mapping[str, Any], route: str, language: Language) -> None:
    """Another way for this message, and for those like it."""
    if attempt(lambda: app.overrule(library, turn.question, route, session().owner), language):
        _again(app, library, turn, route=route, **_kept(told))


def _again(app: App, library: str, turn: TurnView, **options: Any) -> None:
    """Send the message again; where its run goes on still, that is ended first."""
    with suppress(RagError, TimeoutError):
        app.cancel(turn.run_id)
        app.wait(turn.run_id, _STOP_SECONDS)
    ask_first(app, library, turn.question, **options)
