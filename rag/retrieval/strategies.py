"""Search strategies, registered in `STRATEGIES`, and the engine that they search a library with.

Strategies weight and fuse the legs, search for generated texts, rerank candidates, or select another strategy by the
question. A fusion takes the legs' results, `{leg: {point id: score}}`, and returns `{point id: fused score}`.

Queries for follow-ups include the words of earlier questions, with less weight the longer the follow-up is. The
question stays unchanged, and no word list decides whether it needs them. Tuned on CAsT 2021 and on questions
after a change of subject (benchmarks.followups); see docs/decisions/0010-conversations-and-roles.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.cross_encoders import Reranker
from rag.models.embedding import EmbeddingModel, LexicalHead, SparseEncoder, lexical_head
from rag.retrieval.context import BUDGET
from rag.store.values import RRF_K, Filters, Fusion, Hit, Legs, Query, reciprocal_rank_fusion
from rag.text import lazy_regex, letters_and_digits, question_language
from rag.tracing import span
from rag.types import Passage, SparseVector

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

PreRanker = Literal["weighted", "rrf"]
Need = Literal["exact", "concept", "facets", ""]
"""The kind of search that a question needs: exact words, meaning, or several searches; "" is undecided."""

BOTH = frozenset({"dense", "sparse"})
PREFETCH = 60


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings of all searches.

    `dense_weight` and `sparse_weight` weigh the legs' scores, 0 to 1 each; only their ratio matters. `rrf_k` is the
    constant of reciprocal rank fusion. Strategies that don't decide it fuse by `pre_ranker`; a reranker gets the best
    `pre_top_k` candidates (0: all). A search fetches `fetch_k` candidates, and uses up to `characters` of their text.
    """

    dense_weight: float = 0.75
    sparse_weight: float = 0.25
    rrf_k: float = RRF_K
    fetch_k: int = 40
    pre_ranker: PreRanker = "rrf"
    pre_top_k: int = 0
    characters: int = BUDGET

    def fuse(self, legs: Legs) -> dict[str, float]:
        if self.pre_ranker == "rrf":
            return reciprocal_rank_fusion(legs, self.rrf_k)
        return fuse_by_score(legs, self.dense_weight, self.sparse_weight)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request for `k` passages selected from `fetch_k` candidates.

    `earlier_questions` are the questions before this one, oldest first.
    """

    question: str
    k: int = 10
    fetch_k: int = 40
    filters: Filters = field(default_factory=Filters)
    earlier_questions: tuple[str, ...] = ()
    tuning: Tuning = Tuning()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Candidates, best first, with comparable scores, and details of the search.

    `legs` are those that took part; `notes` is plain data for the panel that explains a search, such as the queries or
    the reason for a strategy. With `diversify`, MMR selects from the candidates; with `use_full_text`, they are used in
    this order, each in full. `translations` are the question in other languages, which the passages may also answer.
    """

    hits: Sequence[Hit]
    legs: tuple[str, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    diversify: bool = False
    use_full_text: bool = False
    translations: tuple[str, ...] = ()


class Expander(Protocol):
    """A generator of additional texts to search for. `near` are the results of the question alone.

    Stateless and thread-safe. A call may take seconds. Methods raise only ModelError, if their model does not respond.
    """

    @property
    def name(self) -> str:
        """The name of the model, for the panel that explains a search."""
        ...

    @property
    def uses_model(self) -> bool:
        """True if a model writes the texts. Otherwise there are no translations, and a call takes milliseconds."""
        ...

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        """Return a hypothetical passage that answers the question; empty for none."""
        ...

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        """Return rephrasings or parts of the question, without the question itself."""
        ...

    def translation(self, question: str, language: str) -> str:
        """Translate the question into `language` (`en`, `zh`); empty if that is not possible."""
        ...

    def need(self, question: str) -> Need:
        """Return the kind of search that the question needs."""
        ...


def fallback_note(expander: Expander, error: ModelError) -> dict[str, Any]:
    """Return the note that the expander failed, and that the question was searched for unchanged."""
    return {"expander": expander.name, "fell_back": error_note(error)}


def error_note(error: ModelError) -> dict[str, Any]:
    """Return the notice of an error as plain data."""
    return {"code": error.code, "params": dict(error.notice.params)}


class Engine:
    """A strategy's access to the library, which encodes texts and queries the legs.

    Without an `expander`, only the question is searched for; without a `reranker`, results are not reranked.
    """

    def __init__(
        self,
        library: Library,
        model: EmbeddingModel,
        sparse: SparseEncoder,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self.library = library
        self.model = model
        self.sparse = sparse
        self.expander = expander
        self.reranker = reranker
        self.problem: ModelError | None = None
        """The error of the embedding model in this search, which then uses only keywords."""

    def hits(
        self,
        request: SearchRequest,
        *,
        text: str = "",
        vector: NDArray[np.float32] | None = None,
        others: Sequence[str] = (),
        legs: frozenset[str] = BOTH,
        fuse: Fusion | None = None,
        limit: int = 0,
    ) -> tuple[list[Hit], tuple[str, ...]]:
        """Return the best `limit` chunks (default fetch_k) for `text` (default the question), and the legs that voted.

        A leg that cannot read the text, or whose model does not respond, does not vote; if none of `legs` votes,
        keywords do. `vector` (d,), L2-normalised, replaces the text in the dense leg. `others` are further queries in
        the same round trip; `fuse`, by default the request's, gets their legs as `dense.2`, `sparse.2` and so on.
        Fusion by rank also gets the leg `ACROSS` if the model reads several languages.
        """
        limit = limit or max(request.fetch_k, request.k)
        by_rank = fuse is None and legs == BOTH and request.tuning.pre_ranker == "rrf"
        is_across = by_rank and all(map(self.model.can_read, _SAMPLES.values()))
        dense, sparse = self.query(text or request.question, legs, request.earlier_questions)
        if vector is not None:
            dense = vector
        voters = tuple(leg for leg, query in (("dense", dense), ("sparse", sparse)) if query is not None)
        with span("+".join(voters), "leg", queries=1 + len(others)) as step:  # the legs go in one round trip
            hits = self.library.search(
                dense=dense,
                sparse=sparse,
                more=[self.query(other, legs, request.earlier_questions) for other in others],
                limit=limit,
                prefetch=max(PREFETCH, limit),
                with_vectors=True,
                scope=request.filters,
                fuse=fuse or request.tuning.fuse,
                language=question_language(request.question) if is_across else "",
            )
            step.attributes["hits"] = len(hits)
        return hits, voters

    def query(self, text: str, legs: frozenset[str], earlier_questions: Sequence[str]) -> Query:
        dense = sparse = None
        if "dense" in legs and self.problem is None and self.model.can_read(text):
            try:
                dense = dense_query(text, earlier_questions, self.model, self.sparse)
            except ModelError as error:
                self.problem = error
        if "sparse" in legs or dense is None:
            head = lexical_head(self.model)  # learned terms if the library's model has them and can read the text
            if head is None or not self.model.can_read(text):
                sparse = sparse_query(text, earlier_questions, self.sparse)
            else:
                sparse = learned_query(text, earlier_questions, head, self.sparse, self.library.idf)
        return dense, sparse


HALF_WEIGHT_TERMS: Final = 4.0
"""Number of terms of a question at which the one before it gets half its weight."""
_TURN_DECAY: Final = 0.5
"""Weight of each earlier question relative to the one after it."""
MAX_TURNS: Final = 4


def term_weights(question: str, earlier_questions: Sequence[str], encoder: SparseEncoder) -> dict[int, float]:
    """Return weights of the question's terms (1) and of earlier questions, oldest first; the largest counts."""
    weights = dict.fromkeys(encoder.encode_query(question).indices, 1.0)
    for earlier, weight in _weights_of(earlier_questions, len(weights)):
        for term in encoder.encode_query(earlier).indices:
            weights.setdefault(term, weight)
    return weights


def sparse_query(question: str, earlier_questions: Sequence[str], encoder: SparseEncoder) -> SparseVector:
    weights = term_weights(question, earlier_questions, encoder)
    return SparseVector(list(weights), list(weights.values()))


def learned_query(
    question: str,
    earlier_questions: Sequence[str],
    head: LexicalHead,
    encoder: SparseEncoder,
    idf: Callable[[Sequence[int]], Mapping[int, float]],
) -> SparseVector:
    """Return the learned terms of the question and of earlier ones; a term's largest weight counts.

    Weights are divided by `idf`, since the engine multiplies by it, and learned weights already include rarity.
    """
    earlier = _weights_of(earlier_questions, len(encoder.encode_query(question).indices))
    texts = [(question, 1.0), *earlier]
    weights: dict[int, float] = {}
    for vector, (_, share) in zip(head.encode([text for text, _ in texts]), texts, strict=True):
        for term, value in zip(vector.indices, vector.values, strict=True):
            weights[term] = max(share * value, weights.get(term, 0.0))
    rarity = idf(sorted(weights))
    return SparseVector(list(weights), [value / rarity[term] for term, value in weights.items()])


def dense_query(
    question: str, earlier_questions: Sequence[str], model: EmbeddingModel, encoder: SparseEncoder
) -> NDArray[np.float32]:
    """Return the normalised weighted sum of the questions' vectors, (d,), except those that the model cannot read."""
    vector = model.encode_query(question)
    for earlier, weight in _weights_of(earlier_questions, len(encoder.encode_query(question).indices)):
        if model.can_read(earlier):
            vector = vector + np.float32(weight) * model.encode_query(earlier)
    unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return unit


def _weights_of(earlier_questions: Sequence[str], terms: int) -> list[tuple[str, float]]:
    """Return the last questions, latest first, with their weights relative to a question with `terms` terms."""
    latest = HALF_WEIGHT_TERMS / (HALF_WEIGHT_TERMS + terms)
    last_questions = reversed(earlier_questions[-MAX_TURNS:])
    return [(earlier, latest * _TURN_DECAY**turn) for turn, earlier in enumerate(last_questions)]


def fuse_by_score(legs: Legs, dense_weight: float = 0.5, sparse_weight: float = 0.5) -> dict[str, float]:
    """Return a convex combination of scores, each leg's divided by its best (Bruch et al., TOIS 2023). In 0 to 1.

    Only the ratio of the weights matters, and a single leg needs none. A point missing from the dense leg gets that
    leg's lowest score, its upper bound; a missing keyword score counts as 0. Unlike RRF, this preserves how much better
    the first hit is than the second.
    """
    points = sorted(set().union(*legs.values()))
    if len(legs) == 1:
        weights = dict.fromkeys(legs, 1.0)
    else:
        total = (dense_weight + sparse_weight) or 1.0
        weights = {leg: (dense_weight if leg == "dense" else sparse_weight) / total for leg in legs}
    fused = dict.fromkeys(points, 0.0)
    for leg, scores in legs.items():
        best = max(scores.values(), default=0.0)
        if best <= 0.0:
            continue
        floor = max(0.0, min(scores.values())) if leg == "dense" else 0.0
        for point in points:
            fused[point] += weights[leg] * max(0.0, scores.get(point, floor)) / best
    return fused


class Strategy(Protocol):
    """A method of finding candidates. Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """The key of the strategy in settings."""
        ...

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class LegSearch:
    """A search of `legs` for the question, fused `by` score or rank, by default as set.

    With `diversify`, MMR selects the results.
    """

    name: str
    legs: frozenset[str] = BOTH
    by: PreRanker | None = None
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        if self.by is not None:
            request = replace(request, tuning=replace(request.tuning, pre_ranker=self.by))
        hits, legs = engine.hits(request, legs=self.legs)
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
        if not query:
            return result
        hits, legs = engine.hits(request, text=query)
        # Each search is weighted by how much of its question it covers.
        merged = merge_searches([(result.hits, share), (hits, coverage(query, hits, engine))])
        translation = {"code": f"translated_{language}", "params": {"query": query, "language": language}}
        return SearchResult(
            merged[: max(request.fetch_k, request.k)],
            tuple(dict.fromkeys((*result.legs, *legs))),
            {**result.notes, "translation": translation},
            result.diversify,
            translations=(query,),
        )


def _target_language(request: SearchRequest, engine: Engine) -> str:
    """Return the language to translate into, the pages' most frequent other one; "" if translation is useless."""
    source, scope = question_language(request.question), request.filters
    languages = [one for one in _SAMPLES if one != source and (not scope.languages or one in scope.languages)]
    counts = {one: engine.library.chunk_count(replace(scope, languages=(one,))) for one in languages}
    target = max(counts, key=lambda language: counts[language], default="")
    if not target or not counts[target]:
        return ""
    is_readable = engine.model.can_read(request.question) and engine.model.can_read(_SAMPLES[target])
    return "" if is_readable else target


def coverage(question: str, hits: Sequence[Hit], engine: Engine) -> float:
    """Return the largest share of the question's terms, weighted by IDF, in one of the first passages; 0 to 1."""
    weights = engine.library.idf(sorted(engine.sparse.encode_query(question).indices))
    total = sum(weights.values())
    texts = [hit.passage.text_with_headings for hit in hits[:_FIRST]]
    term_sets = [frozenset(engine.sparse.encode_query(text).indices) for text in texts]
    shares = [sum(weight for term, weight in weights.items() if term in terms) for terms in term_sets]
    return max(shares, default=0.0) / total if total else 0.0


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


_TUTORIALS_LAMBDA = 0.7


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
            lambda_mult=_TUTORIALS_LAMBDA,
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
            vector = engine.model.encode_passages([passage])[0]
            if engine.model.can_read(request.question):
                vector = vector + engine.model.encode_query(request.question)
            hits, legs = engine.hits(request, vector=vector / max(float(np.linalg.norm(vector)), 1e-12))
        except ModelError as error:
            engine.problem = error
        return SearchResult(hits, legs, notes, diversify=True)


@dataclass(frozen=True, slots=True)
class MultiQuery:
    """A search by both legs for the question and up to three phrasings or parts of it, then fused."""

    name: str = "multi_query"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        near, legs = engine.hits(request)
        if engine.expander is None:
            return SearchResult(near, legs, {"queries": [request.question]}, diversify=True)
        try:
            phrasings = engine.expander.phrasings(request.question, [hit.passage for hit in near])
        except ModelError as error:
            return SearchResult(near, legs, fallback_note(engine.expander, error), diversify=True)
        others = remove_duplicates(request.question, phrasings)
        by_score = replace(request.tuning, pre_ranker="weighted").fuse
        hits, legs = engine.hits(request, others=others, fuse=partial(fuse_phrasings, weigh=by_score))
        notes = {"queries": [request.question, *others], "expander": engine.expander.name}
        return SearchResult(hits, legs, notes, diversify=True)


def remove_duplicates(question: str, phrasings: Sequence[str]) -> list[str]:
    """Return up to MAX_PHRASINGS phrasings, without duplicates and the question itself."""
    distinct = {"": "", letters_and_digits(question): ""}
    for phrasing in phrasings:
        distinct.setdefault(letters_and_digits(phrasing), phrasing.strip())
    return list(filter(None, distinct.values()))[:MAX_PHRASINGS]


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


_RERANK_SECONDS = 6.0
"""Time limit of a cross-encoder; candidates that it does not reach keep their order after the others."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """A search reranked by a cross-encoder, whose `rerank` score then counts.

    If none is configured or it cannot be loaded, the fused score and MMR decide, and the notes say why.
    """

    name: str = "rerank"

    def find(self, request: SearchRequest, engine: Engine) -> SearchResult:
        hits, legs = engine.hits(request)
        notes: dict[str, Any] = {"reranker": {"code": "rerank_without_weights", "params": {}}}
        if engine.reranker is None:
            return SearchResult(hits, legs, notes, diversify=True)
        candidates = hits[: request.tuning.pre_top_k or len(hits)]
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
        reached = reranker.scores(question, [_whole(hit) for hit in hits], seconds=_RERANK_SECONDS)
    known = [score for score in reached if score is not None]
    # Candidates that it did not reach rank below all others, in their previous order.
    floor = min(known, default=1.0)
    missing = len(hits) - len(known)
    rest = (floor * (missing - place) / (missing + 1) for place in range(missing))
    final = [next(rest) if score is None else score for score in reached]
    ranked = []
    for rank, place in enumerate(sorted(range(len(hits)), key=lambda place: (-final[place], place)), 1):
        passage, score = hits[place].passage, final[place]
        scores, ranks = {**passage.scores, "rerank": score}, {**passage.ranks, "rerank": rank}
        ranked.append(replace(hits[place], passage=replace(passage, score=score, scores=scores, ranks=ranks)))
    return ranked, len(known)


def _whole(hit: Hit) -> str:
    """Return the passage under its headings, as embedded."""
    passage = hit.passage
    above = " › ".join(dict.fromkeys(filter(None, (passage.title, *passage.section))))
    return f"{above}\n{passage.text}" if above else passage.text


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
        if need == "facets":
            result = MultiQuery().find(request, engine)
        else:
            dense = request.tuning.dense_weight * DENSE_FACTORS.get(need, 1.0)
            by: PreRanker = "weighted" if need else request.tuning.pre_ranker
            tuning = replace(request.tuning, dense_weight=dense, pre_ranker=by)
            result = Rerank().find(replace(request, tuning=tuning), engine)
        return replace(result, notes={**notes, **result.notes, "why": reason})


def decide_by_rules(question: str) -> tuple[Need, dict[str, Any]]:
    """Return the question's need, and the reason as a message code and parameters."""
    parts = sum(1 for clause in _CLAUSE.split(question) if clause and ASKS.search(clause))
    if parts > 1 or _LISTS.search(question):
        return "facets", {"code": "auto_facets", "params": {"parts": max(parts, 2)}}
    for pattern in (_QUOTED, _CODE, _NAME):
        if match := pattern.search(question):
            return "exact", {"code": "auto_exact", "params": {"words": match[0].strip()}}
    if match := _CONCEPT.search(question):
        return "concept", {"code": "auto_concept", "params": {"word": match[0].strip()}}
    return "", {"code": "auto_plain", "params": {}}


DEFAULT_STRATEGY = "rerank"
STRATEGIES: dict[str, Strategy] = {
    strategy.name: AcrossLanguages(strategy)
    for strategy in (
        LegSearch("dense", frozenset({"dense"})),
        LegSearch("keyword", frozenset({"sparse"})),
        LegSearch("hybrid", by="rrf"),
        LegSearch("weighted", by="weighted"),
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
