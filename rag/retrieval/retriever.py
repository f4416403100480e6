"""Search over one library, or over several with fused results.

In one library, a strategy finds candidates, MMR selects from them, and the context is assembled. With several, each has
its own retriever and model, and scores, which are relative to the library's best, are not comparable. They are weighted
by the probability of an answer, which beats reciprocal ranks and plain scores (`benchmarks.library_groups`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel
from rag.models.reranker import Reranker
from rag.models.sparse import SparseEncoder
from rag.retrieval.answerable import features_of, is_across, probability
from rag.retrieval.context import BUDGET, Context, assemble, expand_hits, expand_to_parents
from rag.retrieval.engine import Engine, Expander, SearchRequest, Tuning, error_note, term_weights
from rag.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES
from rag.store.values import Filters, Hit
from rag.types import Candidate, Page, Passage, Retrieval

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

K, LAMBDA = 10, 0.7
DEFAULTS = Tuning()
MMR_SHARE = 0.75
"""The share of the candidates that MMR selects, and sentence selection then reads."""

ScoreAcrossLibraries = Callable[[Retrieval, int, Passage], float]
"""The score of a passage across libraries, given its library's results and its rank there, from 1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The features of `answerable.features_of` for one question, and the legs that took part."""

    features: dict[str, float]
    legs: tuple[str, ...]


class Retriever:
    """A search over one library. Thread-safe; raises StoreError if the database fails."""

    def __init__(
        self,
        library: Library,
        model: EmbeddingModel,
        sparse: SparseEncoder,
        *,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
        tuning: Tuning = DEFAULTS,
    ) -> None:
        self._tuning = tuning
        self._engine = Engine(library, model, sparse, expander, reranker)

    def search(
        self,
        question: str,
        *,
        k: int = K,
        fetch_k: int = 0,
        lambda_mult: float = LAMBDA,
        strategy: str = DEFAULT_STRATEGY,
        filters: Filters | None = None,
        earlier_questions: Sequence[str] = (),
    ) -> Retrieval:
        """Return up to k passages of fetch_k candidates (default: the larger of the configured number and 2 k).

        `earlier_questions` are the questions before this one, oldest first.
        """
        fetch_k = fetch_k or max(0 if strategy == "classic" else self._tuning.fetch_k, 2 * k)
        engine = copy(self._engine)  # a copy, since it records failures of this search
        scope, earlier = filters or Filters(), tuple(earlier_questions)
        request = SearchRequest(question, k, fetch_k, lambda_mult, scope, earlier, self._tuning)
        start = time.perf_counter()
        result = STRATEGIES[strategy].find(request, engine)
        damaged = [hit.passage for hit in result.hits if not hit.passage.text]
        hits = expand_hits([hit for hit in result.hits if hit.passage.text], self._engine.library)
        search_end = time.perf_counter()
        pool = max(k, round(MMR_SHARE * len(hits)))
        candidates = _select_diverse(hits, pool, lambda_mult) if result.diversify else _select_first(hits, pool)
        selected = [candidate.passage for candidate in candidates if candidate.place is not None]
        questions = (question, *result.translations)
        terms = [self._idf(one, earlier_questions) for one in questions]
        weights = {term: idf for each in terms for term, idf in each.items()}
        context = self._context(selected, weights, k, hits, use_full_text=result.use_full_text)
        choose_end = time.perf_counter()
        likely = self._max_probability(zip(questions, terms, strict=True), context.passages, result.legs)
        judge_end = time.perf_counter()
        return Retrieval(
            question,
            strategy,
            context.passages,
            tuple(_add_fate(candidate, context) for candidate in candidates),
            result.legs,
            _milliseconds(search=search_end - start, choose=choose_end - search_end, judge=judge_end - choose_end),
            {**result.notes, **_failure_note(engine.problem)},
            round(likely, 4),
            tuple(dict.fromkeys(one.title or one.url for one in damaged)),
        )

    def _context(
        self,
        selected: Sequence[Passage],
        idf: dict[int, float],
        k: int,
        hits: Sequence[Hit],
        *,
        use_full_text: bool,
    ) -> Context:
        if use_full_text:
            return Context(tuple(selected[:k]))
        stored = {hit.passage.id: hit.sentences for hit in hits}
        return assemble(selected, idf, self._engine.sparse, k, self._tuning.characters, stored)

    def _max_probability(
        self, questions: Iterable[tuple[str, dict[int, float]]], passages: Sequence[Passage], legs: Sequence[str]
    ) -> float:
        """Return the highest probability that the passages answer one of the questions, given with their IDF."""
        name, dense = self._engine.model.name, "dense" in legs
        return max(
            probability(
                features_of(idf, passages, self._engine.sparse), name, dense, across=is_across(question, passages)
            )
            for question, idf in questions
        )

    def evidence(self, question: str) -> Evidence:
        """Return the inputs of `answerable`, for calibration."""
        result = self.search(question)
        return Evidence(features_of(self._idf(question), result.passages, self._engine.sparse), result.legs)

    def _idf(self, question: str, earlier_questions: Sequence[str] = ()) -> dict[int, float]:
        """Return the IDF of the question's terms, and the weighted IDF of those of earlier questions."""
        weights = term_weights(question, earlier_questions, self._engine.sparse)
        return {term: weights[term] * idf for term, idf in self._engine.library.idf(sorted(weights)).items()}

    def vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector (d,) of a question, in the library's model."""
        return self._engine.model.encode_query(question)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Reload passages by id; skip those that no longer exist."""
        return expand_to_parents(self._engine.library.passages(ids), self._engine.library)


def _failure_note(problem: ModelError | None) -> dict[str, Any]:
    """Return the note that the embedding model failed, if it did."""
    return {"meaning": error_note(problem)} if problem else {}


def _select_diverse(hits: Sequence[Hit], k: int, lambda_mult: float) -> list[Candidate]:
    if not hits:
        return []
    best = max(hit.passage.score for hit in hits) or 1.0
    similarity = pairwise_similarity([hit.vector for hit in hits], [hit.terms for hit in hits])
    picks = mmr([hit.passage.score / best for hit in hits], similarity, k, lambda_mult)
    return [
        Candidate(
            hits[pick.candidate].passage,
            pick.place,
            None if pick.repeats is None else hits[pick.repeats].passage.id,
            pick.similarity,
        )
        for pick in picks
    ]


def _add_fate(candidate: Candidate, context: Context) -> Candidate:
    places = {passage.id: place for place, passage in enumerate(context.passages, 1)}
    key = candidate.passage.id
    return replace(candidate, place=places.get(key), fate=context.fates.get(key), into=context.into.get(key))


def _select_first(hits: Sequence[Hit], k: int) -> list[Candidate]:
    return [Candidate(hit.passage, i if i <= k else None) for i, hit in enumerate(hits, 1)]


def _milliseconds(**seconds: float) -> dict[str, float]:
    return {stage: round(1000 * value, 2) for stage, value in seconds.items()}


@dataclass(frozen=True, slots=True)
class Pick:
    """The outcome for a candidate: its place in the selection, or None.

    `similarity` is that to `repeats`, the nearest candidate picked before it.
    """

    candidate: int
    place: int | None
    repeats: int | None
    similarity: float


def mmr(relevance: Sequence[float], similarity: NDArray[np.float32], k: int, lambda_mult: float) -> list[Pick]:
    """Pick k of n candidates by λ · relevance - (1 - λ) · similarity to the nearest pick.

    Carbonell and Goldstein, SIGIR 1998. relevance: n numbers in 0 to 1; similarity: (n, n) in 0 to 1. It is cubed, so
    that passages on one topic, which are always somewhat alike, are not dropped, while near-duplicates stay near 1
    (recall@4000 on chroma .919 plain, .926 cubed).
    Returns n picks: the selected ones in order, then the others by relevance. Ties go to the first.
    """
    n = len(relevance)
    scores = np.asarray(relevance, dtype=np.float32)
    nearest = np.zeros(n, dtype=np.float32)
    repeats = np.full(n, -1)
    open_ = np.ones(n, dtype=bool)
    picks: list[Pick] = []
    for place in range(1, min(k, n) + 1):
        gain = np.where(open_, lambda_mult * scores - (1.0 - lambda_mult) * nearest**3, -np.inf)
        best = int(np.argmax(gain))
        open_[best] = False
        picks.append(_pick(best, place, repeats, nearest))
        is_closer = open_ & (similarity[best] > nearest)
        nearest[is_closer], repeats[is_closer] = similarity[best][is_closer], best
    rest = sorted(np.flatnonzero(open_).tolist(), key=lambda i: (-relevance[i], i))
    return picks + [_pick(i, None, repeats, nearest) for i in rest]


def _pick(candidate: int, place: int | None, repeats: NDArray[np.int64], nearest: NDArray[np.float32]) -> Pick:
    other = int(repeats[candidate])
    return Pick(candidate, place, None if other < 0 else other, float(nearest[candidate]))


def pairwise_similarity(
    vectors: Sequence[NDArray[np.float32] | None], terms: Sequence[frozenset[int]]
) -> NDArray[np.float32]:
    """Return similarities in 0 to 1, (n, n): cosine if both candidates have a vector, else term overlap.

    vectors: n of shape (d,), L2-normalised, or None if the model cannot read the text. Two such texts overlap by their
    share of common `terms` (Jaccard index); one such text and one with a vector have similarity 0.
    """
    n = len(vectors)
    result = np.zeros((n, n), dtype=np.float32)
    readable = {i: vector for i, vector in enumerate(vectors) if vector is not None}
    if readable:
        rows = np.stack(list(readable.values()))
        result[np.ix_(list(readable), list(readable))] = np.clip(rows @ rows.T, 0.0, 1.0)
    unreadable = {i for i in range(n) if i not in readable}
    for i in unreadable:
        for j in unreadable:
            union = len(terms[i] | terms[j])
            result[i, j] = len(terms[i] & terms[j]) / union if union else 0.0
    return result


def by_likelihood(result: Retrieval, _: int, passage: Passage) -> float:
    return result.answerable * passage.score


@dataclass(frozen=True)
class EnsembleRetriever:
    """A retriever over several libraries: `retrievers` by name, that of the conversation first; `weights` default to 1.

    `idf` covers all libraries. Passages have the name of their library. If several libraries have a page, only passages
    from the one with the best match are used.
    """

    retrievers: Mapping[str, Retriever]
    idf: Callable[[Sequence[int]], Mapping[int, float]]
    sparse: SparseEncoder
    weights: Mapping[str, float] = field(default_factory=dict)
    characters: int = BUDGET
    score_passage: ScoreAcrossLibraries = by_likelihood

    def search(self, question: str, *, k: int = K, earlier_questions: Sequence[str] = (), **options: Any) -> Retrieval:
        """Search like `Retriever.search`, for up to k passages and `characters` in total."""
        results = {
            name: one.search(question, k=k, earlier_questions=earlier_questions, **options)
            for name, one in self.retrievers.items()
        }
        ranked = _keep_best_library([one for name, result in results.items() for one in self._score(name, result)])
        chosen = [one.passage for one in ranked if one.place is not None or one.fate]
        weights = term_weights(question, earlier_questions, self.sparse)
        query_weights = {term: weights[term] * idf for term, idf in self.idf(sorted(weights)).items()}
        context = assemble(chosen, query_weights, self.sparse, k, self.characters)
        best = max(results.values(), key=lambda result: result.answerable)
        return replace(
            best,
            passages=context.passages,
            candidates=tuple(_add_fate(candidate, context) for candidate in ranked),
            legs=tuple(dict.fromkeys(leg for result in results.values() for leg in result.legs)),
            ms=_sum_times(result.ms for result in results.values()),
            notes={**_first_failure(results.values()), **best.notes},
            damaged=tuple(dict.fromkeys(title for result in results.values() for title in result.damaged)),
        )

    def _score(self, name: str, result: Retrieval) -> Iterable[Candidate]:
        """Yield the candidates of one library with their scores among all libraries."""
        weight = self.weights.get(name, 1.0)
        for place, one in enumerate(sorted(result.candidates, key=lambda one: -one.passage.score), 1):
            score = weight * self.score_passage(result, place, one.passage)
            scores = {**one.passage.scores, "fused": score}
            yield replace(one, passage=replace(one.passage, library=name, score=score, scores=scores))

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Reload passages by id, each from the first library that has it."""
        by_id = {
            passage.id: replace(passage, library=name)
            for name, retriever in reversed(list(self.retrievers.items()))
            for passage in retriever.passages(ids)
        }
        return [by_id[key] for key in ids if key in by_id]

    def vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector (d,) of a question, in the first library's model."""
        return next(iter(self.retrievers.values())).vector(question)


@dataclass(frozen=True, slots=True)
class LibraryGroup:
    """A view of several libraries as one, for reading; the first that has a page provides it."""

    libraries: Sequence[Library]

    def pages(self) -> list[Page]:
        return [page for library in self.libraries for page in library.pages()]

    def stored_pages(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {
            key: page for library in reversed(self.libraries) for key, page in library.stored_pages(url_hashes).items()
        }

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return {key: text for library in reversed(self.libraries) for key, text in library.texts(url_hashes).items()}

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return passages in the order of `ids`, each from the first library that has it."""
        by_id = {passage.id: passage for library in reversed(self.libraries) for passage in library.passages(ids)}
        return [by_id[key] for key in ids if key in by_id]

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """Return the lowest IDF of each term: a term that is common in one library says little there."""
        idfs = [one.idf(terms) for one in self.libraries]
        return {term: min(one[term] for one in idfs) for term in terms}


LibraryView: TypeAlias = "Library | LibraryGroup"
"""One library, or several, for reading."""


def _keep_best_library(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates, best first; keep those of each page only from the library with the best match."""
    ranked = sorted(candidates, key=lambda candidate: -candidate.passage.score)
    homes: dict[str, str] = {}
    for candidate in ranked:
        homes.setdefault(candidate.passage.url_hash, candidate.passage.library)
    return [candidate for candidate in ranked if homes[candidate.passage.url_hash] == candidate.passage.library]


def _first_failure(results: Iterable[Retrieval]) -> dict[str, Any]:
    """Return the note that a library's embedding model failed, if any."""
    notes = [result.notes["meaning"] for result in results if "meaning" in result.notes]
    return {"meaning": notes[0]} if notes else {}


def _sum_times(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for stages in times:
        for stage, ms in stages.items():
            total[stage] = round(total.get(stage, 0.0) + ms, 2)
    return total
