"""Fused results of several libraries: by likelihood and weight; a page in two of them counts once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from rag.models.embedding import SparseEncoder
from rag.retrieval.retriever import EnsembleRetriever, LibraryGroup, Retriever
from rag.store.qdrant.library import Library
from rag.types import Candidate, Passage, Retrieval
from tests.support.answering import BRIDGE, TEA, VOLCANO, passage


class Given:
    """A library whose search returns these passages, the best first."""

    def __init__(self, likely: float, *found: Passage) -> None:
        self.found, self.likely = found, likely

    def search(self, question: str, **how: Any) -> Retrieval:
        scored = [replace(one, score=1 / place) for place, one in enumerate(self.found, 1)]
        candidates = tuple(Candidate(one, place) for place, one in enumerate(scored, 1))
        ms = {"search": 2.0}
        return Retrieval(question, "mmr", tuple(scored), candidates, ("sparse",), ms, {"by": self.likely}, self.likely)

    def passages(self, ids: Any) -> list[Passage]:
        return [one for one in self.found if one.id in ids]

    def vector(self, question: str) -> Any:
        return np.full(2, self.likely)

    def idf(self, terms: Any) -> dict[int, float]:
        return dict.fromkeys(terms, self.likely)


def ensemble(weights: dict[str, float] | None = None, **libraries: Given) -> EnsembleRetriever:
    each = cast(dict[str, Retriever], libraries)
    return EnsembleRetriever(each, lambda terms: dict.fromkeys(terms, 1.0), SparseEncoder(), weights or {})


@pytest.mark.parametrize(
    ("likely", "weights", "first"),
    [
        ((0.9, 0.2), {}, "one"),
        ((0.2, 0.9), {}, "two"),
        ((0.9, 0.6), {"one": 0.5}, "two"),
        ((0.9, 0.6), {"two": 0.0}, "one"),
    ],
)
def test_likelihood_and_weight_decide(likely: tuple[float, float], weights: dict[str, float], first: str) -> None:
    one, two = Given(likely[0], passage(1, BRIDGE)), Given(likely[1], passage(2, VOLCANO))
    found = ensemble(weights, one=one, two=two).search("When was it?")
    assert found.candidates[0].passage.library == first
    assert found.answerable == max(likely) and found.notes == {"by": max(likely)}
    assert found.ms == {"search": 4.0} and {one.library for one in found.passages} <= {"one", "two"}


def test_the_better_rank_counts_for_a_page_in_two_libraries() -> None:
    newer = replace(passage(1, TEA), id="newer")
    one, two = Given(0.4, passage(1, BRIDGE), passage(3, VOLCANO)), Given(0.8, newer)
    found = ensemble(one=one, two=two).search("What is tea?")
    assert [(one.passage.library, one.passage.id) for one in found.candidates] == [
        ("two", "newer"),
        ("one", passage(3, VOLCANO).id),
    ]


def test_passages_are_read_again_with_their_library() -> None:
    one, two = Given(0.4, passage(1, BRIDGE)), Given(0.8, passage(2, VOLCANO), passage(1, BRIDGE))
    several = ensemble(one=one, two=two)
    ids = [passage(2, VOLCANO).id, "gone", passage(1, BRIDGE).id]
    assert [(one.id, one.library) for one in several.passages(ids)] == [(ids[0], "two"), (ids[2], "one")]
    assert several.vector("?").tolist() == [0.4, 0.4]


def test_a_group_reads_passages_in_order_each_from_the_first_library() -> None:
    first, second = passage(1, BRIDGE), replace(passage(1, BRIDGE), text="A later version.")
    group = LibraryGroup(cast(list[Library], [Given(1.0, first), Given(1.0, second, passage(2, VOLCANO))]))
    assert group.passages([passage(2, VOLCANO).id, "gone", first.id]) == [passage(2, VOLCANO), first]


def test_what_is_common_in_one_library_tells_little() -> None:
    shelves = LibraryGroup(cast(list[Library], [Given(3.0), Given(1.5)]))
    assert shelves.idf([7, 8]) == {7: 1.5, 8: 1.5}
