"""Which of the pages that were found a question names, by their titles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.types import Passage

NAMED: Final = 0.2
"""Titles name pages where together they say this share of the question, each by this share of what they say."""
WHOLE: Final = 0.7
"""The share of a title's terms from which it stands in the question as it is, and not by a word or two."""

Terms = frozenset[int]


def named(titles: Sequence[Terms], weigh: Callable[[Terms], float], worth: Sequence[float]) -> list[int]:
    """The places of the pages whose titles say most of what any title says, one after the other.

    titles: the question's terms in each page's title; `weigh` is the share of the question that terms are. Of titles
    that say as much, the page of more `worth` goes first.
    """
    names = Terms().union(*titles)
    left, found = names, list[int]()
    while left and weigh(names) > NAMED:
        best = max(range(len(titles)), key=lambda place: (weigh(titles[place] & left), worth[place]))
        if weigh(titles[best] & left) < NAMED * weigh(names):
            break
        found.append(best)
        left -= titles[best]
    return found


def named_whole(passages: Sequence[Passage], asked: Mapping[int, float], encoder: SparseEncoder) -> set[str]:
    """The `url_hash` of each page whose title stands in the question."""
    best: dict[str, Passage] = {}
    for passage in passages:
        known = best.setdefault(passage.url_hash, passage)
        best[passage.url_hash] = max(known, passage, key=lambda one: one.score)
    mass = sum(asked.values()) or 1.0
    titles = [encoder.terms(passage.title) for passage in best.values()]
    found = named(
        [title & asked.keys() for title in titles],
        lambda terms: sum(asked[term] for term in terms) / mass,
        [passage.score for passage in best.values()],
    )
    hashes = list(best)
    return {hashes[one] for one in found if len(titles[one] & asked.keys()) >= WHOLE * len(titles[one])}
