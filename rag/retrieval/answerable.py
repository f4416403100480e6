"""Is the answer there at all? A calibrated probability from what a search returned, without a model call.

A question names pages and asks something of them. Names are found wherever the page is there; so what counts most is
what else it says, and whether that stands together on each page that it names, one or several. A logistic regression
on that; the weights in `calibration.json` come from `python -m benchmarks.calibrate`. See
docs/decisions/0005-context-and-refusals.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.retrieval.page_names import Terms, named
from rag.text import detect_language, question_language
from rag.types import Passage

REFUSE: Final = 0.25
"""Below this the library is taken not to hold the answer: calibrated so that few answerable questions are."""
DOUBT: Final = 0.4
"""Below this an answer carries a caveat."""
SURE: Final = 0.9
"""From here on the search is believed more than a small model that found no answer, and nothing is graded."""
UNDECIDED: Final = 0.5
ANSWERED: Final = 0.31
"""The least probability, of the sentences as read, at which quotes answer: docs/decisions/0012-quoted-answers.md."""

IMPROBABLE: Final = 0.1
"""Below this, both probabilities taken together, nothing is quoted: docs/decisions/0012-quoted-answers.md."""

KEYWORD_FEATURES: Final = ("asked", "covered")
FEATURES: Final = (*KEYWORD_FEATURES, "dense")
Page = tuple[Terms, list[Terms]]
"""The question's terms in a page's title, and in each two neighbouring sentences with what stands above them."""


def combine_odds(read: float, likely: float) -> float:
    """Return the probability that the pages answer, from what was `read` and from how `likely` the search makes it.

    Their odds are multiplied, as of two witnesses who don't know of each other.
    """
    both, neither = read * likely, (1.0 - read) * (1.0 - likely)
    return both / (both + neither) if both + neither else UNDECIDED


def probability(features: Mapping[str, float], model: str, dense_voted: bool, *, across: bool = False) -> float:
    """How likely the library holds the answer, 0 to 1.

    `model` is the embedding model's name. Cosines of different models do not compare: one that was not
    calibrated is believed when it found something, so that it never leads to a refusal. `across` languages a
    question shares no words with the pages, and its meaning alone counts.
    """
    calibrations = _calibrations()
    if across and dense_voted and f"{model} across" in calibrations:
        return _logistic(features, calibrations[f"{model} across"])
    if dense_voted and model in calibrations:
        return _logistic(features, calibrations[model])
    by_keyword = _logistic(features, calibrations["keyword"])
    return max(by_keyword, UNDECIDED) if dense_voted and features["dense"] > 0 else by_keyword


def features_of(idf: Mapping[int, float], passages: Sequence[Passage], sparse: SparseEncoder) -> dict[str, float]:
    """What the probability is computed from, of the pages that the question names (`_named`); 0 to 1.

    asked    the share of what none of their titles says, by IDF, that one window of a page does; their mean
    covered  the share of all the question that one window of each says together
    dense    the best cosine
    """
    mass = sum(idf.values())
    if not passages or mass <= 0.0:
        return dict.fromkeys(FEATURES, 0.0)

    def weigh(terms: Terms) -> float:
        return sum(idf[term] for term in terms) / mass

    def adds(window: Terms) -> float:
        return weigh(window & left)

    asked_of = _named(_pages(frozenset(idf), passages, sparse), weigh)
    left: Terms = frozenset(idf)
    asked = left.difference(*(title for title, _ in asked_of))
    shares = []
    for _, windows in asked_of:
        shares.append(max(weigh(window & asked) for window in windows) / weigh(asked) if weigh(asked) else 1.0)
        best = max(windows, key=adds)
        left -= best
    dense = max(passage.scores.get("dense", 0.0) for passage in passages)
    return {"asked": sum(shares) / len(shares), "covered": 1.0 - weigh(left), "dense": dense}


def _named(pages: Sequence[Page], weigh: Callable[[Terms], float]) -> list[Page]:
    """The pages whose titles say most of what any title says, one after the other; else that of the best window."""
    worth = [max(map(weigh, windows)) for _, windows in pages]
    found = named([title for title, _ in pages], weigh, worth)
    return [pages[place] for place in found or [worth.index(max(worth))]]


def _pages(asked: Terms, passages: Sequence[Passage], sparse: SparseEncoder) -> list[Page]:
    by_page: dict[str, list[Passage]] = {}
    for passage in passages:
        by_page.setdefault(passage.url_hash, []).append(passage)
    found = []
    for own in by_page.values():
        windows = [window & asked for passage in own for window in _windows(passage, sparse)]
        found.append((sparse.terms(own[0].title) & asked, windows))
    return found


def is_across(question: str, passages: Sequence[Passage]) -> bool:
    """Whether the best passage is in another language than the question."""
    best = max(passages, key=lambda passage: passage.score, default=None)
    return best is not None and detect_language(best.text) not in ("", question_language(question))


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
    return probability(features_of(idf, passages, sparse), "", dense_voted=False)


def _windows(passage: Passage, sparse: SparseEncoder) -> list[Terms]:
    above = sparse.terms(" ".join((passage.title, *passage.section)))
    sentences = sparse.sentence_terms(passage.text) or (above,)
    return [above | one | (sentences[i - 1] if i else above) for i, one in enumerate(sentences)]


def _logistic(features: Mapping[str, float], calibration: Mapping[str, float]) -> float:
    total = calibration["bias"] + sum(w * features[name] for name, w in calibration.items() if name != "bias")
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


@cache
def _calibrations() -> dict[str, dict[str, float]]:
    path = Path(__file__).with_name("calibration.json")
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return found
