"""The context of an answer, from selected candidates: no text twice, and only the useful part of each.

A small chunk is replaced by the section around it, which the `parent` chunker records.
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

MIN_OVERLAP = 0.9
"""Share of common terms from which two texts count as the same."""


@dataclass(frozen=True, slots=True)
class Context:
    """`passages` in order. `fates` has the reason for each one dropped, by id, and `into` the passage that replaces it.

    The text of a passage is a run of sentences of the candidate with its id. One merged from neighbours has the id of
    the part that was selected first.
    """

    passages: tuple[Passage, ...]
    fates: dict[str, Fate] = field(default_factory=dict)
    into: dict[str, str] = field(default_factory=dict)


def assemble(
    chosen: Sequence[Passage], asked: Mapping[int, float], sparse: SparseEncoder, k: int, budget: int = BUDGET
) -> Context:
    """Assemble the context from passages in order of selection, for the weighted terms `asked`.

    Returns up to k passages, which fill `budget` characters if there is enough text: see `spans`.
    """
    fates: dict[str, Fate] = {}
    into: dict[str, str] = {}
    distinct: list[Passage] = []
    for passage in chosen:
        if duplicate := _find_duplicate(passage, distinct):
            fates[passage.id], into[passage.id] = "same_text", duplicate.id
        else:
            distinct.append(passage)
    selected: list[Passage] = []
    for number, bounds in choose_spans(distinct, asked, sparse, k, budget):
        span = _slice(distinct[number], bounds)
        place = next((i for i, other in enumerate(selected) if is_touching(span, other)), None)
        if place is None:
            selected.append(span)
        else:
            fates[span.id], into[span.id] = "merged", selected[place].id
            selected[place] = merge_passages(selected[place], span)
    seen = {passage.id for passage in selected} | fates.keys()
    fates.update((passage.id, "says_less") for passage in distinct if passage.id not in seen)
    return Context(tuple(selected), fates, into)


def _find_duplicate(passage: Passage, others: Sequence[Passage]) -> Passage | None:
    words = _words(passage.text)
    if not words:
        return None
    least, most = MIN_OVERLAP * len(words), len(words) / MIN_OVERLAP
    for other in others:
        other_words = _words(other.text)
        if not least <= len(other_words) <= most:
            continue
        common = len(words & other_words)
        if common < MIN_OVERLAP * (len(words) + len(other_words) - common):
            continue
        # Two rows of figures may share nearly all words and differ only in the relevant number.
        if _numbers(passage.text) == _numbers(other.text):
            return other
    return None


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """Cached: each passage is compared with all selected before it, and recurs in later searches."""
    return frozenset(terms(text))


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def _slice(passage: Passage, bounds: Bounds) -> Passage:
    start, end = bounds
    before = passage.text[:start]
    lead = before[len(before.rstrip()) :] if start else passage.lead
    text = passage.text[start:end]
    header = "" if start else passage.header
    return replace(passage, text=text, start=passage.start + start, end=passage.start + end, lead=lead, header=header)


def is_touching(one: Passage, other: Passage) -> bool:
    if one.url_hash != other.url_hash:
        return False
    first, second = (one, other) if one.start < other.start else (other, one)
    return first.end + len(second.lead) >= second.start


def merge_passages(better: Passage, other: Passage) -> Passage:
    """Merge two passages with only white space between them; the result has the id of `better`."""
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
    """Replace each hit by its parent, once for each parent, with the best child's place, score, ranks and vector.

    The text comes from the page; start, end and id are the parent's. A hit without a parent stays unchanged.
    """
    return [
        replace(hits[place], passage=passage) for place, passage in _to_parents([hit.passage for hit in hits], library)
    ]


def widen(passages: Sequence[Passage], library: Library) -> list[Passage]:
    """Replace each passage by its parent, once for each parent."""
    return [passage for _, passage in _to_parents(passages, library)]


def _to_parents(passages: Sequence[Passage], library: Library) -> Iterator[tuple[int, Passage]]:
    """Yield the index of the first passage of each parent, with the parent."""
    texts = library.texts([passage.url_hash for passage in passages if passage.parent])
    seen: set[str] = set()
    for place, child in enumerate(passages):
        passage = _parent_of(child, texts.get(child.url_hash, ""))
        if passage.id not in seen:
            seen.add(passage.id)
            yield place, passage


def _parent_of(child: Passage, text: str) -> Passage:
    """Return the parent of `child`, or the child itself if it has none or the page has changed since."""
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
