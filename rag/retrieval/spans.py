"""What is read of what was found: the runs of sentences that together say most of what is asked, for their length.

What is searched are chunks; what is shown is chosen apart from that. The value of a set of sentences has diminishing
returns in each term of the question, so a greedy choice by gain for cost is near the best there is (Lin and Bilmes,
"A Class of Submodular Functions for Document Summarization", ACL 2011). Each passage gives one run of sentences or
none. The constants were chosen on half of the questions of nine sets; see docs/decisions/0005-context-and-refusals.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag.models.sparse import SparseEncoder
from rag.retrieval.page_names import named_whole
from rag.text import fenced_blocks, is_chinese, sentence_spans
from rag.types import Passage

BUDGET = 4000
"""Characters that the chosen runs fill together, where the passages hold as many."""
DECAY = 0.94
"""What a term of the question is worth each time more that it is said."""
NEAR = 0.6
"""What a term counts in the sentence beside the one that holds it; one in the headings counts fully."""
PRIOR = 0.25
"""The value of a sentence of the best passage without any of the question's terms, beside 1 for all of them: people ask
in words that the page does not use, so that a passage found by its meaning is read even then."""
SCORE_POWER = 1.5
"""To this power a passage's score, of the best one's, weighs what its sentences say."""
FUSED_POWER = 3.0
"""The same for the scores of both legs together, which lie nearer each other: no cosine is far from the best."""
BESIDE_NAMED = 0.6
"""What a passage counts where the question names pages, and this is of none of them."""
COST_POWER = 0.6
"""A run's cost is its characters to this power (r of Lin and Bilmes); an own place costs OPENING of them more."""
OPENING = 300

SHORT = 200
"""A passage of at most so many characters, Chinese ones counting twice, is read whole or not at all."""

Bounds = tuple[int, int]
Units = tuple[tuple[int, int, int], ...]  # start, end, the first unit that has to be read with it


@dataclass(slots=True)
class _Pool:
    """The units of all passages in a row: `terms` (n, m) says how far each holds each of the question's m terms.

    `low` and `high` are the first and last unit of the run that taking a unit makes, `opens` whether it is a new one.
    `before` and `after` are the units beside each in the page, n where there is none among the passages.
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
        self.taken = np.zeros(len(self.of) + 1, dtype=bool)  # the last for what is not there


def choose_spans(
    passages: Sequence[Passage], asked: Mapping[int, float], sparse: SparseEncoder, k: int, budget: int = BUDGET
) -> list[tuple[int, Bounds]]:
    """At most k runs of sentences of `passages` (best first, by their scores), in the order in which they were taken.

    asked: the question's terms with their weights. Each is the index of a passage and the bounds of the run in its
    text. Runs that touch in the page count once.
    """
    pool = _pool(passages, asked, sparse)
    if not len(pool.of):
        return []
    weights = np.array(list(asked.values())) / (sum(asked.values()) or 1.0)
    trust = _trust(passages, named_whole(passages, asked, sparse))[pool.of]
    said = np.zeros(len(weights))
    order: dict[int, Bounds] = {}
    runs, spent = 0, 0
    while spent < budget:
        gains = trust * (PRIOR + pool.terms @ (weights * DECAY**said))
        unit = _best(pool, gains, runs < k)
        if unit is None:
            break
        low, high = int(pool.low[unit]), int(pool.high[unit])
        runs += int(pool.opens[unit] and not _touches(pool)[unit])
        spent += int(pool.end[high] - pool.start[low])
        said += pool.terms[low : high + 1].sum(axis=0)
        _take(pool, order, int(pool.of[unit]), low, high)
    at = [passages[of].start for of in range(len(passages))]
    return [(of, (int(pool.start[a]) - at[of], int(pool.end[b]) - at[of])) for of, (a, b) in order.items()]


def _trust(passages: Sequence[Passage], named: Collection[str]) -> NDArray[np.float64]:
    """How far each passage's score lets its sentences be believed, (n,), 0 to 1: beside the best of all passages.

    Of pages that are `named` beside the best of its page: one whose name is longer, or rarer, has higher scores,
    and would leave no room for what is asked of the other.
    """
    scores = [max(0.0, passage.score) for passage in passages]
    pages = [passage.url_hash if passage.url_hash in named else "" for passage in passages]
    best = {page: max(score for score, own in zip(scores, pages, strict=True) if own == page) for page in named}
    best[""] = max(scores)
    if best[""] == 0.0:
        return np.ones(len(passages))
    shares = np.array([score / (best[page] or 1.0) for score, page in zip(scores, pages, strict=True)])
    legs = frozenset[str]().union(*(passage.scores for passage in passages))
    fused = legs >= {"dense", "sparse"} and "rerank" not in legs
    beside = np.array([BESIDE_NAMED if named and not page else 1.0 for page in pages])
    return beside * shares ** (FUSED_POWER if fused else SCORE_POWER)


def _best(pool: _Pool, gains: NDArray[np.float64], may_open: bool) -> int | None:
    """The unit that brings most for its cost, with all that has to be read with it; None where none is left."""
    total = np.concatenate(([0.0], np.cumsum(gains * ~pool.taken[:-1])))
    cost = (pool.end[pool.high] - pool.start[pool.low] + OPENING * pool.opens) ** COST_POWER
    rate = (total[pool.high + 1] - total[pool.low]) / cost
    rate[pool.taken[:-1]] = -1.0
    if not may_open:
        rate[pool.opens & ~_touches(pool)] = -1.0
    unit = int(rate.argmax())
    return unit if rate[unit] > 0.0 else None


def _touches(pool: _Pool) -> NDArray[np.bool_]:
    touching: NDArray[np.bool_] = pool.taken[pool.before] | pool.taken[pool.after]
    return touching


def _take(pool: _Pool, order: dict[int, Bounds], of: int, low: int, high: int) -> None:
    """Take the units from `low` to `high` of one passage, and make the others of it widen the run to them."""
    pool.taken[low : high + 1] = True
    known = order.get(of, (low, high))
    first, last = order[of] = min(low, known[0]), max(high, known[1])
    begin, end = np.searchsorted(pool.of, [of, of + 1])
    pool.opens[begin:end] = False
    pool.low[begin:first] = np.minimum(pool.low[begin:first], np.arange(begin, first))
    pool.high[begin:first] = first - 1
    pool.low[last + 1 : end] = last + 1


def _pool(passages: Sequence[Passage], asked: Mapping[int, float], sparse: SparseEncoder) -> _Pool:
    columns = {term: place for place, term in enumerate(asked)}
    of: list[int] = []
    start: list[int] = []
    end: list[int] = []
    first: list[int] = []
    last: list[int] = []
    rows: list[NDArray[np.float64]] = []
    for number, passage in enumerate(passages):
        units = units_of(passage.text)
        base = len(of)
        of += [number] * len(units)
        start += [passage.start + unit[0] for unit in units]
        end += [passage.start + unit[1] for unit in units]
        short = 2 * len(passage.text) <= SHORT or (len(passage.text) <= SHORT and not is_chinese(passage.text))
        first += [base if short else base + unit[2] for unit in units]
        last += [base + (len(units) - 1 if short else place) for place in range(len(units))]
        above = sparse.terms(" ".join((passage.title, *passage.section)))
        rows.append(_held(sparse.terms_within(passage.text, tuple(unit[:2] for unit in units)), above, columns))
    before, after = _beside(passages, of, start)
    terms = np.concatenate(rows) if rows else np.zeros((0, len(columns)))
    numbers, starts, ends, firsts, lasts = (np.array(one, dtype=np.int64) for one in (of, start, end, first, last))
    return _Pool(numbers, starts, ends, terms, firsts, lasts, before, after)


def _held(units: Sequence[frozenset[int]], above: frozenset[int], columns: Mapping[int, int]) -> NDArray[np.float64]:
    """How far each unit of a passage holds each term, (units, terms): itself, one beside it, or the headings above."""
    own = np.zeros((len(units) + 2, len(columns)))
    for term, column in columns.items():
        if term in above:
            own[:, column] = 1.0
        else:
            own[[number for number, terms in enumerate(units, 1) if term in terms], column] = 1.0
    held: NDArray[np.float64] = np.maximum(own[1:-1], NEAR * np.maximum(own[:-2], own[2:]))
    return held


def _beside(
    passages: Sequence[Passage], of: Sequence[int], start: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The unit before and the unit after each in the page, n where that is in none of the passages."""
    n = len(of)
    before, after = np.full(n, n), np.full(n, n)
    ordered = sorted(range(n), key=lambda unit: (passages[of[unit]].url_hash, start[unit]))
    for one, other in pairwise(ordered):
        left, right = passages[of[one]], passages[of[other]]
        same = of[one] == of[other]
        if same or (left.url_hash == right.url_hash and left.end + len(right.lead) == right.start):
            after[one], before[other] = other, one
    return before, after


@lru_cache(maxsize=4096)
def units_of(text: str) -> Units:
    """The sentences of a passage, each block of code as one, each row of a table with the header that it needs."""
    blocks = fenced_blocks(text)
    found: list[tuple[int, int, int]] = []
    header: int | None = None
    for start, end in sentence_spans(text):
        block = next((block for block in blocks if block[0] <= start < block[1]), None)
        if block and found and found[-1][1] >= start:
            continue
        if block:
            start, end = start, max(end, block[1])
        is_row = text.startswith("|", start)
        header = (len(found) if header is None else header) if is_row else None
        found.append((start, end, len(found) if header is None else header))
    return tuple(found)
