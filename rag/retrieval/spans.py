"""Selection of the runs of sentences in search results that together cover most of the question for their length.

Chunks are searched; the text to show is selected separately. The value of a set of sentences has diminishing returns in
each term of the question, so a greedy selection by gain per cost is near the optimum (Lin and Bilmes, "A Class of
Submodular Functions for Document Summarization", ACL 2011). Each passage provides one run of sentences or none. The
constants were tuned on half of the questions of nine sets; see docs/decisions/0005-context-and-refusals.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rag.models.sparse import SentenceIndex, SparseEncoder, index_sentences, unpack_sentences
from rag.retrieval.page_names import find_named
from rag.text import is_chinese
from rag.types import Passage

BUDGET = 4000
"""Characters that the selected runs fill together, if the passages have enough."""
DECAY = 0.94
"""Factor on a term's value for each repetition."""
NEIGHBOUR_WEIGHT = 0.6
"""Weight of a term in the sentence next to the one that has it; a term in the headings counts fully."""
PRIOR = 0.25
"""Value of a sentence of the best passage without any of the question's terms, compared with 1 for all of them: people
ask in words that the page does not use, and a passage found by meaning should still be read."""
SCORE_POWER = 1.5
"""Exponent of a passage's score, relative to the best, as a weight of its sentences."""
FUSED_POWER = 3.0
"""The same for fused scores of both legs, which are closer together: no cosine is far from the best."""
UNNAMED_WEIGHT = 0.6
"""Weight of a passage that is from none of the pages that the question names."""
COST_POWER = 0.6
"""A run's cost is its characters to this power (r of Lin and Bilmes); a new run costs RUN_COST characters more."""
RUN_COST = 300

SHORT = 200
"""A passage of up to this many characters, Chinese ones counting twice, is read in full or not at all."""

Bounds = tuple[int, int]


@dataclass(slots=True)
class _Pool:
    """The n units of all passages; `terms` (n, m) has the degree to which each has each of the question's m terms.

    `low` and `high` are the first and last unit of the run that taking a unit creates, `opens` whether it is new.
    `before` and `after` are the neighbours of each unit in its page, n if they are in no passage.
    """

    of: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    terms: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    opens: NDArray[np.bool_] = field(init=False)
    taken: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.opens = np.ones(len(self.of), dtype=bool)
        self.taken = np.zeros(len(self.of) + 1, dtype=bool)  # the last one for missing neighbours


def choose_spans(
    passages: Sequence[Passage],
    asked: Mapping[int, float],
    sparse: SparseEncoder,
    k: int,
    budget: int = BUDGET,
    stored: Mapping[str, str] = MappingProxyType({}),
) -> list[tuple[int, Bounds]]:
    """Return up to k runs of sentences of `passages` (sorted by score), in order of selection.

    asked: the question's terms with their weights. Each run is the index of a passage and the bounds in its text. Runs
    that touch in the page count once. `stored` are the packed sentence indexes of passages, by id; others are computed.
    """
    if not passages:
        return []
    pool = _pool(passages, asked, sparse, stored)
    if not len(pool.of):
        return []
    weights = np.array(list(asked.values())) / (sum(asked.values()) or 1.0)
    trust = _trust_passages(passages, find_named(passages, asked, sparse))[pool.of]
    term_counts = np.zeros(len(weights))
    order: dict[int, Bounds] = {}
    runs, length = 0, 0
    while length < budget:
        gains = trust * (PRIOR + pool.terms @ (weights * DECAY**term_counts))
        unit = _find_best(pool, gains, runs < k)
        if unit is None:
            break
        low, high = int(pool.low[unit]), int(pool.high[unit])
        runs += int(pool.opens[unit] and not _find_touching(pool)[unit])
        length += int(pool.end[high] - pool.start[low])
        term_counts += pool.terms[low : high + 1].sum(axis=0)
        _take(pool, order, int(pool.of[unit]), low, high)
    at = [passages[of].start for of in range(len(passages))]
    return [(of, (int(pool.start[a]) - at[of], int(pool.end[b]) - at[of])) for of, (a, b) in order.items()]


def _trust_passages(passages: Sequence[Passage], named_pages: Collection[str]) -> NDArray[np.float64]:
    """Return the weight of each passage's sentences by its score, (n,), 0 to 1, relative to the best of all passages.

    For `named` pages it is relative to the best of the page: a page with a longer or rarer name has higher scores, and
    would leave no room for the others.
    """
    scores = [max(0.0, passage.score) for passage in passages]
    pages = [passage.url_hash if passage.url_hash in named_pages else "" for passage in passages]
    best = {page: max(score for score, own in zip(scores, pages, strict=True) if own == page) for page in named_pages}
    best[""] = max(scores)
    if best[""] == 0.0:
        return np.ones(len(passages))
    shares = np.array([score / (best[page] or 1.0) for score, page in zip(scores, pages, strict=True)])
    legs = frozenset[str]().union(*(passage.scores for passage in passages))
    fused = legs >= {"dense", "sparse"} and "rerank" not in legs
    factors = np.array([UNNAMED_WEIGHT if named_pages and not page else 1.0 for page in pages])
    return factors * shares ** (FUSED_POWER if fused else SCORE_POWER)


def _find_best(pool: _Pool, gains: NDArray[np.float64], may_open: bool) -> int | None:
    """Return the unit with the best gain per cost, including the units that it requires; None if none is left."""
    total = np.concatenate(([0.0], np.cumsum(gains * ~pool.taken[:-1])))
    cost = (pool.end[pool.high] - pool.start[pool.low] + RUN_COST * pool.opens) ** COST_POWER
    rate = (total[pool.high + 1] - total[pool.low]) / cost
    rate[pool.taken[:-1]] = -1.0
    if not may_open:
        rate[pool.opens & ~_find_touching(pool)] = -1.0
    unit = int(rate.argmax())
    return unit if rate[unit] > 0.0 else None


def _find_touching(pool: _Pool) -> NDArray[np.bool_]:
    touching: NDArray[np.bool_] = pool.taken[pool.before] | pool.taken[pool.after]
    return touching


def _take(pool: _Pool, order: dict[int, Bounds], of: int, low: int, high: int) -> None:
    """Take the units from `low` to `high` of a passage, and let its other units extend that run."""
    pool.taken[low : high + 1] = True
    run = order.get(of, (low, high))
    first, last = order[of] = min(low, run[0]), max(high, run[1])
    begin, end = np.searchsorted(pool.of, [of, of + 1])
    pool.opens[begin:end] = False
    pool.low[begin:first] = np.minimum(pool.low[begin:first], np.arange(begin, first))
    pool.high[begin:first] = first - 1
    pool.low[last + 1 : end] = last + 1


def _pool(
    passages: Sequence[Passage], asked: Mapping[int, float], sparse: SparseEncoder, stored: Mapping[str, str]
) -> _Pool:
    indexes = [
        unpack_sentences(stored.get(passage.id, ""), passage.text) or _index(passage.text, sparse)
        for passage in passages
    ]
    sizes = np.array([len(index.start) for index in indexes])
    of, base = np.repeat(np.arange(len(passages)), sizes), np.cumsum(sizes) - sizes
    offsets = np.array([passage.start for passage in passages])[of]
    short = np.array([_is_short(passage.text) for passage in passages])[of]
    start, end, first = (np.concatenate([index[column] for index in indexes]) for column in range(3))
    first = base[of] + np.where(short, 0, first)
    last = np.where(short, (base + sizes - 1)[of], np.arange(len(of)))
    before, after = _find_neighbours(passages, of, start + offsets)
    terms = _weights(passages, indexes, of, base, list(asked), sparse)
    return _Pool(of, start + offsets, end + offsets, terms, first, last, before, after)


_index = lru_cache(maxsize=2048)(index_sentences)


def _is_short(text: str) -> bool:
    return 2 * len(text) <= SHORT or (len(text) <= SHORT and not is_chinese(text))


def _weights(
    passages: Sequence[Passage],
    indexes: Sequence[SentenceIndex],
    of: NDArray[np.int64],
    base: NDArray[np.int64],
    asked: Sequence[int],
    sparse: SparseEncoder,
) -> NDArray[np.float64]:
    """Return the weight of each of the terms asked for in each unit, (n, m): from itself, a neighbour, or the headings.

    of: the passage of each unit, (n,); base: the first unit of each passage.
    """
    direct = np.zeros((len(of), len(asked)))
    above = np.zeros((len(passages), len(asked)), dtype=bool)
    for number, passage in enumerate(passages):
        heading = sparse.terms(" ".join((passage.title, *passage.section)))
        above[number] = [term in heading for term in asked]
    units = np.concatenate([index.of + at for index, at in zip(indexes, base, strict=True)])
    terms = np.concatenate([index.terms for index in indexes])
    for column, term in enumerate(asked):
        direct[units[terms == term], column] = 1.0
    beside = np.zeros_like(direct)
    same = (of[1:] == of[:-1])[:, None]
    beside[1:] = direct[:-1] * same
    beside[:-1] = np.maximum(beside[:-1], direct[1:] * same)
    weights: NDArray[np.float64] = np.where(above[of], 1.0, np.maximum(direct, NEIGHBOUR_WEIGHT * beside))
    return weights


def _find_neighbours(
    passages: Sequence[Passage], of: NDArray[np.int64], start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the units before and after each one in the page, n if they are in no passage."""
    n = len(of)
    before, after = np.full(n, n), np.full(n, n)
    numbers: dict[str, int] = {}
    page = np.array([numbers.setdefault(passage.url_hash, len(numbers)) for passage in passages], dtype=np.int64)
    joins = np.array([passage.start - len(passage.lead) for passage in passages], dtype=np.int64)
    ends = np.array([passage.end for passage in passages], dtype=np.int64)
    order = np.lexsort((start, page[of]))
    left, right = order[:-1], order[1:]
    a, b = of[left], of[right]
    adjacent = (a == b) | ((page[a] == page[b]) & (ends[a] == joins[b]))
    after[left[adjacent]], before[right[adjacent]] = right[adjacent], left[adjacent]
    return before, after
