"""Is the answer there at all? A calibrated probability from what a search returned, without a model call.

A logistic regression on how the question's terms, weighted by IDF, lie in the best passages, and on how
the legs' scores stand out. The weights in `calibration.json` come from `python -m benchmarks.calibrate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.text import detect_language, question_language
from rag.types import Passage

REFUSE: Final = 0.25
"""Below this the library is taken not to hold the answer: calibrated so that few answerable questions are."""
DOUBT: Final = 0.4
"""Below this an answer carries a caveat."""
UNDECIDED: Final = 0.5

KEYWORD_FEATURES: Final = ("two_windows", "together", "window", "passage", "strength", "gap")
DENSE_FEATURES: Final = ("two_windows", "together", "window", "dense")
FEATURES: Final = (*KEYWORD_FEATURES, "dense")
_LOOKED_AT = 8  # passages; what stands further down is no evidence
_BM25_CEILING = 2.2  # the most that one occurrence-saturated term can weigh, k + 1 with k = 1.2


def probability(features: Mapping[str, float], model: str, dense_voted: bool) -> float:
    """How likely the library holds the answer, 0 to 1.

    `model` is the embedding model's name. Cosines of different models do not compare: one that was not
    calibrated is believed when it found something, so that it never leads to a refusal.
    """
    calibrations = _calibrations()
    if dense_voted and model in calibrations:
        return _logistic(features, calibrations[model])
    by_keyword = _logistic(features, calibrations["keyword"])
    return max(by_keyword, UNDECIDED) if dense_voted and features["dense"] > 0 else by_keyword


def features_of(idf: Mapping[int, float], passages: Sequence[Passage], sparse: SparseEncoder) -> dict[str, float]:
    """What the probability is computed from; shares are of the question's IDF mass, 0 to 1.

    window       the best two neighbouring sentences' share
    two_windows  with the best others that add at least two terms: evidence on two pages counts, a stray
                 word does not
    together     share of the terms that stand beside another one somewhere
    passage      the best passage's share, with its title and headings
    strength     the best keyword score, of the most it could be; gap: its lead over the next five
    dense        the best cosine
    """
    mass = sum(idf.values())
    if not passages or mass <= 0.0:
        return dict.fromkeys(FEATURES, 0.0)

    def share(found: frozenset[int]) -> float:
        return sum(weight for term, weight in idf.items() if term in found) / mass

    asked = frozenset(idf)
    windows = [window & asked for passage in passages[:_LOOKED_AT] for window in _windows(passage, sparse)]
    best = max(windows, key=share, default=frozenset())
    further = max((share(rest) for window in windows if len(rest := window - best) >= 2), default=0.0)
    whole = (sparse.terms(" ".join((p.title, *p.section))) | sparse.terms(p.text) for p in passages)
    keyword = sorted((p.scores.get("sparse", 0.0) for p in passages), reverse=True)
    return {
        "window": share(best),
        "two_windows": share(best) + further,
        "together": share(frozenset().union(*(window for window in windows if len(window) >= 2))),
        "passage": max(map(share, whole)),
        "strength": keyword[0] / (_BM25_CEILING * mass),
        "gap": _lead(keyword) / keyword[0] if keyword[0] else 0.0,
        "dense": max(p.scores.get("dense", 0.0) for p in passages),
    }


def held_by(
    passages: Sequence[Passage],
    question: str,
    sparse: SparseEncoder,
    idf_of: Callable[[Sequence[int]], Mapping[int, float]],
) -> float:
    """How likely `passages` hold the answer of a question that they were not found for, judged by its words alone.

    UNDECIDED where none of them is in its language: then the words tell nothing.
    """
    language = question_language(question)
    if passages and all(detect_language(passage.text) != language for passage in passages):
        return UNDECIDED
    idf = idf_of(sorted(sparse.encode_query(question).indices))
    scored = sorted((_scored(passage, idf, sparse) for passage in passages), key=lambda p: -p.scores["sparse"])
    return probability(features_of(idf, scored, sparse), "", dense_voted=False)


def _scored(passage: Passage, idf: Mapping[int, float], sparse: SparseEncoder) -> Passage:
    """As the sparse leg would have found it (BM25)."""
    found = sparse.encode_passage("\n".join((passage.title, *passage.section, passage.text)))
    score = sum(idf.get(term, 0.0) * weight for term, weight in zip(found.indices, found.values, strict=True))
    return replace(passage, scores={"sparse": score}, ranks={})


def _windows(passage: Passage, sparse: SparseEncoder) -> list[frozenset[int]]:
    sentences = sparse.sentence_terms(passage.text)
    return [one | (sentences[i - 1] if i else frozenset()) for i, one in enumerate(sentences)]


def _lead(scores: Sequence[float]) -> float:
    following = scores[1:6]
    return scores[0] - sum(following) / len(following) if following else 0.0


def _logistic(features: Mapping[str, float], calibration: Mapping[str, float]) -> float:
    total = calibration["bias"] + sum(w * features[name] for name, w in calibration.items() if name != "bias")
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


@cache
def _calibrations() -> dict[str, dict[str, float]]:
    path = Path(__file__).with_name("calibration.json")
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return found
