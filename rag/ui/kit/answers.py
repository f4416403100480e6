"""A turn's answer as it can be shown now: the one in memory, which knows its texts, else the stored one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from rag.conversations.conversations import PageStamp, is_outdated
from rag.errors import RagError
from rag.types import Answer, Citation, Passage
from rag.ui.kit.attempt import unless_away
from rag.ui.kit.scope import Scope
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

PageNow = Literal["newer", "gone", "off_site"]


def answer_of(app: App, library: str, turn: TurnView) -> Answer | None:
    """None while the run is in progress. Passages of a saved answer get their texts from the library, if there."""
    if turn.run_id:
        with suppress(RagError):
            kept = app.answer(turn.run_id, session().owner)
            if kept is not None or turn.state == "running":
                return kept
    answer = turn.answer
    return None if answer is None else unless_away(lambda: _with_texts(app, library, answer)) or answer


def _with_texts(app: App, library: str, answer: Answer) -> Answer:
    """An answer is stored without the texts of its passages; a changed page's are not made up.

    A passage may have been merged with its neighbours, so its span is cut out of the page; that its id is still
    there tells that the page has the same text.
    """
    bare = [passage for passage in answer.passages if not passage.text]
    if not bare:
        return answer
    homes = {one.id: home_of(app, library, one) for one in bare}
    texts: dict[str, str] = {}
    for home in set(homes.values()):
        store, own = app.library(home), [one for one in bare if homes[one.id] == home]
        there = {passage.id for passage in store.passages([one.id for one in own])}
        pages = store.texts([one.url_hash for one in own if one.id in there])
        texts |= {one.id: pages.get(one.url_hash, "")[one.start : one.end] for one in own if one.id in there}
    whole = (replace(one, text=one.text or texts.get(one.id, "")) for one in answer.passages)
    return replace(answer, passages=tuple(one for one in whole if one.text))


def home_of(app: App, library: str, source: Citation | Passage) -> str:
    """The library that a source is from, while it is there: that of the conversation where only one was searched."""
    return source.library if source.library and app.libraries.has(source.library) else library


def libraries_of(app: App, library: str, turn: TurnView) -> list[str]:
    """Return the libraries of the turn that still exist."""
    others = Scope.revived(turn.settings.get("scope", {})).libraries
    return [library, *(name for name in others if app.libraries.has(name))]


def pages_now(app: App, library: str, turn: TurnView) -> dict[str, PageNow]:
    """Return the changed states of the pages that the turn cites, by url_hash."""
    if not turn.stamps:
        return {}
    known = unless_away(lambda: app.reading(libraries_of(app, library, turn)).known(list(turn.stamps)))
    if known is None:
        return {}
    states: dict[str, PageNow] = {key: "off_site" for key, page in known.items() if page.status == "gone"}
    for key, state in is_outdated(turn, {key: PageStamp.of(page) for key, page in known.items()}).items():
        states[key] = "gone" if state == "gone" else "newer"
    return states
