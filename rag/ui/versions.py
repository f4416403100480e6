"""The texts that a page had, and what changed from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.ingest.diff import page_diff
from rag.types import Page, PageVersion
from rag.ui.diff_html import diff_html
from rag.ui.parts import moment
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.ingest.diff import DiffPiece

_LONGEST = 200_000


def draw_versions(app: App, library: str, page: Page, language: Language) -> None:
    """A choice of two versions that follow each other, the latest first, and their difference."""
    versions = app.library(library).versions(page.url_hash)
    if len(versions) < 2:
        since = moment(versions[0].since if versions else page.added_at)
        st.info(label("versions_one", language, since=since), icon=":material/history:")
        return
    changes = list(range(len(versions) - 1, 0, -1))
    place = st.selectbox(
        label("versions_change", language),
        changes,
        format_func=lambda n: change_name(versions[n - 1], versions[n], language),
        key=f"change-{page.url_hash}",
    )
    place = place if place in changes else changes[0]
    _draw_difference(versions[place - 1], versions[place], language)


def change_name(old: PageVersion, new: PageVersion, language: Language) -> str:
    return label("versions_step", language, old=old.number, new=new.number, when=moment(new.since or old.until))


def _draw_difference(old: PageVersion, new: PageVersion, language: Language) -> None:
    if old.title != new.title:
        st.caption(label("versions_title", language))
        st.html(diff_html([("removed", old.title), ("added", " "), ("added", new.title)], language))
    pieces = page_diff(old.text, new.text)
    if not any(piece.kind != "same" for piece in pieces):
        st.info(label("versions_same_text", language), icon=":material/equal:")
        return
    st.caption(_amount(pieces, language))
    shown = [(piece.kind, piece.text) for piece in _within(pieces, _LONGEST)]
    with st.container(border=True, key="version-diff"):
        st.html(diff_html(shown, language))
    if len(shown) < len(pieces):
        st.caption(label("versions_cut", language))


def _amount(pieces: Sequence[DiffPiece], language: Language) -> str:
    added = sum(len(piece.text) for piece in pieces if piece.kind == "added")
    removed = sum(len(piece.text) for piece in pieces if piece.kind == "removed")
    places = sum(piece.kind != "same" and (n == 0 or pieces[n - 1].kind == "same") for n, piece in enumerate(pieces))
    told = counted("versions_places_one", "versions_places", places, language)
    return f"{told} · {label('versions_amount', language, added=f'{added:,}', removed=f'{removed:,}')}"


def _within(pieces: Sequence[DiffPiece], limit: int) -> list[DiffPiece]:
    """The first pieces, until they hold more than `limit` characters."""
    shown: list[DiffPiece] = []
    for piece in pieces:
        if limit <= 0:
            break
        shown.append(piece)
        limit -= len(piece.text)
    return shown
