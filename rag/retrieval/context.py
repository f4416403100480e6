"""From chosen candidates to what an answer is written from: no text twice, and of each what it is worth reading.

What was found by a small chunk is read as the section around it: the `parent` chunker's other half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rag.models.sparse import SparseEncoder
from rag.retrieval.spans import BUDGET, Bounds, choose_spans
from rag.store.values import Hit
from rag.text import terms, white_space_before
from rag.types import Fate, Passage

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

NEARLY_SAME = 0.9
"""Share of terms in common from which two texts say the same."""


@dataclass(frozen=True, slots=True)
class Context:
    """`passages` in order. `fates` tells of each that is not among them why, by id, and `into` where it went.

    A passage has the text of a run of sentences of what was found, and its id. One that was put together from
    neighbours goes by the id of the part that was chosen first.
    """

    passages: tuple[Passage, ...]
    fates: dict[str, Fate] = field(default_factory=dict)
    into: dict[str, str] = field(default_factory=dict)


def assemble(
    chosen: Sequence[Passage], asked: Mapping[int, float], sparse: SparseEncoder, k: int, budget: int = BUDGET
) -> Context:
    """Put the context together from passages in order of choice, for the weighted terms that are `asked` for.

    At most k passages, which fill `budget` characters where there are as many: see `spans`.
    """
    fates: dict[str, Fate] = {}
    into: dict[str, str] = {}
    distinct: list[Passage] = []
    for passage in chosen:
        if twin := _twin(passage, distinct):
            fates[passage.id], into[passage.id] = "same_text", twin.id
        else:
            distinct.append(passage)
    kept: list[Passage] = []
    for number, bounds in choose_spans(distinct, asked, sparse, k, budget):
        span = _cut(distinct[number], bounds)
        place = next((i for i, other in enumerate(kept) if touch(span, other)), None)
        if place is None:
            kept.append(span)
        else:
            fates[span.id], into[span.id] = "merged", kept[place].id
            kept[place] = joined(kept[place], span)
    known = {passage.id for passage in kept} | fates.keys()
    fates.update((passage.id, "says_less") for passage in distinct if passage.id not in known)
    return Context(tuple(kept), fates, into)


def _twin(passage: Passage, kept: Sequence[Passage]) -> Passage | None:
    words = _words(passage.text)
    if not words:
        return None
    least, most = NEARLY_SAME * len(words), len(words) / NEARLY_SAME
    for other in kept:
        theirs = _words(other.text)
        if not least <= len(theirs) <= most:
            continue
        both = len(words & theirs)
        if both < NEARLY_SAME * (len(words) + len(theirs) - both):
            continue
        # Two rows of figures may share nearly all their words and differ in the one number that is asked for.
        if _numbers(passage.text) == _numbers(other.text):
            return other
    return None


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """Remembered: each passage is compared with all that were kept before it, and found again by later questions."""
    return frozenset(terms(text))


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def _cut(passage: Passage, bounds: Bounds) -> Passage:
    start, end = bounds
    before = passage.text[:start]
    lead = before[len(before.rstrip()) :] if start else passage.lead
    text = passage.text[start:end]
    header = "" if start else passage.header
    return replace(passage, text=text, start=passage.start + start, end=passage.start + end, lead=lead, header=header)


def touch(one: Passage, other: Passage) -> bool:
    if one.url_hash != other.url_hash:
        return False
    first, second = (one, other) if one.start < other.start else (other, one)
    return first.end + len(second.lead) >= second.start


def joined(better: Passage, other: Passage) -> Passage:
    """Both as one passage, where nothing but white space lies between them; it goes by the id of `better`."""
    first, second = (better, other) if better.start < other.start else (other, better)
    section = tuple(a for a, b in zip(first.section, second.section, strict=False) if a == b)
    gap = second.start - first.end
    return replace(
        better,
        text=first.text + (second.lead[-gap:] + second.text if gap > 0 else second.text[-gap:]),
        start=first.start,
        end=max(first.end, second.end),
        lead=first.lead,
        header=first.header,
        section=better.section if len(better.text) >= len(other.text) else section or better.section,
    )


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
        header=child.header if start == child.start else "",
        parent=None,
        parent_id="",
    )
