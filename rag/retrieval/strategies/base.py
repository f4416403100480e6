"""What a strategy is, and what it asks of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel
from rag.models.lexical import lexical_of
from rag.models.reranker import Reranker
from rag.models.sparse import SparseEncoder
from rag.retrieval.followup_query import dense_query, learned_query, sparse_query
from rag.retrieval.ranking import weighted
from rag.retrieval.spans import BUDGET
from rag.store.values import RRF_K, Filters, Fusion, Hit, Legs, Query, reciprocal_rank_fusion
from rag.text import question_language
from rag.tracing import span
from rag.types import Passage, SparseVector

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

PreRanker = Literal["weighted", "rrf"]
Need = Literal["exact", "concept", "facets", ""]
"""What a question asks of a search: its very words, their meaning, or several searches; "" is undecided."""

BOTH = frozenset({"dense", "sparse"})
PREFETCH = 60


@dataclass(frozen=True, slots=True)
class Tuning:
    """What an operator sets for all searches.

    `dense_weight` and `sparse_weight` are what the legs' scores count, 0 to 1 each; what matters is the one beside
    the other. `rrf_k` is the constant of reciprocal rank fusion. A model that reads candidates again gets the best
    `pre_top_k` of them, 0 for all, by `pre_ranker`. `fetch_k` candidates are looked for, and `characters` of what
    they say are handed on.
    """

    dense_weight: float = 0.75
    sparse_weight: float = 0.25
    rrf_k: float = RRF_K
    fetch_k: int = 40
    pre_ranker: PreRanker = "weighted"
    pre_top_k: int = 0
    characters: int = BUDGET

    def weighted(self, legs: Legs) -> Mapping[str, float]:
        return weighted(legs, self.dense_weight, self.sparse_weight)

    def by_rank(self, legs: Legs) -> Mapping[str, float]:
        return reciprocal_rank_fusion(legs, self.rrf_k)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find: `k` passages chosen from `fetch_k` candidates; `lambda_mult` weighs relevance in MMR.

    `before` are the questions that this one follows on, oldest first.
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
    """Candidates best first, with scores that can be compared with each other, and what was done to find them.

    `legs` took part; `notes` is plain data for the panel that explains a search, such as the queries
    that were asked or why a strategy was picked. With `diversify` MMR chooses among the candidates;
    `whole` hands them on in this order, each with its whole text. `asked` is the question in other languages, which the
    passages may answer as well.
    """

    hits: Sequence[Hit]
    legs: tuple[str, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    diversify: bool = False
    whole: bool = False
    asked: tuple[str, ...] = ()


class Strategy(Protocol):
    """One way of finding candidates. Stateless; one object serves all threads."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...

    def find(self, request: SearchRequest, engine: Engine) -> Found: ...


class Expander(Protocol):
    """Texts to search with beside the question. `near` are passages that the question finds by itself.

    Keeps nothing of a question; one object serves all threads. A call may take seconds. Every method
    raises ModelError, and nothing else, when the model behind it does not answer.
    """

    @property
    def name(self) -> str:
        """What writes the texts, for the panel that explains a search."""
        ...

    @property
    def writes(self) -> bool:
        """Whether a model writes the texts. Without one there are no translations, and a call costs milliseconds."""
        ...

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        """A passage such as a page would hold that answers; empty for none."""
        ...

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        """Other ways to ask, or the parts of the question; without the question itself."""
        ...

    def translation(self, question: str, language: str) -> str:
        """The question in `language` (`en`, `zh`); empty where none can be made."""
        ...

    def need(self, question: str) -> Need:
        """What the question asks of a search."""
        ...


def fallback_note(expander: Expander, error: ModelError) -> dict[str, Any]:
    """The note that the expander failed, and that the question was searched for as it stands."""
    notice = {"code": error.code, "params": dict(error.notice.params)}
    return {"expander": expander.name, "fell_back": notice}


class Engine:
    """The library seen by a strategy: encodes texts and asks the legs.

    Without an `expander` there are no texts but the question's own; without a `reranker` no weights to rerank with.
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
        """Why the embedding model gave no vector for this search: keywords search then."""

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
        """The best `limit` chunks (by default fetch_k) for `text` (by default the question), and the legs that voted.

        A leg that cannot read the text, or whose model does not answer, does not vote; where none of `legs` can,
        keywords do. `vector` (d,), L2-normalised, is what the dense leg is asked instead of the text. `others` are
        searched in the same round trip; `fuse` gets their legs as `dense.2`, `sparse.2` and so on.
        """
        limit = limit or max(request.fetch_k, request.k)
        dense, sparse = self.query(text or request.question, legs, request.before)
        if vector is not None:
            dense = vector
        voted = tuple(leg for leg, asked in (("dense", dense), ("sparse", sparse)) if asked is not None)
        with span("+".join(voted), "leg", queries=1 + len(others)) as done:  # the legs go in one round trip
            hits = self.library.search(
                dense=dense,
                sparse=sparse,
                more=[self.query(other, legs, request.before) for other in others],
                limit=limit,
                prefetch=max(PREFETCH, limit),
                with_vectors=True,
                scope=request.filters,
                fuse=fuse or request.tuning.weighted,
            )
            done.attributes["hits"] = len(hits)
        return hits, voted

    def query(self, text: str, legs: frozenset[str], before: Sequence[str]) -> Query:
        dense = None
        if "dense" in legs and self.problem is None and self.model.can_read(text):
            try:
                dense = dense_query(text, before, self.model, self.sparse)
            except ModelError as error:
                self.problem = error
        return dense, self._sparse_query(text, before) if "sparse" in legs or dense is None else None

    def _sparse_query(self, text: str, before: Sequence[str]) -> SparseVector:
        """By learned terms where the library's model has them and reads the text, else by words."""
        head = lexical_of(self.model)
        if head is None or not self.model.can_read(text):
            return sparse_query(text, before, self.sparse)
        return learned_query(text, before, head, self.sparse, self.library.idf)


@dataclass(frozen=True, slots=True)
class LegSearch:
    """Asks `legs` for the question and fuses what they found; MMR may choose among that.

    By their scores, or `by_rank`.
    """

    name: str
    legs: frozenset[str] = BOTH
    by_rank: bool = False
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        fuse = request.tuning.by_rank if self.by_rank else request.tuning.weighted
        hits, legs = engine.hits(request, legs=self.legs, fuse=fuse)
        return Found(hits, legs, diversify=self.diversify)


WEAK = 0.5
"""Below this share of its terms, weighted by IDF, in any of the first passages, a search found little."""
_FIRST = 5
_SAMPLES = {"en": "The river rises in the mountains and reaches the sea.", "zh": "这条河发源于山中，最后流入大海。"}


@dataclass(frozen=True, slots=True)
class AcrossLanguages:
    """Any strategy; when it finds little and the pages are in a language of their own, one translated query is added.

    Asks a model at most once, and not at all when the embedding model reads both languages, when nothing
    writes translations, or when no page is in another language.
    """

    inner: Strategy

    @property
    def name(self) -> str:
        return self.inner.name

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        found = self.inner.find(request, engine)
        if engine.expander is None or not engine.expander.writes:
            return found
        share = coverage(request.question, found.hits, engine)
        if share >= WEAK or not (language := _readers_language(request, engine)):
            return found
        try:
            query = engine.expander.translation(request.question, language)
        except ModelError as error:
            return replace(found, notes={**found.notes, **fallback_note(engine.expander, error)})
        return _with_translation(query, language, share, found, request, engine) if query else found


def _readers_language(request: SearchRequest, engine: Engine) -> str:
    """The language to translate into: that of most pages in another than the question's, where that is needed."""
    asked = question_language(request.question)
    counts = {language: _chunks(language, request, engine) for language in _SAMPLES if language != asked}
    target = max(counts, key=lambda language: counts[language])
    bridged = engine.model.can_read(request.question) and engine.model.can_read(_SAMPLES[target])
    return target if counts[target] and not bridged else ""


def _chunks(language: str, request: SearchRequest, engine: Engine) -> int:
    if request.filters.languages and language not in request.filters.languages:
        return 0
    return engine.library.chunk_count(replace(request.filters, languages=(language,)))


def coverage(question: str, hits: Sequence[Hit], engine: Engine) -> float:
    """The largest share of the question's terms, weighted by IDF, in one of the first passages; 0 to 1."""
    weights = engine.library.idf(sorted(engine.sparse.encode_query(question).indices))
    total = sum(weights.values())
    held = [frozenset(engine.sparse.encode_query(_text(hit)).indices) for hit in hits[:_FIRST]]
    shares = [sum(weight for term, weight in weights.items() if term in terms) for terms in held]
    return max(shares, default=0.0) / total if total else 0.0


def _text(hit: Hit) -> str:
    return "\n".join((hit.passage.title, *hit.passage.section, hit.passage.text))


def _with_translation(
    query: str, language: str, share: float, found: Found, request: SearchRequest, engine: Engine
) -> Found:
    """Both searches' hits; each search weighs by how much of its own question it covered."""
    hits, legs = engine.hits(request, text=query)
    both = merge_searches([(found.hits, share), (hits, coverage(query, hits, engine))])
    params = {"query": query, "language": language}
    notes: dict[str, Any] = {**found.notes, "translation": {"code": f"translated_{language}", "params": params}}
    voted = tuple(dict.fromkeys((*found.legs, *legs)))
    return Found(both[: max(request.fetch_k, request.k)], voted, notes, found.diversify, asked=(query,))


def merge_searches(searches: Sequence[tuple[Sequence[Hit], float]]) -> list[Hit]:
    """Hits of several searches by score, the best of each counting its weight; one that was found twice counts once."""
    best: dict[str, Hit] = {}
    for hits, weight in searches:
        top = max((hit.passage.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            score = max(weight, 0.01) * hit.passage.score / top
            known = best.get(hit.passage.id)
            if known is None or known.passage.score < score:
                best[hit.passage.id] = replace(hit, passage=replace(hit.passage, score=score))
    return sorted(best.values(), key=lambda hit: (-hit.passage.score, hit.passage.id))
