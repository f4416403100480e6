"""Metrics of how much evidence a search found, and at which ranks.

Evidence is quotes from pages. A passage is relevant to the question if it covers at least half of a quote.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from math import log2
from typing import Final

BUDGETS: Final = (2000, 4000, 8000)
"""The values of N in recall@N: how many characters from the start of the results are searched for evidence."""
FULL_COVERAGE: Final = 0.9
HALF_COVERAGE: Final = 0.5
_SHINGLE: Final = 12


def normalise_text(text: str) -> str:
    """Normalise text for the comparison of quotes: NFKC, lower case, no white space."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).lower()


def quote_coverage(quote: str, body: str) -> float:
    """Return the share of the quote's characters in runs of twelve that are also in `body`; both must be normalised."""
    if not quote or quote in body:
        return 1.0
    n = min(_SHINGLE, len(quote))
    seen = bytearray(len(quote))
    for i in range(len(quote) - n + 1):
        if quote[i : i + n] in body:
            seen[i : i + n] = b"\x01" * n
    return sum(seen) / len(quote)


def join_start(texts: Sequence[str], max_chars: int) -> str:
    """Return the first `max_chars` characters of the texts, normalised and joined: a quote may span two of them."""
    parts = []
    for text in texts:
        parts.append(normalise_text(text[: max(0, max_chars)]))
        max_chars -= len(text)
    return "".join(parts)


def character_recall(quotes: Sequence[str], texts: Sequence[str], max_chars: int) -> float:
    """Return recall@N: the share of the quotes' characters in the first N characters of the texts."""
    body, bare = join_start(texts, max_chars), [normalise_text(quote) for quote in quotes]
    return sum(quote_coverage(quote, body) * len(quote) for quote in bare) / max(1, sum(map(len, bare)))


def has_all(quotes: Sequence[str], texts: Sequence[str], max_chars: int) -> float:
    """Return all@N: 1 if the first N characters cover at least 90 % of each quote, else 0."""
    body = join_start(texts, max_chars)
    return float(all(quote_coverage(normalise_text(quote), body) >= FULL_COVERAGE for quote in quotes))


def context_recall(quotes: Sequence[str], texts: Sequence[str]) -> float:
    """Return RAGAS's context recall, by evidence: the share of quotes that the texts cover to at least 90 %."""
    body = join_start(texts, sum(map(len, texts)))
    return sum(quote_coverage(normalise_text(quote), body) >= FULL_COVERAGE for quote in quotes) / len(quotes)


def covered_quotes(quotes: Sequence[str], texts: Sequence[str]) -> list[set[int]]:
    """Return, for each text in rank order, the indexes of the quotes that it covers at least by half."""
    bodies, bare = [normalise_text(text) for text in texts], [normalise_text(quote) for quote in quotes]
    return [
        {place for place, quote in enumerate(bare) if quote_coverage(quote, body) >= HALF_COVERAGE} for body in bodies
    ]


# Ranking metrics


def hit(relevant: Sequence[bool], k: int) -> float:
    return float(any(relevant[:k]))


def reciprocal_rank(relevant: Sequence[bool], k: int = 10) -> float:
    """Return 1 / rank of the first relevant result among the first k; 0 for none."""
    return next((1 / rank for rank, is_relevant in enumerate(relevant[:k], 1) if is_relevant), 0.0)


def precision(relevant: Sequence[bool], k: int) -> float:
    """Return precision@k; missing results count as irrelevant."""
    return sum(relevant[:k]) / k


def recall(covers: Sequence[set[int]], quotes: int, k: int) -> float:
    """Return the share of the quotes that the first k results cover."""
    return len(set().union(*covers[:k])) / quotes


def average_precision(relevant: Sequence[bool]) -> float:
    """Return RAGAS's context precision: the mean of the precision at each relevant rank; 0 if there is none."""
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def ndcg(gains: Sequence[float], ideal: Sequence[float], k: int = 10) -> float:
    """Return nDCG@k (Järvelin and Kekäläinen 2002) with linear gain, as in trec_eval.

    `ideal` are all possible gains, in any order.
    """
    best = _discount(sorted(ideal, reverse=True)[:k])
    return _discount(gains[:k]) / best if best else 0.0


def _discount(gains: Sequence[float]) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(gains, 1))


def grade_hits(covers: Sequence[set[int]], grades: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the gain of each passage, and all possible gains, for `ndcg`.

    A passage gains the highest grade of the quotes that it is the first to cover. Quotes that one passage covers count
    as one document, each uncovered quote as a missed one.
    """
    gains, seen = list[float](), set[int]()
    for covered in covers:
        gains.append(max((grades[place] for place in covered - seen), default=0.0))
        seen |= covered
    misses = [grade for place, grade in enumerate(grades) if place not in seen]
    return gains, [*gains, *misses]
