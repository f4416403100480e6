"""Calibrated probability that search results answer the question, without a model call.

A question names pages and asks something about them. Names match whenever the page exists, so what counts most is
whether the rest of the question occurs in one place on each named page. A logistic regression combines the features;
its weights in `calibration.json` come from `python -m benchmarks.calibrate`. See
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
from rag.retrieval.page_names import Terms, select_named
from rag.text import detect_language, question_language
from rag.types import Passage

REFUSAL_THRESHOLD: Final = 0.25
"""Below this, the library counts as having no answer: calibrated to affect few answerable questions."""
CAVEAT_THRESHOLD: Final = 0.4
"""Below this, an answer gets a caveat."""
SURE_THRESHOLD: Final = 0.9
"""From this value, the search overrules a small model that finds no answer, and passages are not graded."""
UNDECIDED: Final = 0.5
MIN_ANSWERED: Final = 0.4
"""Minimum probability from the reader at which quotes count as an answer: docs/decisions/0012-quoted-answers.md."""

IMPROBABLE: Final = 0.1
"""Below this combined probability, nothing is quoted: docs/decisions/0012-quoted-answers.md."""

KEYWORD_FEATURES: Final = ("asked", "covered")
FEATURES: Final = (*KEYWORD_FEATURES, "dense")
PageTerms = tuple[Terms, list[Terms]]
"""The question's terms in a page's title, and in each pair of neighbouring sentences with their headings."""


def combine_odds(read: float, likely: float) -> float:
    """Return the probability that the pages answer, from those of the reader (`read`) and the search (`likely`).

    Their odds are multiplied, as for independent evidence.
    """
    both, neither = read * likely, (1.0 - read) * (1.0 - likely)
    return both / (both + neither) if both + neither else UNDECIDED


def probability(features: Mapping[str, float], model: str, dense_voted: bool, *, across: bool = False) -> float:
    """Return the probability that the library has the answer, 0 to 1.

    `model` is the embedding model's name. Cosines of different models are not comparable: a model without calibration
    never causes a refusal if it found something. `across`: question and pages are in different languages and share no
    words, so only the vectors count.
    """
    calibrations = _read_calibrations()
    if across and dense_voted and f"{model} across" in calibrations:
        return _logistic(features, calibrations[f"{model} across"])
    if dense_voted and model in calibrations:
        return _logistic(features, calibrations[model])
    by_keyword = _logistic(features, calibrations["keyword"])
    return max(by_keyword, UNDECIDED) if dense_voted and features["dense"] > 0 else by_keyword


def features_of(idf: Mapping[int, float], passages: Sequence[Passage], sparse: SparseEncoder) -> dict[str, float]:
    """Return the features for `probability`, 0 to 1, of the pages that the question names.

    asked    the share of the terms outside their titles, by IDF, in one window of a page; the mean over pages
    covered  the share of the whole question in the best windows, one of each page, combined
    dense    the best cosine
    """
    mass = sum(idf.values())
    if not passages or mass <= 0.0:
        return dict.fromkeys(FEATURES, 0.0)

    def weigh(terms: Terms) -> float:
        return sum(idf[term] for term in terms) / mass

    def gain(window: Terms) -> float:
        return weigh(window & uncovered)

    named_pages = _select_named(_pages(frozenset(idf), passages, sparse), weigh)
    uncovered: Terms = frozenset(idf)
    asked = uncovered.difference(*(title for title, _ in named_pages))
    shares = []
    for _, windows in named_pages:
        shares.append(max(weigh(window & asked) for window in windows) / weigh(asked) if weigh(asked) else 1.0)
        best = max(windows, key=gain)
        uncovered -= best
    dense = max(passage.scores.get("dense", 0.0) for passage in passages)
    return {"asked": sum(shares) / len(shares), "covered": 1.0 - weigh(uncovered), "dense": dense}


def _select_named(pages: Sequence[PageTerms], weigh: Callable[[Terms], float]) -> list[PageTerms]:
    """Return the pages whose titles together cover most title terms; if there are none, that of the best window."""
    scores = [max(map(weigh, windows)) for _, windows in pages]
    places = select_named([title for title, _ in pages], weigh, scores)
    return [pages[place] for place in places or [scores.index(max(scores))]]


def _pages(query_terms: Terms, passages: Sequence[Passage], sparse: SparseEncoder) -> list[PageTerms]:
    by_page: dict[str, list[Passage]] = {}
    for passage in passages:
        by_page.setdefault(passage.url_hash, []).append(passage)
    pages = []
    for group in by_page.values():
        windows = [window & query_terms for passage in group for window in _windows(passage, sparse)]
        pages.append((sparse.terms(group[0].title) & query_terms, windows))
    return pages


def is_across(question: str, passages: Sequence[Passage]) -> bool:
    """True if the best passage is in another language than the question."""
    best = max(passages, key=lambda passage: passage.score, default=None)
    return best is not None and detect_language(best.text) not in ("", question_language(question))


def estimate_answerable(
    passages: Sequence[Passage],
    question: str,
    sparse: SparseEncoder,
    idf_of: Callable[[Sequence[int]], Mapping[int, float]],
) -> float:
    """Return the probability that `passages` answer a question that they were not retrieved for, by keywords alone.

    UNDECIDED if none of them is in the question's language.
    """
    language = question_language(question)
    if passages and all(detect_language(passage.text) != language for passage in passages):
        return UNDECIDED
    idf = idf_of(sorted(sparse.encode_query(question).indices))
    return probability(features_of(idf, passages, sparse), "", dense_voted=False)


def _windows(passage: Passage, sparse: SparseEncoder) -> list[Terms]:
    above = sparse.terms(" ".join((passage.title, *passage.section)))
    sentences = sparse.sentence_terms(passage.text) or (above,)
    return [above | sentence | (sentences[i - 1] if i else above) for i, sentence in enumerate(sentences)]


def _logistic(features: Mapping[str, float], calibration: Mapping[str, float]) -> float:
    total = calibration["bias"] + sum(w * features[name] for name, w in calibration.items() if name != "bias")
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


@cache
def _read_calibrations() -> dict[str, dict[str, float]]:
    path = Path(__file__).with_name("calibration.json")
    calibrations: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return calibrations
