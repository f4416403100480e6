"""Search over several libraries: each has its own retriever and model, and weights fuse the results.

Scores of different libraries are not comparable: each is relative to the best one there. Probabilities of an answer
are, and weigh the scores. This did better than reciprocal ranks and plain scores (`benchmarks.several`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag.models.sparse import SparseEncoder
from rag.retrieval.context import assemble
from rag.retrieval.followup_query import term_weights
from rag.retrieval.retriever import K, Retriever
from rag.retrieval.spans import BUDGET
from rag.types import Candidate, Page, Passage, Retrieval

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

Worth = Callable[[Retrieval, int, Passage], float]
"""The score of a passage among all libraries, from its own library's results and its rank there, from 1."""


def by_likelihood(result: Retrieval, _: int, passage: Passage) -> float:
    return result.answerable * passage.score


@dataclass(frozen=True)
class EnsembleRetriever:
    """A retriever over several: `retrievers` by library name, that of the conversation first; `weights` default to 1.

    `idf` is computed over all of them. Passages have the name of their library. If two libraries have a page, only the
    passages from the better match count.
    """

    retrievers: Mapping[str, Retriever]
    idf: Callable[[Sequence[int]], Mapping[int, float]]
    sparse: SparseEncoder
    weights: Mapping[str, float] = field(default_factory=dict)
    characters: int = BUDGET
    worth: Worth = by_likelihood

    def search(self, question: str, *, k: int = K, before: Sequence[str] = (), **how: Any) -> Retrieval:
        """Search as `Retriever.search`: up to k passages of all libraries together, in `characters`."""
        results = {name: one.search(question, k=k, before=before, **how) for name, one in self.retrievers.items()}
        ranked = _keep_best_library([one for name, result in results.items() for one in self._score(name, result)])
        chosen = [one.passage for one in ranked if one.place is not None or one.fate]
        weights = term_weights(question, before, self.sparse)
        asked = {term: weights[term] * idf for term, idf in self.idf(sorted(weights)).items()}
        context = assemble(chosen, asked, self.sparse, k, self.characters)
        places = {one.id: place for place, one in enumerate(context.passages, 1)}
        best = max(results.values(), key=lambda result: result.answerable)
        return replace(
            best,
            passages=context.passages,
            candidates=tuple(
                replace(
                    one,
                    place=places.get(one.passage.id),
                    fate=context.fates.get(one.passage.id),
                    into=context.into.get(one.passage.id),
                )
                for one in ranked
            ),
            legs=tuple(dict.fromkeys(leg for result in results.values() for leg in result.legs)),
            ms=_sum_times(result.ms for result in results.values()),
            notes={**_failure_note(results.values()), **best.notes},
            damaged=tuple(dict.fromkeys(title for result in results.values() for title in result.damaged)),
        )

    def _score(self, name: str, result: Retrieval) -> Iterable[Candidate]:
        """Yield the candidates of one library with their scores among all libraries."""
        weight = self.weights.get(name, 1.0)
        for place, one in enumerate(sorted(result.candidates, key=lambda one: -one.passage.score), 1):
            score = weight * self.worth(result, place, one.passage)
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
    """Several libraries read as one; the first one that has a page provides it."""

    libraries: Sequence[Library]

    def pages(self) -> list[Page]:
        return [page for library in self.libraries for page in library.pages()]

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {key: page for library in reversed(self.libraries) for key, page in library.known(url_hashes).items()}

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return {key: text for library in reversed(self.libraries) for key, text in library.texts(url_hashes).items()}

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return list({passage.id: passage for library in self.libraries for passage in library.passages(ids)}.values())

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """Return the lowest IDF of each term: a term that is common in one library says little there."""
        idfs = [one.idf(terms) for one in self.libraries]
        return {term: min(one[term] for one in idfs) for term in terms}


Reading: TypeAlias = "Library | LibraryGroup"
"""One library, or several, for reading."""


def _keep_best_library(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates, best first, and keep those of each page from the library with the best match."""
    ranked = sorted(candidates, key=lambda candidate: -candidate.passage.score)
    homes: dict[str, str] = {}
    for candidate in ranked:
        homes.setdefault(candidate.passage.url_hash, candidate.passage.library)
    return [candidate for candidate in ranked if homes[candidate.passage.url_hash] == candidate.passage.library]


def _failure_note(results: Iterable[Retrieval]) -> dict[str, Any]:
    """Return the note that a library's embedding model failed, if any."""
    notes = [result.notes["meaning"] for result in results if "meaning" in result.notes]
    return {"meaning": notes[0]} if notes else {}


def _sum_times(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for stages in times:
        for stage, ms in stages.items():
            total[stage] = round(total.get(stage, 0.0) + ms, 2)
    return total
