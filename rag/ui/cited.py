"""Where a page was cited: the questions whose answers quote it. Shown where conversations are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import streamlit as st

from rag.ui.escape import escape_line, shorten
from rag.ui.navigation import go
from rag.ui.parts import moment
from rag.ui.session import session
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_LONGEST = 160


class CitedIn(Protocol):
    """A turn whose answer cites the page."""

    @property
    def conversation_id(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def created_at(self) -> str: ...


Citing = Callable[[str], Sequence[CitedIn]]


def citing_of(app: App, library: str) -> Citing:
    """What finds the turns of this person that cite a page of the library, by its url_hash."""
    owner = session().owner
    return lambda url_hash: app.conversations.cited(library, url_hash, owner)


def draw_cited(citing: Citing, url_hash: str, language: Language) -> None:
    """The questions, newest first, each leading to its conversation."""
    turns = citing(url_hash)
    if not turns:
        st.info(label("cited_none", language), icon=":material/format_quote:")
    for place, turn in enumerate(turns):
        with st.container(key=f"cited-{place}", gap=None):
            text = escape_line(shorten(turn.question, _LONGEST))
            if st.button(text, type="tertiary", icon=":material/forum:", key=f"cited-open-{place}"):
                go("chat", conversation=turn.conversation_id)
            st.caption(moment(turn.created_at))
