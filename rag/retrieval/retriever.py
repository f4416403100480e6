"""Search over libraries, limited to the user's filters and to the part that the question names.

In one library, a strategy finds candidates, MMR selects from them, and the context is assembled. With several, each has
its own retriever and model, and scores, which are relative to the library's best, are not comparable. They are weighted
by the probability of an answer, which beats reciprocal ranks and plain scores (`benchmarks.library_groups`).

A question names a part as in "in the pricing page …", "on docs.example.com", "根据《…》". The sources of an earlier
report in the conversation are searched first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag.errors import StoreError
from rag.models.cross_encoders import Reranker
from rag.models.embedding import EmbeddingModel, SparseEncoder
from rag.retrieval.context import (
    BUDGET,
    REFUSAL_THRESHOLD,
    Context,
    assemble,
    expand_hits,
    expand_to_parents,
    features_of,
    is_across,
    probability,
    select_best,
)
from rag.retrieval.page_names import MAX_PAGES, find_on_site, is_full_name, slug, words
from rag.retrieval.strategies import (
    DEFAULT_STRATEGY,
    STRATEGIES,
    Engine,
    Expander,
    SearchRequest,
    Tuning,
    error_note,
    term_weights,
)
from rag.store.sql.small_tables import SummaryTable
from rag.store.values import Filters, Hit, text_hash
from rag.text import is_chinese, lazy_regex
from rag.types import Candidate, Page, PageVersion, Passage, Retrieval

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library


class PageReader:
    """A reader of pages; the first library that has a page provides it. All calls may block, and raise StoreError."""

    def __init__(self, libraries: Sequence[Library], scope: Filters, summaries: SummaryTable) -> None:
        self._libraries = libraries
        self._scope = scope
        self._summaries = summaries

    def list_pages(self, *, dated: bool = True) -> Sequence[Page]:
        """Return the pages in scope that are not excluded from answers, newest first, without their text.

        Without `dated`, the dates of the scope are ignored.
        """
        by_hash: dict[str, Page] = {}
        for library in self._libraries:
            excluded = library.excluded_pages()
            pages = (page for page in library.pages() if page.url_hash not in excluded)
            by_hash = {**{page.url_hash: page for page in pages if self._scope.matches(page, dated=dated)}, **by_hash}
        return sorted(by_hash.values(), key=lambda page: page.added_at, reverse=True)

    def read(self, url_hash: str) -> Page | None:
        """Return the page with its text. Raises StoreError("page_damaged") if the text does not match its hash."""
        page = self._library_of(url_hash).page(url_hash)
        if page and page.text_hash != text_hash(page.text):
            raise StoreError("page_damaged", title=page.title or page.url)
        return page

    def passages(self, url_hash: str) -> Sequence[Passage]:
        """Return the page's passages, with the name of their library if there are several."""
        library = self._library_of(url_hash)
        return [replace(one, library=self._library_name(library)) for one in library.chunks(url_hash)]

    def versions(self, url_hash: str) -> Sequence[PageVersion]:
        return self._library_of(url_hash).versions(url_hash)

    def find_summary(self, page: Page, language: str, by: str = "") -> Mapping[str, Any] | None:
        """Return the newest summary of the page's text by this author, or by any, with its time as `made`."""
        library = self._library_of(page.url_hash)
        row = self._summaries.find(library.name, page.url_hash, page.text_hash, language, by)
        if row is None:
            return None
        data, of = row["data"], {"library": self._library_name(library)}
        data |= {name: [{**one, **of} for one in data.get(name, ())] for name in ("citations", "passages")}
        return {**data, "made": row["created_at"], "by": row["author"]}

    def save_summary(self, page: Page, language: str, by: str, summary: Mapping[str, Any]) -> object:
        library = self._library_of(page.url_hash).name
        return self._summaries.save(library, page.url_hash, page.text_hash, language, by, summary)

    def _library_name(self, library: Library) -> str:
        return library.name if len(self._libraries) > 1 else ""

    def _library_of(self, url_hash: str) -> Library:
        return next((one for one in self._libraries if one.stored_pages([url_hash])), self._libraries[0])


K: Final = 10
LAMBDA: Final = 0.85
"""The weight of relevance in MMR; the rest is that of novelty."""
DEFAULTS = Tuning()
MMR_SHARE = 0.75
"""The share of the candidates that MMR selects, and sentence selection then reads."""

ScoreAcrossLibraries = Callable[[Retrieval, int, Passage], float]
"""The score of a passage across libraries, given its library's results and its rank there, from 1."""


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
        request = SearchRequest(question, k, fetch_k, scope, earlier, self._tuning)
        times = [time.perf_counter()]
        result = STRATEGIES[strategy].find(request, engine)
        damaged = [hit.passage for hit in result.hits if not hit.passage.text]
        hits = expand_hits([hit for hit in result.hits if hit.passage.text], self._engine.library)
        times.append(time.perf_counter())
        pool = max(k, round(MMR_SHARE * len(hits)))
        candidates = [Candidate(hit.passage, place if place <= pool else None) for place, hit in enumerate(hits, 1)]
        candidates = _select_diverse(hits, pool) if result.diversify else candidates
        selected = [candidate.passage for candidate in candidates if candidate.place is not None]
        questions = (question, *result.translations)
        terms = [self._idf(one, earlier_questions) for one in questions]
        context = Context(tuple(selected[:k])) if result.use_full_text else self._context(selected, terms, k, hits)
        times.append(time.perf_counter())
        likely = self._max_probability(zip(questions, terms, strict=True), context.passages, result.legs)
        stages = zip(("search", "choose", "judge"), pairwise([*times, time.perf_counter()]), strict=True)
        return Retrieval(
            question,
            strategy,
            context.passages,
            tuple(_add_fate(candidate, context) for candidate in candidates),
            result.legs,
            {stage: round(1000 * (end - start), 2) for stage, (start, end) in stages},
            {**result.notes, **({"meaning": error_note(engine.problem)} if engine.problem else {})},
            round(likely, 4),
            tuple(dict.fromkeys(one.title or one.url for one in damaged)),
        )

    def _context(
        self, selected: Sequence[Passage], terms: Sequence[dict[int, float]], k: int, hits: Sequence[Hit]
    ) -> Context:
        idf = {term: idf for each in terms for term, idf in each.items()}
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

    def evidence(self, question: str) -> tuple[dict[str, float], tuple[str, ...]]:
        """Return the features of a question's results (see `features_of`) and the legs that voted, for calibration."""
        result = self.search(question)
        return features_of(self._idf(question), result.passages, self._engine.sparse), result.legs

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


def _select_diverse(hits: Sequence[Hit], k: int) -> list[Candidate]:
    if not hits:
        return []
    best = max(hit.passage.score for hit in hits) or 1.0
    similarity = pairwise_similarity([hit.vector for hit in hits], [hit.terms for hit in hits])
    picks = mmr([hit.passage.score / best for hit in hits], similarity, k, LAMBDA)
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
        failures = [{"meaning": one.notes["meaning"]} for one in results.values() if "meaning" in one.notes]
        return replace(
            best,
            passages=context.passages,
            candidates=tuple(_add_fate(candidate, context) for candidate in ranked),
            legs=tuple(dict.fromkeys(leg for result in results.values() for leg in result.legs)),
            ms=_sum_times(result.ms for result in results.values()),
            notes={**(failures[0] if failures else {}), **best.notes},
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


def _sum_times(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for stages in times:
        for stage, ms in stages.items():
            total[stage] = round(total.get(stage, 0.0) + ms, 2)
    return total


LEDGER_LEG: Final = "ledger"
"""Key in the `ranks` of a passage found among the sources of an earlier report."""
MIN_COVERAGE: Final = 0.7
"""Minimum share of the question, without title terms, in one place of the sources that makes a search unnecessary. The
probability of an answer is less reliable here (docs/quality.md, `benchmarks.ledger`)."""
_PAGE = "page|article|document|doc|post|website|site|web page|webpage"
_KIND = (
    "notes|handbook|guide|manual|policy|policies|report|post-mortem|postmortem|faq|readme|changelog|documentation|docs"
    "|tutorial|standard|rules|agreement|contract|minutes|paper"
)
_S = r"\s{1,3}"  # bounded, to limit backtracking: names may contain spaces too
_O = r"\s{0,3}"
_NAME = r"[^,.;:?!，。；：？！\"“”]{2,70}?"
_HOST = r"(?:https?://)?(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,})/?(?![\w@])"
_SITE = "(?:web)?site"
_IN = rf"\b(?:in|on|from|within|according to|per|based on){_S}"
_THE = rf"(?:the|our|your|this){_S}"
_ZH_IN = rf"(?:在|根据|按照|依据|据|参照|从){_O}"
_ZH_NAMED = r"[^，,。；？?《》“”「」]"
_ZH_PAGE = r"(?:这篇文章|这一页|这个页面|页面|网页|网站|文章|文档|一文|页)"
_ZH_WITHIN = rf"(?:中|里|内|上)?(?:的)?{_O}[，,]?"

# The most reliable forms first: a host, a quoted name, a name before a word for a page, one that ends in such a word.
_FORMS = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:on|from|at|in|within|according to){_S}(?:the{_S})?(?:{_SITE}{_S})?{_HOST}(?:{_S}{_SITE})?{_O},?",
        rf"{_ZH_IN}{_HOST}{_O}(?:这个)?(?:网站|站点)?{_ZH_WITHIN}",
        rf"{_IN}(?:the{_S})?(?:(?:{_PAGE}){_S})?[\"“](?P<quoted>[^\"“”]{{2,120}})[\"”](?:{_S}(?:{_PAGE})\b)?{_O},?",
        rf"{_IN}{_THE}(?P<page>{_NAME}){_S}(?:{_PAGE})\b{_O},?",
        rf"{_IN}{_THE}(?P<kind>(?:{_NAME}{_S})?(?:{_KIND}))\b{_O},?",
        rf"\b(?:according to|as per|based on){_S}(?:{_THE})?(?P<named>{_NAME})(?={_O}(?:[,.;:?!]|$)){_O},?",
        rf"{_ZH_IN}《(?P<title>[^《》]{{1,80}})》{_O}{_ZH_PAGE}?(?:的规定|所述|的说法)?{_ZH_WITHIN}",
        rf"《(?P<inside>[^《》]{{1,80}})》{_O}{_ZH_PAGE}?(?:中|里)(?:的)?{_O}[，,]?",
        rf"{_ZH_IN}[“「]?(?P<zh_page>{_ZH_NAMED}{{1,20}}?)[”」]?{_O}{_ZH_PAGE}{_ZH_WITHIN}",
        rf"{_ZH_IN}[“「]?(?P<zh_named>{_ZH_NAMED}{{3,30}}+)[”」]?{_O}[，,]",
    )
)
# A page as the subject of the sentence; it stays in the question.
_SPEAKS = lazy_regex(
    rf"\b(?:does|do|did){_S}(?:the|our){_S}(?P<page>{_NAME})(?:{_S}(?:{_PAGE})){_S}(?:say|state|mention|explain|list|tell)\b",
    re.IGNORECASE,
)
_ASKING = frozenset(
    "what which who whom when where why how much many is are was were be do does did can say said there it"
    " 什么 多少 哪里 哪些 怎么 如何 为什 有什 有哪".split()
)
_LEFT_OVER = " \t,，、:：。"


@dataclass(frozen=True, slots=True)
class CachedEvidence:
    """Results that needed no search."""

    passages: Sequence[Passage]


@dataclass
class Ledger:
    """The sources of an earlier report in the conversation, which are searched first.

    `read` returns the passages and may block; `idf` returns the IDF of terms in the library.
    """

    read: Callable[[], Sequence[Passage]]
    sparse: SparseEncoder
    idf: Callable[[Sequence[int]], Mapping[int, float]]

    def find(self, question: str, k: int) -> CachedEvidence | None:
        """Return the passages if one place in them covers nearly the whole question; else None."""
        best = select_best(question, self.passages, self.sparse, k)
        idf = self.idf(sorted(self.sparse.encode_query(question).indices))
        if features_of(idf, best, self.sparse)["asked"] < MIN_COVERAGE:
            return None
        return CachedEvidence([replace(passage, ranks={LEDGER_LEG: place}) for place, passage in enumerate(best, 1)])

    @cached_property
    def passages(self) -> Sequence[Passage]:
        return self.read()


class ScopedSearch:
    """A search over one or several libraries, for one question and the queries derived from it.

    `make_retriever` creates the retriever for each search, so that a run can begin before the models are loaded;
    `pages` lists the library's pages, and is called only for questions that may name some, or if nothing is found.
    """

    def __init__(
        self,
        make_retriever: Callable[[], Retriever | EnsembleRetriever],
        pages: Callable[[], Sequence[Page]],
        question: str,
        *,
        filters: Filters | None = None,
        web: Callable[[str], Sequence[Passage]] | None = None,
        ledger: Ledger | None = None,
        priority_pages: Sequence[str] = (),
        reader: PageReader | None = None,
        **options: Any,
    ) -> None:
        """`web` searches the web, if it is configured and the user allows it. The sources in `ledger` are searched
        first, then the pages in `priority_pages`, then the others. `reader` reads whole pages."""
        self._priority_pages = Filters(pages=tuple(priority_pages))
        self.web = web
        self.reader = reader
        self._ledger = ledger
        self._make_retriever = make_retriever
        self._pages = pages
        self._question = question
        self._filters = filters or Filters()
        self._options = options

    def is_empty(self) -> bool:
        """Return whether the libraries have no pages. Blocks."""
        return not self._pages()

    def search(
        self, question: str, earlier_questions: Sequence[str] = (), *, sections: Sequence[str] = (), **options: Any
    ) -> Retrieval | CachedEvidence:
        """Search for the question, or for a query derived from it, without the words that name the scope.

        `earlier_questions` are the questions before it. `sections` (headings to search under) and `options` (those of
        `Retriever.search`) apply only to this search.

        If the named scope has no results, everything is searched, and the notes say so. If the ledger has the answer,
        nothing is searched.
        """
        if cached := self.find_cached(question, options.get("k", K)):
            return cached
        scope = self._scope(question)
        filters = replace(self._filters, sections=tuple(sections)) if sections else self._filters
        if self._priority_pages.pages and not scope.names:
            result = self._search(question, filters.intersect(self._priority_pages), earlier_questions, options)
            if result.passages and result.answerable >= REFUSAL_THRESHOLD:
                return _add_note(result, "scope_saved", "")
        result = self._search(scope.question, filters.intersect(scope.filters), earlier_questions, options)
        if not scope.names:
            return result
        names = ", ".join(scope.names)
        if result.passages:
            return _add_note(result, "scope_named", names)
        return _add_note(self._search(question, filters, earlier_questions, options), "scope_empty", names)

    def find_cached(self, question: str, k: int = K) -> CachedEvidence | None:
        """Return the ledger's passages if they are likely to answer the question."""
        return self._ledger.find(question, k) if self._ledger else None

    def find_name(self, name: str) -> Sequence[Passage]:
        """Return the passages that match a name best, by keywords."""
        return self._search(name, self._filters, (), {"strategy": "keyword"}).passages

    def titles(self) -> list[str]:
        """Return the titles of the pages that match the user's filters."""
        filters = Filters(self._filters.pages, self._filters.sites)
        return [page.title for page in self._pages() if page.title and filters.matches(page, dated=False)]

    def vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector (d,) of a question."""
        return self._make_retriever().vector(question)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Reload passages by id, those of the ledger from the ledger, since their pages may be in no library."""
        cached = {one.id: one for one in self._ledger.passages if one.id in ids} if self._ledger else {}
        others = {one.id: one for one in self._make_retriever().passages([key for key in ids if key not in cached])}
        return [(cached | others)[key] for key in ids if key in cached or key in others]

    def _search(
        self, question: str, filters: Filters, earlier_questions: Sequence[str], options: Mapping[str, Any]
    ) -> Retrieval:
        return self._make_retriever().search(
            question, filters=filters, earlier_questions=earlier_questions, **{**self._options, **options}
        )

    def _scope(self, question: str) -> ScopedQuestion:
        """Return the scope that the query names, or that of the original question if rewriting dropped it."""
        if not may_name_scope(question) and not may_name_scope(self._question):
            return ScopedQuestion(question, Filters(), ())
        pages = self._pages()
        scope = read_scope(question, pages)
        return scope if scope.names else read_scope(self._question, pages)._replace(question=question)


def _add_note(result: Retrieval, code: str, names: str) -> Retrieval:
    return replace(result, notes={**result.notes, "scope": {"code": code, "params": {"names": names}}})


class ScopedQuestion(NamedTuple):
    """A `question` without the words that name the scope, the scope itself, and its names for display."""

    question: str
    filters: Filters
    names: tuple[str, ...]


def may_name_scope(question: str) -> bool:
    """True if the question may name a scope, so that the list of pages is needed; most do not."""
    return next(_find_mentions(question), None) is not None


def read_scope(question: str, pages: Sequence[Page]) -> ScopedQuestion:
    """Find the pages or the site that the question is limited to.

    Only an unambiguous page title, last part of a link, or site counts; other phrases of this form ("in the 19th
    century") stay in the question, which never becomes empty.
    """
    for match in _find_mentions(question):
        kind, name = next((kind, name) for kind, name in match.groupdict().items() if name)
        matches = find_on_site(name, pages) if kind == "host" else _pages_by_title(kind, name, pages)
        if matches:
            rest = question if match.re.pattern == _SPEAKS.pattern else _remove_match(question, match)
            names = [name.lower()] if kind == "host" else [page.title or page.url for page in matches]
            return ScopedQuestion(rest, _make_filters(matches, pages, kind), tuple(names))
    return ScopedQuestion(question, Filters(), ())


def _find_mentions(question: str) -> Iterator[re.Match[str]]:
    for form in (*_FORMS, _SPEAKS):
        yield from form.finditer(question)


def _remove_match(question: str, match: re.Match[str]) -> str:
    """Return the rest of the question, or all of it if too little remains to search for."""
    before, after = question[: match.start()].rstrip(_LEFT_OVER), question[match.end() :].lstrip(_LEFT_OVER)
    separator = "" if is_chinese(question) or not before or after[:1] in "?!.？！" else " "
    rest = f"{before}{separator}{after}".strip()
    return rest if words(rest) - _ASKING else question


def _pages_by_title(kind: str, name: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages of that name, by their whole title or link, else by a part of it that matches few pages."""
    whole = [page for page in pages if is_full_name(name, page)]
    if whole:
        return whole if len(whole) <= MAX_PAGES else []
    if kind in ("quoted", "inside"):
        return []
    hits = [page for page in pages if any(_is_part(name, text) for text in (page.title, f"{page.title} {slug(page)}"))]
    is_specific = len(name) >= 4 if is_chinese(name) else len(words(name)) >= 2
    single = 0 if kind in ("named", "zh_named") else 1  # a single word names a page only next to a word for a page
    return hits if len(hits) <= (MAX_PAGES if is_specific else single) else []


def _is_part(name: str, title: str) -> bool:
    """True if the title has all words of the name; in Chinese, all its characters in order."""
    if not is_chinese(name):
        name_words = words(name)
        return bool(name_words) and name_words <= words(title)
    rest = iter(title)
    return len(name) >= 2 and all(character in rest for character in name)


def _make_filters(matches: Sequence[Page], pages: Sequence[Page], kind: str) -> Filters:
    """Return filters for these pages, by site if that is equivalent: a site may have thousands of pages."""
    hashes = tuple(page.url_hash for page in matches)
    sites = {page.site for page in matches}
    if kind == "host" and all(sites) and sum(page.site in sites for page in pages) == len(hashes):
        return Filters(sites=tuple(sorted(sites)))
    return Filters(pages=hashes)


def site_filters(name: str, pages: Sequence[Page]) -> Filters:
    """Return filters for the pages of a site, given its name or host."""
    if any(page.site == name for page in pages) or not (matches := find_on_site(name, pages)):
        return Filters(sites=(name,))
    return _make_filters(matches, pages, "host")
