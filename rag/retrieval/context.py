"""The context of an answer, from selected candidates: no text twice, and only the useful part of each.

A small chunk is replaced by the section around it, which the `parent` chunker records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from types import MappingProxyType
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
    chosen: Sequence[Passage],
    asked: Mapping[int, float],
    sparse: SparseEncoder,
    k: int,
    budget: int = BUDGET,
    stored: Mapping[str, str] = MappingProxyType({}),
) -> Context:
    """Assemble the context from passages in order of selection, for the weighted terms `asked`.

    Returns up to k passages, which fill `budget` characters if there is enough text: see `spans`, also for `stored`.
    """
    fates: dict[str, Fate] = {}
    into: dict[str, str] = {}
    duplicates = _find_duplicates(chosen)
    for later, first in duplicates.items():
        fates[chosen[later].id], into[chosen[later].id] = "same_text", chosen[first].id
    distinct = [passage for number, passage in enumerate(chosen) if number not in duplicates]
    selected: list[Passage] = []
    for number, bounds in choose_spans(distinct, asked, sparse, k, budget, stored):
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


def _find_duplicates(passages: Sequence[Passage]) -> dict[int, int]:
    """Return the index of each passage with the text of an earlier one, and the index of that one.

    Only sets that share one of their first words, in any fixed order, can overlap that much: the prefix filter of
    Chaudhuri, Ganti and Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006.
    """
    duplicates: dict[int, int] = {}
    by_word: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        words, first_words = _words(passage.text)
        earlier = sorted({other for word in first_words for other in by_word.get(word, ())})
        first = next((other for other in earlier if _is_same(passage.text, words, passages[other].text)), None)
        if first is not None:
            duplicates[number] = first
            continue
        for word in first_words:
            by_word.setdefault(word, []).append(number)
    return duplicates


def _is_same(text: str, words: frozenset[str], other: str) -> bool:
    other_words, _ = _words(other)
    common = len(words & other_words)
    if common < MIN_OVERLAP * (len(words) + len(other_words) - common):
        return False
    # Two rows of figures may share nearly all words and differ only in the relevant number.
    return _numbers(text) == _numbers(other)


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[frozenset[str], list[str]]:
    """Return the words of a text, and the longest of them, which are rare; cached: passages recur in later searches."""
    words = frozenset(terms(text))
    return words, sorted(sorted(words), key=len, reverse=True)[: len(words) - ceil(MIN_OVERLAP * len(words)) + 1]


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
    parents = _to_parents([hit.passage for hit in hits], library)
    return [
        hits[place] if passage is hits[place].passage else replace(hits[place], passage=passage, sentences="")
        for place, passage in parents
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
