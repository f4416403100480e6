"""Search strategies, registered in `STRATEGIES`; `tests/retrieval/test_retriever.py` runs them all.

Some search for generated texts, rerank the candidates of the weighted search, or select another strategy by the
question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.reranker import Reranker
from rag.patterns import lazy_regex
from rag.retrieval.engine import (
    BOTH,
    Engine,
    Need,
    SearchRequest,
    SearchResult,
    error_note,
    fallback_note,
    fuse_by_score,
)
from rag.store.values import Fusion, Hit, Legs
from rag.text import question_language
from rag.tracing import span


class Strategy(Protocol):
    """A method of finding candidates. Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """The key of the strategy in settings."""
        ...

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class LegSearch:
    """A search of `legs` for the question, fused by score or `by_rank`; with `diversify`, MMR selects the results."""

    name: str
    legs: frozenset[str] = BOTH
    by_rank: bool = False
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        fuse = request.tuning.fuse_by_rank if self.by_rank else request.tuning.fuse_by_score
        hits, legs = engine.hits(request, legs=self.legs, fuse=fuse)
        return SearchResult(hits, legs, diversify=self.diversify)


_MIN_COVERAGE = 0.5
"""A search found little if no top passage has this share of the question's terms, weighted by IDF."""
_FIRST = 5
_SAMPLES = {"en": "The river rises in the mountains and reaches the sea.", "zh": "这条河发源于山中，最后流入大海。"}


@dataclass(frozen=True, slots=True)
class AcrossLanguages:
    """A wrapper that also searches for a translated query if a strategy finds little.

    Calls a model once, or not at all if the embedding model reads both languages, if no model can translate, or if no
    page is in another language.
    """

    inner: Strategy

    @property
    def name(self) -> str:
        return self.inner.name

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        result = self.inner.find(request, engine)
        if engine.expander is None or not engine.expander.uses_model:
            return result
        share = coverage(request.question, result.hits, engine)
        if share >= _MIN_COVERAGE or not (language := _target_language(request, engine)):
            return result
        try:
            query = engine.expander.translation(request.question, language)
        except ModelError as error:
            return replace(result, notes={**result.notes, **fallback_note(engine.expander, error)})
        return _add_translation(query, language, share, result, request, engine) if query else result


def _target_language(request: SearchRequest, engine: Engine) -> str:
    """Return the language to translate into, the pages' most frequent other one; "" if translation is useless."""
    source = question_language(request.question)
    counts = {language: _chunks(language, request, engine) for language in _SAMPLES if language != source}
    target = max(counts, key=lambda language: counts[language])
    is_readable = engine.model.can_read(request.question) and engine.model.can_read(_SAMPLES[target])
    return target if counts[target] and not is_readable else ""


def _chunks(language: str, request: SearchRequest, engine: Engine) -> int:
    if request.filters.languages and language not in request.filters.languages:
        return 0
    return engine.library.chunk_count(replace(request.filters, languages=(language,)))


def coverage(question: str, hits: Sequence[Hit], engine: Engine) -> float:
    """Return the largest share of the question's terms, weighted by IDF, in one of the first passages; 0 to 1."""
    weights = engine.library.idf(sorted(engine.sparse.encode_query(question).indices))
    total = sum(weights.values())
    term_sets = [frozenset(engine.sparse.encode_query(_text(hit)).indices) for hit in hits[:_FIRST]]
    shares = [sum(weight for term, weight in weights.items() if term in terms) for terms in term_sets]
    return max(shares, default=0.0) / total if total else 0.0


def _text(hit: Hit) -> str:
    return "\n".join((hit.passage.title, *hit.passage.section, hit.passage.text))


def _add_translation(
    query: str, language: str, share: float, result: SearchResult, request: SearchRequest, engine: Engine
) -> SearchResult:
    """Merge the hits of both searches, each weighted by how much of its question it covers."""
    hits, legs = engine.hits(request, text=query)
    merged = merge_searches([(result.hits, share), (hits, coverage(query, hits, engine))])
    params = {"query": query, "language": language}
    notes: dict[str, Any] = {**result.notes, "translation": {"code": f"translated_{language}", "params": params}}
    voters = tuple(dict.fromkeys((*result.legs, *legs)))
    return SearchResult(
        merged[: max(request.fetch_k, request.k)], voters, notes, result.diversify, translations=(query,)
    )


def merge_searches(searches: Sequence[tuple[Sequence[Hit], float]]) -> list[Hit]:
    """Merge the hits of several searches by score, scaled so that each search's best has its weight; deduplicate."""
    best: dict[str, Hit] = {}
    for hits, weight in searches:
        top = max((hit.passage.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            score = max(weight, 0.01) * hit.passage.score / top
            current = best.get(hit.passage.id)
            if current is None or current.passage.score < score:
                best[hit.passage.id] = replace(hit, passage=replace(hit.passage, score=score))
    return sorted(best.values(), key=lambda hit: (-hit.passage.score, hit.passage.id))


@dataclass(frozen=True, slots=True)
class Classic:
    """Retrieval as in tutorials: MMR over the dense vectors with langchain-qdrant's QdrantVectorStore.

    Passages are used in full. Falls back to keywords if the model cannot read the question.
    """

    name: str = "classic"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        dense, _ = engine.query(request.question, frozenset({"dense"}), request.earlier_questions)
        if dense is None:
            return SearchResult(*engine.hits(request, limit=request.k), use_full_text=True)
        hits = engine.library.search_diverse(
            dense,
            limit=request.k,
            fetch_k=request.fetch_k,
            lambda_mult=request.lambda_mult,
            scope=request.filters,
        )
        return SearchResult(hits, ("dense",), use_full_text=True)


MAX_PHRASINGS = 3
_OTHER_WEIGHT = 0.9  # weight of the other phrasings relative to the question's own words
_BONUS = 0.5  # share of the smaller score that is added if a passage has both


@dataclass(frozen=True, slots=True)
class Hyde:
    """HyDE: a search for the mean of the vectors of question and hypothetical passage, and the question's keywords.

    Without a passage, it is a plain search.
    """

    name: str = "hyde"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        hits, legs = engine.hits(request)
        if engine.expander is None:
            return SearchResult(hits, legs, diversify=True)
        try:
            passage = engine.expander.passage(request.question, [hit.passage for hit in hits])
        except ModelError as error:
            return SearchResult(hits, legs, fallback_note(engine.expander, error), diversify=True)
        notes = {"expander": engine.expander.name, "passage": passage}
        if not passage or not engine.model.can_read(passage):
            return SearchResult(hits, legs, notes, diversify=True)
        try:
            hits, legs = engine.hits(request, vector=_mean_vector(request.question, passage, engine))
        except ModelError as error:
            engine.problem = error
        return SearchResult(hits, legs, notes, diversify=True)


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

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        if engine.expander is None:
            return _search_phrasings(request, engine, [])
        near, legs = engine.hits(request)
        try:
            phrasings = engine.expander.phrasings(request.question, [hit.passage for hit in near])
        except ModelError as error:
            return SearchResult(near, legs, fallback_note(engine.expander, error), diversify=True)
        return _search_phrasings(request, engine, remove_duplicates(request.question, phrasings), engine.expander.name)


def _search_phrasings(request: SearchRequest, engine: Engine, others: Sequence[str], name: str = "") -> SearchResult:
    fuse = partial(fuse_phrasings, weigh=request.tuning.fuse_by_score)
    hits, legs = engine.hits(request, others=others, fuse=fuse)
    notes = {"queries": [request.question, *others], **({"expander": name} if name else {})}
    return SearchResult(hits, legs, notes, diversify=True)


def remove_duplicates(question: str, phrasings: Sequence[str]) -> list[str]:
    """Return up to MAX_PHRASINGS phrasings, without duplicates and the question itself."""
    seen = {_plain(question)}
    result = []
    for phrasing in phrasings:
        if _plain(phrasing) and _plain(phrasing) not in seen:
            seen.add(_plain(phrasing))
            result.append(phrasing.strip())
    return result[:MAX_PHRASINGS]


def fuse_phrasings(legs: Legs, weigh: Fusion = fuse_by_score) -> dict[str, float]:
    """Fuse each phrasing's legs by score; a passage gets its best score, plus a bonus if it matches several.

    Thus the best passage for each part of a question ranks near the top. In 0 to 1.
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


_RERANK_SECONDS = 6.0
"""Time limit of a cross-encoder; candidates that it does not reach keep their order after the others."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """A search reranked by a cross-encoder, whose `rerank` score then counts.

    If none is configured or it cannot be loaded, the fused score and MMR decide, and the notes say why.
    """

    name: str = "rerank"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        tuning = request.tuning
        by_rank = engine.reranker is not None and tuning.pre_ranker == "rrf"
        hits, legs = engine.hits(request, fuse=tuning.fuse_by_rank if by_rank else tuning.fuse_by_score)
        notes: dict[str, Any] = {"reranker": {"code": "rerank_without_weights", "params": {}}}
        if engine.reranker is None:
            return SearchResult(hits, legs, notes, diversify=True)
        candidates = hits[: tuning.pre_top_k or len(hits)]
        try:
            ranked, reached = _score_again(request.question, candidates, engine.reranker)
        except ModelError as error:
            notes["fell_back"] = error_note(error)
            return SearchResult(hits, legs, notes, diversify=True)
        params = {"model": engine.reranker.name, "reached": reached, "of": len(candidates)}
        return SearchResult(ranked, legs, {"reranker": {"code": "rerank_with", "params": params}})


def _score_again(question: str, hits: Sequence[Hit], reranker: Reranker) -> tuple[list[Hit], int]:
    """Return the hits with the reranker's scores, best first, and how many it reached in time."""
    with span(reranker.name, "rerank", of=len(hits)):
        scores = reranker.scores(question, [_whole(hit) for hit in hits], seconds=_RERANK_SECONDS)
    known = [score for score in scores if score is not None]
    # Candidates that it did not reach rank below all others, in their previous order.
    floor = min(known, default=1.0)
    missing = len(hits) - len(known)
    rest = (floor * (missing - place) / (missing + 1) for place in range(missing))
    return _sort_by_score(hits, [next(rest) if score is None else score for score in scores]), len(known)


def _whole(hit: Hit) -> str:
    """Return the passage under its headings, as embedded."""
    passage = hit.passage
    above = " › ".join(dict.fromkeys(filter(None, (passage.title, *passage.section))))
    return f"{above}\n{passage.text}" if above else passage.text


def _sort_by_score(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    order = sorted(range(len(hits)), key=lambda place: (-scores[place], place))
    return [_with_score(hits[place], scores[place], rank) for rank, place in enumerate(order, 1)]


def _with_score(hit: Hit, score: float, rank: int) -> Hit:
    passage = hit.passage
    scores = {**passage.scores, "rerank": score}
    return replace(hit, passage=replace(passage, score=score, scores=scores, ranks={**passage.ranks, "rerank": rank}))


DENSE_FACTORS: dict[Need, float] = {"exact": 2 / 3, "concept": 3 / 2}
"""Factors on the dense leg's weight, small because benchmarks are inconclusive: docs/decisions/0004-strategies.md."""

_QUOTED = lazy_regex('"[^"\n]{2,60}"|“[^”\n]{2,60}”|「[^」\n]{2,60}」|『[^』\n]{2,60}』|`[^`\n]{2,60}`')
_CODE = lazy_regex(
    r"(?<![\w.])(?:[A-Za-z]+[-_.]?\d[\w.-]*|\d[\w.,-]*\w|\d|[A-Z][A-Z0-9&]+|\w+[_/]\w[\w/]*)(?![\w])", re.ASCII
)
_NAME = lazy_regex(r"(?<=[\w,] )(?:[A-Z][a-z]+ ){1,3}[A-Z][a-z]+\b")
_CONCEPT = lazy_regex(
    r"^\W*(?:why\b|explain\b|describe\b|compare\b|how(?! (?:many|much|old|long|far|tall|high|large|often|big|fast))\b)"
    r"|\b(?:reasons?|causes?|purpose|difference|relationship|effects?|impact|meaning|role|advantages?|concept)"
    r" (?:for|of|between|on|in)\b"
    r"|\bwhat does .{1,60} mean\b|为什么|为何|如何|怎么|怎样|原因|区别|作用|意义|影响|关系|含义|概念|优点|缺点",
    re.IGNORECASE,
)
ASKS = lazy_regex(
    r"\b(?:what|which|who|whom|whose|when|where|why|how)\b|什么|哪|谁|多少|几[^乎]|何时|为什么|如何|怎|多[久长大高远快]",
    re.IGNORECASE,
)
_CLAUSE = lazy_regex(r"[,;?，；？、]|\band\b|以及|并且|还有|另外", re.IGNORECASE)
_LISTS = lazy_regex(r"分别|\brespectively\b|\beach of\b", re.IGNORECASE)

_PLAIN = Rerank()


@dataclass(frozen=True, slots=True)
class Auto:
    """A search by need: several queries for several facets, more keyword weight for names, numbers, codes and
    quotations, more dense weight for concepts.

    Rules decide first, then the expander; if both are undecided, the default search is used.
    """

    name: str = "auto"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        need, reason = decide_by_rules(request.question)
        notes: dict[str, Any] = {}
        if not need and engine.expander is not None:
            try:
                need = engine.expander.need(request.question)
            except ModelError as error:
                notes = fallback_note(engine.expander, error)
            if need:
                reason = {"code": f"auto_{need}_model", "params": {"model": engine.expander.name}}
        result = _find_by_need(need, request, engine)
        return replace(result, notes={**notes, **result.notes, "why": reason})


def decide_by_rules(question: str) -> tuple[Need, dict[str, Any]]:
    """Return the question's need, and the reason as a message code and parameters."""
    if parts := _count_facets(question):
        return "facets", {"code": "auto_facets", "params": {"parts": parts}}
    if words := _find_exact(question):
        return "exact", {"code": "auto_exact", "params": {"words": words}}
    if match := _CONCEPT.search(question):
        return "concept", {"code": "auto_concept", "params": {"word": match[0].strip()}}
    return "", {"code": "auto_plain", "params": {}}


def _count_facets(question: str) -> int:
    """Return how many parts of the question ask something; 0 if it asks one thing."""
    asking = sum(1 for clause in _CLAUSE.split(question) if clause and ASKS.search(clause))
    return max(asking, 2) if asking > 1 or _LISTS.search(question) else 0


def _find_exact(question: str) -> str:
    """Return the first quotation, code, number or multi-word name in the question."""
    for pattern in (_QUOTED, _CODE, _NAME):
        if match := pattern.search(question):
            return match[0].strip()
    return ""


def _find_by_need(need: Need, request: SearchRequest, engine: Engine) -> SearchResult:
    if need == "facets":
        return MultiQuery().find(request, engine)
    tuning = request.tuning
    dense = tuning.dense_weight * DENSE_FACTORS.get(need, 1.0)
    return _PLAIN.find(replace(request, tuning=replace(tuning, dense_weight=dense)), engine)


DEFAULT_STRATEGY = "rerank"
STRATEGIES: dict[str, Strategy] = {
    strategy.name: AcrossLanguages(strategy)
    for strategy in (
        LegSearch("dense", frozenset({"dense"})),
        LegSearch("keyword", frozenset({"sparse"})),
        LegSearch("hybrid", by_rank=True),
        LegSearch("weighted"),
        LegSearch("mmr", diversify=True),
        Hyde(),
        MultiQuery(),
        Rerank(),
        Auto(),
        Classic(),
    )
}
EXPANDED = frozenset({"hyde", "multi_query"})
"""The strategies that search with texts from an expander."""
