"""Found by a small chunk, read as the section around it: the `parent` chunker's other half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag.store.library import Library
from rag.store.records import white_space_before
from rag.store.search import Hit
from rag.types import Passage


def with_parents(hits: Sequence[Hit], library: Library) -> list[Hit]:
    """`hits` in order, each that has a parent as that, once for each parent: the best child's place, score and ranks.

    Its text is read from the page, its start and end are the parent's, its id is the parent's own, whichever
    child it was found by. Its vector stays the child's. A hit without a parent stays as it is.
    """
    return [
        replace(hits[place], passage=passage) for place, passage in _widened([hit.passage for hit in hits], library)
    ]


def widened(passages: Sequence[Passage], library: Library) -> list[Passage]:
    """The same for passages."""
    return [passage for _, passage in _widened(passages, library)]


def _widened(passages: Sequence[Passage], library: Library) -> Iterator[tuple[int, Passage]]:
    """The places in `passages` that are kept, with what is handed on there."""
    texts = library.texts([passage.url_hash for passage in passages if passage.parent])
    seen: set[str] = set()
    for place, child in enumerate(passages):
        passage = _parent_of(child, texts.get(child.url_hash, ""))
        if passage.id not in seen:
            seen.add(passage.id)
            yield place, passage


def _parent_of(child: Passage, text: str) -> Passage:
    """The passage around `child`; the child itself where it has none, or where the page has changed since."""
    if child.parent is None:
        return child
    start, end = child.parent
    if text[child.start : child.end] != child.text or end > len(text):
        return child
    return replace(
        child,
        id=child.parent_id,
        text=text[start:end],
        start=start,
        end=end,
        lead=white_space_before(text, start),
        parent=None,
        parent_id="",
    )
