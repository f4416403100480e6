"""How much of the evidence was found, and at which rank.

Evidence is quotes from pages. A passage bears on the question when it covers half of a quote or more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from math import log2
from typing import Final

BUDGETS: Final = (2000, 4000, 8000)
"""Characters of what was found, from its beginning, in which the evidence is looked for."""
WHOLE: Final = 0.9
HALF: Final = 0.5
_SHINGLE: Final = 12


def squash(text: str) -> str:
    """Without white space, in lower case, compatibility forms folded (NFKC): as quotes are looked for."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).lower()


def covered_share(quote: str, body: str) -> float:
    """Share of the quote's characters that lie in a run of twelve that also stands in `body`; both squashed."""
    if not quote or quote in body:
        return 1.0
    n = min(_SHINGLE, len(quote))
    seen = bytearray(len(quote))
    for i in range(len(quote) - n + 1):
        if quote[i : i + n] in body:
            seen[i : i + n] = b"\x01" * n
    return sum(seen) / len(quote)


def beginning(texts: Sequence[str], room: int) -> str:
    """The first `room` characters of the texts, squashed and without a seam: a quote may span two of them."""
    kept = []
    for text in texts:
        kept.append(squash(text[: max(0, room)]))
        room -= len(text)
    return "".join(kept)


def character_recall(quotes: Sequence[str], texts: Sequence[str], room: int) -> float:
    """recall@N: the share of the quotes' characters that stands in the first N characters of the texts."""
    body, squashed = beginning(texts, room), [squash(quote) for quote in quotes]
    return sum(covered_share(quote, body) * len(quote) for quote in squashed) / max(1, sum(map(len, squashed)))


def holds_all(quotes: Sequence[str], texts: Sequence[str], room: int) -> float:
    """all@N: 1 where nine tenths or more of each quote stand there, else 0."""
    body = beginning(texts, room)
    return float(all(covered_share(squash(quote), body) >= WHOLE for quote in quotes))


def context_recall(quotes: Sequence[str], texts: Sequence[str]) -> float:
    """The share of the quotes of which nine tenths or more stand in the texts: RAGAS's, by evidence."""
    body = beginning(texts, sum(map(len, texts)))
    return sum(covered_share(squash(quote), body) >= WHOLE for quote in quotes) / len(quotes)


def coverings(quotes: Sequence[str], texts: Sequence[str]) -> list[set[int]]:
    """For each text, in rank order, the places of the quotes of which it covers half or more."""
    bodies, squashed = [squash(text) for text in texts], [squash(quote) for quote in quotes]
    return [{place for place, quote in enumerate(squashed) if covered_share(quote, body) >= HALF} for body in bodies]


# Measures of a ranking


def hit(relevant: Sequence[bool], k: int) -> float:
    return float(any(relevant[:k]))


def reciprocal_rank(relevant: Sequence[bool], k: int = 10) -> float:
    """1 / rank of the first that is relevant among the first k; 0 for none."""
    return next((1 / rank for rank, one in enumerate(relevant[:k], 1) if one), 0.0)


def precision(relevant: Sequence[bool], k: int) -> float:
    """The share of k places that something relevant has: places that nothing was found for count against it."""
    return sum(relevant[:k]) / k


def recall(covers: Sequence[set[int]], quotes: int, k: int) -> float:
    """The share of the quotes that the first k cover."""
    return len(set().union(*covers[:k])) / quotes


def average_precision(relevant: Sequence[bool]) -> float:
    """The mean of the precision at each relevant rank, of what was found: RAGAS's context precision; 0 for none."""
    ranks = [rank for rank, one in enumerate(relevant, 1) if one]
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def ndcg(gains: Sequence[float], ideal: Sequence[float], k: int = 10) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002), the gain linear as in trec_eval.

    `ideal` are all the gains there are to be had, in any order.
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(gains, 1))


def grade_hits(covers: Sequence[set[int]], grades: Sequence[float]) -> tuple[list[float], list[float]]:
    """The gain of each passage, and all gains there are, for `ndcg`.

    A passage gains the highest grade of the quotes that it is the first to cover; those that it covers together are
    one document, and each quote that nothing covers is one that was missed.
    """
    gains, seen = list[float](), set[int]()
    for own in covers:
        gains.append(max((grades[place] for place in own - seen), default=0.0))
        seen |= own
    missed = [grade for place, grade in enumerate(grades) if place not in seen]
    return gains, [*gains, *missed]
