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


def by_likelihood(found: Retrieval, _: int, passage: Passage) -> float:
    return found.answerable * passage.score


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
        found = {name: one.search(question, k=k, before=before, **how) for name, one in self.retrievers.items()}
        ranked = _keep_best_library([one for name, each in found.items() for one in self._weighed(name, each)])
        chosen = [one.passage for one in ranked if one.place is not None or one.fate]
        weights = term_weights(question, before, self.sparse)
        asked = {term: weights[term] * idf for term, idf in self.idf(sorted(weights)).items()}
        context = assemble(chosen, asked, self.sparse, k, self.characters)
        places = {one.id: place for place, one in enumerate(context.passages, 1)}
        likeliest = max(found.values(), key=lambda each: each.answerable)
        return replace(
            likeliest,
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
            legs=tuple(dict.fromkeys(leg for each in found.values() for leg in each.legs)),
            ms=_sum_times(each.ms for each in found.values()),
            notes={**_silence(found.values()), **likeliest.notes},
            damaged=tuple(dict.fromkeys(title for each in found.values() for title in each.damaged)),
        )

    def _weighed(self, name: str, found: Retrieval) -> Iterable[Candidate]:
        """Yield the candidates of one library with their scores among all libraries."""
        weight = self.weights.get(name, 1.0)
        for place, one in enumerate(sorted(found.candidates, key=lambda one: -one.passage.score), 1):
            score = weight * self.worth(found, place, one.passage)
            scores = {**one.passage.scores, "fused": score}
            yield replace(one, passage=replace(one.passage, library=name, score=score, scores=scores))

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Reload passages by id, each from the first library that has it."""
        read = {
            passage.id: replace(passage, library=name)
            for name, one in reversed(list(self.retrievers.items()))
            for passage in one.passages(ids)
        }
        return [read[wanted] for wanted in ids if wanted in read]

    def vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector (d,) of a question, in the first library's model."""
        return next(iter(self.retrievers.values())).vector(question)


@dataclass(frozen=True, slots=True)
class LibraryGroup:
    """Several libraries read as one; the first one that has a page provides it."""

    libraries: Sequence[Library]

    def pages(self) -> list[Page]:
        return [page for one in self.libraries for page in one.pages()]

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {key: page for one in reversed(self.libraries) for key, page in one.known(url_hashes).items()}

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return {key: text for one in reversed(self.libraries) for key, text in one.texts(url_hashes).items()}

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return list({passage.id: passage for one in self.libraries for passage in one.passages(ids)}.values())

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """Return the lowest IDF of each term: a term that is common in one library says little there."""
        each = [one.idf(terms) for one in self.libraries]
        return {term: min(one[term] for one in each) for term in terms}


Reading: TypeAlias = "Library | LibraryGroup"
"""One library, or several, for reading."""


def _keep_best_library(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates, best first, and keep those of each page from the library with the best match."""
    ranked = sorted(candidates, key=lambda one: -one.passage.score)
    homes: dict[str, str] = {}
    for one in ranked:
        homes.setdefault(one.passage.url_hash, one.passage.library)
    return [one for one in ranked if homes[one.passage.url_hash] == one.passage.library]


def _silence(each: Iterable[Retrieval]) -> dict[str, Any]:
    """Return the note that a library's embedding model failed, if any."""
    noted = [found.notes["meaning"] for found in each if "meaning" in found.notes]
    return {"meaning": noted[0]} if noted else {}


def _sum_times(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in each:
        for stage, ms in one.items():
            total[stage] = round(total.get(stage, 0.0) + ms, 2)
    return total
