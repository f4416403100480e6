"""Several phrasings of one question, searched in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rag.errors import ModelError
from rag.retrieval.ranking import weighted
from rag.retrieval.strategies.base import Engine, Found, SearchRequest, fallback_note
from rag.store.values import Fusion, Legs

MAX_PHRASINGS = 3
_OTHERS = 0.9  # weight of the other phrasings relative to the question's own words
_BOTH = 0.5  # share of the smaller score that is added if a passage has both


@dataclass(frozen=True, slots=True)
class MultiQuery:
    """A search by both legs for the question and up to three phrasings or parts of it, then fused."""

    name: str = "multi_query"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        if engine.expander is None:
            return _search(request, engine, [])
        near, legs = engine.hits(request)
        try:
            given = engine.expander.phrasings(request.question, [hit.passage for hit in near])
        except ModelError as error:
            return Found(near, legs, fallback_note(engine.expander, error), diversify=True)
        return _search(request, engine, distinct(request.question, given), engine.expander.name)


def _search(request: SearchRequest, engine: Engine, others: Sequence[str], name: str = "") -> Found:
    fuse = partial(across_phrasings, weigh=request.tuning.weighted)
    hits, legs = engine.hits(request, others=others, fuse=fuse)
    notes = {"queries": [request.question, *others], **({"expander": name} if name else {})}
    return Found(hits, legs, notes, diversify=True)


def distinct(question: str, phrasings: Sequence[str]) -> list[str]:
    """Return up to MAX_PHRASINGS phrasings, without duplicates and the question."""
    seen = {_plain(question)}
    kept = []
    for phrasing in phrasings:
        if _plain(phrasing) and _plain(phrasing) not in seen:
            seen.add(_plain(phrasing))
            kept.append(phrasing.strip())
    return kept[:MAX_PHRASINGS]


def across_phrasings(legs: Legs, weigh: Fusion = weighted) -> dict[str, float]:
    """Fuse each phrasing's legs by score, then give a passage its best score, and more if it matches several.

    So the best passage for each part of a question ranks near the top. In 0 to 1.
    """
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for leg, scores in legs.items():
        name, _, number = leg.partition(".")
        groups.setdefault(number, {})[name] = dict(scores)
    fused = {number: weigh(group) for number, group in groups.items()}
    own = fused.pop("", {})
    found = set(own).union(*fused.values())
    others = {point: max((scores.get(point, 0.0) for scores in fused.values()), default=0.0) for point in found}
    both = {point: (own.get(point, 0.0), _OTHERS * others[point]) for point in found}
    return {point: (max(scores) + _BOTH * min(scores)) / (1.0 + _BOTH) for point, scores in both.items()}


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
