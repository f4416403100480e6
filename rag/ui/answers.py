"""A turn's answer as it can be shown now: the one in memory, which knows its texts, else the stored one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from rag.conversations.conversations import PageStamp, outdated
from rag.errors import RagError
from rag.types import Answer

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

PageNow = Literal["newer", "gone", "off_site"]


def answer_of(app: App, library: str, turn: TurnView) -> Answer | None:
    """None while the run goes on. Passages of a stored answer get their texts back where the library still has them."""
    if turn.run_id:
        with suppress(RagError):
            kept = app.answer(turn.run_id)
            if kept is not None or turn.state == "running":
                return kept
    return None if turn.answer is None else _with_texts(app, library, turn.answer)


def _with_texts(app: App, library: str, answer: Answer) -> Answer:
    """An answer is stored without the texts of its passages; a changed page's are not made up.

    A passage may have been merged with its neighbours, so its span is cut out of the page; that its id is still
    there tells that the page has the same text.
    """
    bare = [passage for passage in answer.passages if not passage.text]
    if not bare:
        return answer
    store = app.library(library)
    known = {passage.id for passage in store.passages([passage.id for passage in bare])}
    texts = store.texts([passage.url_hash for passage in bare if passage.id in known])
    whole = (
        replace(one, text=texts.get(one.url_hash, "")[one.start : one.end]) if one.id in known else one
        for one in answer.passages
    )
    return replace(answer, passages=tuple(one for one in whole if one.text))


def pages_now(app: App, library: str, turn: TurnView) -> dict[str, PageNow]:
    """What became of the pages that the turn cites, by url_hash; those that are as they were are left out."""
    if not turn.stamps:
        return {}
    known = app.library(library).known(list(turn.stamps))
    states: dict[str, PageNow] = {key: "off_site" for key, page in known.items() if page.status == "gone"}
    for key, state in outdated(turn, {key: PageStamp.of(page) for key, page in known.items()}).items():
        states[key] = "gone" if state == "gone" else "newer"
    return states
