"""A turn's current answer: the one in memory, which has its texts, or else the stored one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from rag.conversations.conversations import PageStamp, find_outdated
from rag.errors import RagError
from rag.types import Answer, Citation, Passage
from rag.ui.kit.actions import unless_away
from rag.ui.kit.choices import Scope
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

PageNow = Literal["newer", "gone", "off_site"]


def answer_of(app: App, library: str, turn: TurnView) -> Answer | None:
    """Return the turn's answer, None during its run. A stored one gets the texts of its passages from the library."""
    if turn.run_id:
        with suppress(RagError):
            current = app.answer(turn.run_id, session().owner)
            if current is not None or turn.state == "running":
                return current
    answer = turn.answer
    return None if answer is None else unless_away(lambda: _with_texts(app, library, answer)) or answer


def _with_texts(app: App, library: str, answer: Answer) -> Answer:
    """Return a stored answer with the texts of its passages; without those of changed pages.

    A passage may have been merged with its neighbours, so its span is cut out of the page; a stored passage with its id
    shows that the page has the same text.
    """
    empty = [passage for passage in answer.passages if not passage.text]
    if not empty:
        return answer
    homes = {item.id: home_of(app, library, item) for item in empty}
    texts: dict[str, str] = {}
    for home in set(homes.values()):
        store, own = app.library(home), [item for item in empty if homes[item.id] == home]
        existing = {passage.id for passage in store.passages([item.id for item in own])}
        pages = store.texts([item.url_hash for item in own if item.id in existing])
        texts |= {item.id: pages.get(item.url_hash, "")[item.start : item.end] for item in own if item.id in existing}
    whole = (replace(item, text=item.text or texts.get(item.id, "")) for item in answer.passages)
    return replace(answer, passages=tuple(item for item in whole if item.text))


def home_of(app: App, library: str, source: Citation | Passage) -> str:
    """Return the library that a source is from, if it exists, else the conversation's only one."""
    return source.library if source.library and app.libraries.has(source.library) else library


def libraries_of(app: App, library: str, turn: TurnView) -> list[str]:
    """Return the libraries of the turn that still exist."""
    others = Scope.from_plain(turn.settings.get("scope", {})).libraries
    return [library, *(name for name in others if app.libraries.has(name))]


def pages_now(app: App, library: str, turn: TurnView) -> dict[str, PageNow]:
    """Return the changed states of the pages that the turn cites, by url_hash."""
    if not turn.stamps:
        return {}
    pages = unless_away(lambda: app.reading(libraries_of(app, library, turn)).stored_pages(list(turn.stamps)))
    if pages is None:
        return {}
    states: dict[str, PageNow] = {key: "off_site" for key, page in pages.items() if page.status == "gone"}
    for key, state in find_outdated(turn, {key: PageStamp.of(page) for key, page in pages.items()}).items():
        states[key] = "gone" if state == "gone" else "newer"
    return states
