"""The protocol of strategies, and the engine through which they search the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel
from rag.models.reranker import Reranker
from rag.models.sparse import SparseEncoder, lexical_of
from rag.retrieval.context import BUDGET
from rag.retrieval.followup_query import dense_query, learned_query, sparse_query
from rag.retrieval.ranking import fuse_by_score
from rag.store.values import RRF_K, Filters, Fusion, Hit, Legs, Query, reciprocal_rank_fusion
from rag.text import question_language
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
    constant of reciprocal rank fusion. A reranker gets the best `pre_top_k` candidates, 0 for all, by `pre_ranker`.
    `fetch_k` candidates are searched for, and up to `characters` of their text are used.
    """

    dense_weight: float = 0.75
    sparse_weight: float = 0.25
    rrf_k: float = RRF_K
    fetch_k: int = 40
    pre_ranker: PreRanker = "weighted"
    pre_top_k: int = 0
    characters: int = BUDGET

    def fuse_by_score(self, legs: Legs) -> Mapping[str, float]:
        return fuse_by_score(legs, self.dense_weight, self.sparse_weight)

    def fuse_by_rank(self, legs: Legs) -> Mapping[str, float]:
        return reciprocal_rank_fusion(legs, self.rrf_k)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request for `k` passages selected from `fetch_k` candidates; `lambda_mult` weighs relevance in MMR.

    `before` are the questions before this one, oldest first.
    """

    question: str
    k: int = 10
    fetch_k: int = 40
    lambda_mult: float = 0.7
    filters: Filters = field(default_factory=Filters)
    before: tuple[str, ...] = ()
    tuning: Tuning = Tuning()


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates, best first, with comparable scores, and details of the search.

    `legs` took part; `notes` is plain data for the panel that explains a search, such as the queries or the reason for
    a strategy. With `diversify`, MMR selects from the candidates; `whole` uses them in this order, each in full.
    `asked` is the question in other languages, which the passages may also answer.
    """

    hits: Sequence[Hit]
    legs: tuple[str, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    diversify: bool = False
    whole: bool = False
    asked: tuple[str, ...] = ()


class Strategy(Protocol):
    """A way to find candidates. Stateless; one object serves all threads."""

    @property
    def name(self) -> str:
        """The key of the strategy in settings."""
        ...

    def find(self, request: SearchRequest, engine: Engine) -> Found: ...


class Expander(Protocol):
    """A source of texts to search with in addition to the question. `near` are the results of the question alone.

    Stateless; one object serves all threads. A call may take seconds. Every method raises ModelError, and nothing else,
    when the model behind it does not answer.
    """

    @property
    def name(self) -> str:
        """The name of the model, for the panel that explains a search."""
        ...

    @property
    def writes(self) -> bool:
        """True if a model writes the texts. Without one there are no translations, and a call takes milliseconds."""
        ...

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        """Return a hypothetical passage that answers; empty for none."""
        ...

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        """Return other ways to ask, or the parts of the question; without the question itself."""
        ...

    def translation(self, question: str, language: str) -> str:
        """Translate the question into `language` (`en`, `zh`); empty if that is not possible."""
        ...

    def need(self, question: str) -> Need:
        """Return the kind of search that the question needs."""
        ...


def fallback_note(expander: Expander, error: ModelError) -> dict[str, Any]:
    """Return the note that the expander failed, and that the question was searched for unchanged."""
    notice = {"code": error.code, "params": dict(error.notice.params)}
    return {"expander": expander.name, "fell_back": notice}


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

        A leg that cannot read the text, or whose model does not answer, does not vote; if none of `legs` can,
        keywords do. `vector` (d,), L2-normalised, replaces the text in the dense leg. `others` share the same
        round trip; `fuse` gets their legs as `dense.2`, `sparse.2` and so on.
        """
        limit = limit or max(request.fetch_k, request.k)
        dense, sparse = self.query(text or request.question, legs, request.before)
        if vector is not None:
            dense = vector
        voters = tuple(leg for leg, query in (("dense", dense), ("sparse", sparse)) if query is not None)
        with span("+".join(voters), "leg", queries=1 + len(others)) as step:  # the legs go in one round trip
            hits = self.library.search(
                dense=dense,
                sparse=sparse,
                more=[self.query(other, legs, request.before) for other in others],
                limit=limit,
                prefetch=max(PREFETCH, limit),
                with_vectors=True,
                scope=request.filters,
                fuse=fuse or request.tuning.fuse_by_score,
            )
            step.attributes["hits"] = len(hits)
        return hits, voters

    def query(self, text: str, legs: frozenset[str], before: Sequence[str]) -> Query:
        dense = None
        if "dense" in legs and self.problem is None and self.model.can_read(text):
            try:
                dense = dense_query(text, before, self.model, self.sparse)
            except ModelError as error:
                self.problem = error
        return dense, self._sparse_query(text, before) if "sparse" in legs or dense is None else None

    def _sparse_query(self, text: str, before: Sequence[str]) -> SparseVector:
        """Return learned terms if the library's model has them and reads the text, else words."""
        head = lexical_of(self.model)
        if head is None or not self.model.can_read(text):
            return sparse_query(text, before, self.sparse)
        return learned_query(text, before, head, self.sparse, self.library.idf)


@dataclass(frozen=True, slots=True)
class LegSearch:
    """A search of `legs` for the question, fused by score or `by_rank`; MMR may select from the results."""

    name: str
    legs: frozenset[str] = BOTH
    by_rank: bool = False
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        fuse = request.tuning.fuse_by_rank if self.by_rank else request.tuning.fuse_by_score
        hits, legs = engine.hits(request, legs=self.legs, fuse=fuse)
        return Found(hits, legs, diversify=self.diversify)


MIN_COVERAGE = 0.5
"""A search found little if each of the first passages has less than this share of its terms, weighted by IDF."""
_FIRST = 5
_SAMPLES = {"en": "The river rises in the mountains and reaches the sea.", "zh": "这条河发源于山中，最后流入大海。"}


@dataclass(frozen=True, slots=True)
class AcrossLanguages:
    """Any strategy, with a translated query if it finds little and pages are in another language.

    Calls a model up to once, and not at all if the embedding model reads both languages, if nothing writes
    translations, or if no page is in another language.
    """

    inner: Strategy

    @property
    def name(self) -> str:
        return self.inner.name

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        result = self.inner.find(request, engine)
        if engine.expander is None or not engine.expander.writes:
            return result
        share = coverage(request.question, result.hits, engine)
        if share >= MIN_COVERAGE or not (language := _target_language(request, engine)):
            return result
        try:
            query = engine.expander.translation(request.question, language)
        except ModelError as error:
            return replace(result, notes={**result.notes, **fallback_note(engine.expander, error)})
        return _add_translation(query, language, share, result, request, engine) if query else result


def _target_language(request: SearchRequest, engine: Engine) -> str:
    """Return the language to translate into: the most frequent other one of the pages, if translation is needed."""
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
    query: str, language: str, share: float, result: Found, request: SearchRequest, engine: Engine
) -> Found:
    """Merge the hits of both searches, each weighted by how much of its question it covers."""
    hits, legs = engine.hits(request, text=query)
    merged = merge_searches([(result.hits, share), (hits, coverage(query, hits, engine))])
    params = {"query": query, "language": language}
    notes: dict[str, Any] = {**result.notes, "translation": {"code": f"translated_{language}", "params": params}}
    voters = tuple(dict.fromkeys((*result.legs, *legs)))
    return Found(merged[: max(request.fetch_k, request.k)], voters, notes, result.diversify, asked=(query,))


def merge_searches(searches: Sequence[tuple[Sequence[Hit], float]]) -> list[Hit]:
    """Merge hits of several searches by score, scaled so that the best of each gets its weight, without duplicates."""
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
    """Retrieval as in tutorials: MMR over the dense vectors by langchain-qdrant's QdrantVectorStore.

    Passages stay whole. Keywords are searched if the model cannot read the question.
    """

    name: str = "classic"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        dense, _ = engine.query(request.question, frozenset({"dense"}), request.before)
        if dense is None:
            return Found(*engine.hits(request, limit=request.k), whole=True)
        hits = engine.library.search_diverse(
            dense,
            limit=request.k,
            fetch_k=request.fetch_k,
            lambda_mult=request.lambda_mult,
            scope=request.filters,
        )
        return Found(hits, ("dense",), whole=True)
