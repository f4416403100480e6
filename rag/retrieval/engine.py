"""The engine that strategies search a library with: it encodes questions, queries the legs, and fuses their scores.

A fusion takes the legs' results, `{leg: {point id: score}}`, and returns `{point id: fused score}`.

Queries for follow-ups include the words of earlier questions, with less weight the longer the follow-up is. The
question stays unchanged, and no word list decides whether it needs them. Tuned on CAsT 2021 and on questions
after a change of subject (benchmarks.followups); see docs/decisions/0010-conversations-and-roles.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel
from rag.models.reranker import Reranker
from rag.models.sparse import LexicalHead, SparseEncoder, lexical_head
from rag.retrieval.context import BUDGET
from rag.store.values import RRF_K, Filters, Fusion, Hit, Legs, Query, reciprocal_rank_fusion
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
    constant of reciprocal rank fusion. A reranker gets the best `pre_top_k` candidates (0: all) by `pre_ranker`. A
    search fetches `fetch_k` candidates, and uses up to `characters` of their text.
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

    `earlier_questions` are the questions before this one, oldest first.
    """

    question: str
    k: int = 10
    fetch_k: int = 40
    lambda_mult: float = 0.7
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
        the same round trip; `fuse` gets their legs as `dense.2`, `sparse.2` and so on.
        """
        limit = limit or max(request.fetch_k, request.k)
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
                fuse=fuse or request.tuning.fuse_by_score,
            )
            step.attributes["hits"] = len(hits)
        return hits, voters

    def query(self, text: str, legs: frozenset[str], earlier_questions: Sequence[str]) -> Query:
        dense = None
        if "dense" in legs and self.problem is None and self.model.can_read(text):
            try:
                dense = dense_query(text, earlier_questions, self.model, self.sparse)
            except ModelError as error:
                self.problem = error
        return dense, self._sparse_query(text, earlier_questions) if "sparse" in legs or dense is None else None

    def _sparse_query(self, text: str, earlier_questions: Sequence[str]) -> SparseVector:
        """Return learned terms if the library's model has them and can read the text, else words."""
        head = lexical_head(self.model)
        if head is None or not self.model.can_read(text):
            return sparse_query(text, earlier_questions, self.sparse)
        return learned_query(text, earlier_questions, head, self.sparse, self.library.idf)


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
