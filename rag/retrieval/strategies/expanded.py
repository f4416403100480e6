"""Strategies that search with texts from an expander: a hypothetical answer, or several phrasings of the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.retrieval.ranking import fuse_by_score
from rag.retrieval.strategies.base import Engine, Found, SearchRequest, fallback_note
from rag.store.values import Fusion, Legs

MAX_PHRASINGS = 3
_OTHER_WEIGHT = 0.9  # weight of the other phrasings relative to the question's own words
_BONUS = 0.5  # share of the smaller score that is added if a passage has both


@dataclass(frozen=True, slots=True)
class Hyde:
    """A search for the mean of the question's vector and a hypothetical passage's, and the question's keywords.

    Without a passage it is a plain search.
    """

    name: str = "hyde"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        hits, legs = engine.hits(request)
        if engine.expander is None:
            return Found(hits, legs, diversify=True)
        try:
            passage = engine.expander.passage(request.question, [hit.passage for hit in hits])
        except ModelError as error:
            return Found(hits, legs, fallback_note(engine.expander, error), diversify=True)
        notes = {"expander": engine.expander.name, "passage": passage}
        if not passage or not engine.model.can_read(passage):
            return Found(hits, legs, notes, diversify=True)
        try:
            hits, legs = engine.hits(request, vector=_mean_vector(request.question, passage, engine))
        except ModelError as error:
            engine.problem = error
        return Found(hits, legs, notes, diversify=True)


def _mean_vector(question: str, passage: str, engine: Engine) -> NDArray[np.float32]:
    """Return the normalised mean of both vectors, (d,), or the passage's if the model cannot read the question."""
    vector = engine.model.encode_passages([passage])[0]
    if engine.model.can_read(question):
        vector = vector + engine.model.encode_query(question)
    unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return unit


@dataclass(frozen=True, slots=True)
class MultiQuery:
    """A search by both legs for the question and up to three phrasings or parts of it, then fused."""

    name: str = "multi_query"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        if engine.expander is None:
            return _search(request, engine, [])
        near, legs = engine.hits(request)
        try:
            phrasings = engine.expander.phrasings(request.question, [hit.passage for hit in near])
        except ModelError as error:
            return Found(near, legs, fallback_note(engine.expander, error), diversify=True)
        return _search(request, engine, remove_duplicates(request.question, phrasings), engine.expander.name)


def _search(request: SearchRequest, engine: Engine, others: Sequence[str], name: str = "") -> Found:
    fuse = partial(fuse_phrasings, weigh=request.tuning.fuse_by_score)
    hits, legs = engine.hits(request, others=others, fuse=fuse)
    notes = {"queries": [request.question, *others], **({"expander": name} if name else {})}
    return Found(hits, legs, notes, diversify=True)


def remove_duplicates(question: str, phrasings: Sequence[str]) -> list[str]:
    """Return up to MAX_PHRASINGS phrasings, without duplicates and the question."""
    seen = {_plain(question)}
    result = []
    for phrasing in phrasings:
        if _plain(phrasing) and _plain(phrasing) not in seen:
            seen.add(_plain(phrasing))
            result.append(phrasing.strip())
    return result[:MAX_PHRASINGS]


def fuse_phrasings(legs: Legs, weigh: Fusion = fuse_by_score) -> dict[str, float]:
    """Fuse each phrasing's legs by score, then give a passage its best score, and more if it matches several.

    So the best passage for each part of a question ranks near the top. In 0 to 1.
    """
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for leg, scores in legs.items():
        name, _, number = leg.partition(".")
        groups.setdefault(number, {})[name] = dict(scores)
    fused = {number: weigh(group) for number, group in groups.items()}
    question_scores = fused.pop("", {})
    points = set(question_scores).union(*fused.values())
    others = {point: max((scores.get(point, 0.0) for scores in fused.values()), default=0.0) for point in points}
    pairs = {point: (question_scores.get(point, 0.0), _OTHER_WEIGHT * others[point]) for point in points}
    return {point: (max(scores) + _BONUS * min(scores)) / (1.0 + _BONUS) for point, scores in pairs.items()}


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
