"""Hybrid search: fusion, leg ranks, filters, and pages that change under it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from rag.errors import StoreError
from rag.store.qdrant.client import library_locks
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import page_id
from rag.store.values import reciprocal_rank_fusion
from rag.types import SparseVector
from tests.store.support import Draft, draft


@pytest.fixture
def drafts(library: Library) -> list[Draft]:
    made = [draft(f"p{n}", site=f"s{n % 2}.example") for n in range(10)]
    for one in made:
        one.commit(library)
    return made


def test_fused_order_and_the_rank_in_each_leg(library: Library, drafts: list[Draft]) -> None:
    one = drafts[4]
    hits = library.search(dense=one.dense[2], sparse=one.sparse[2], limit=12, prefetch=15)
    dense = library.search(dense=one.dense[2], sparse=None, limit=15, prefetch=15)
    sparse = library.search(dense=None, sparse=one.sparse[2], limit=15, prefetch=15)
    ranks = {
        "dense": {hit.passage.id: at for at, hit in enumerate(dense, 1)},
        "sparse": {hit.passage.id: at for at, hit in enumerate(sparse, 1)},
    }
    assert len(hits) == 12
    for place, hit in enumerate(hits, 1):
        expected = {leg: found[hit.passage.id] for leg, found in ranks.items() if hit.passage.id in found}
        assert hit.passage.ranks == {**expected, "fused": place}
        assert hit.passage.score == pytest.approx(sum(1 / (2 + rank - 1) for rank in expected.values()))
        assert set(hit.passage.scores) == set(hit.passage.ranks)
    order = [(-hit.passage.score, hit.passage.id) for hit in hits]
    assert order == sorted(order)


def test_no_leg_finds_nothing(library: Library, drafts: list[Draft]) -> None:
    assert library.search(dense=None, sparse=None, limit=5, prefetch=5) == []
    assert library.search(dense=None, sparse=SparseVector([], []), limit=5, prefetch=5) == []
    assert library.search(dense=None, sparse=SparseVector([10**6], [1.0]), limit=5, prefetch=5) == []


def test_candidates_bring_their_vectors_where_there_is_one(library: Library) -> None:
    given = draft("v")
    given.dense_ok[3] = False
    given.commit(library)
    hits = library.search(dense=given.dense[0], sparse=given.sparse[3], limit=10, prefetch=10, with_vectors=True)
    vectors = {hit.passage.text: hit.vector for hit in hits}
    assert vectors[given.chunks[0].text] == pytest.approx(given.dense[0], abs=1e-6)
    assert vectors[given.chunks[3].text] is None
    terms = {hit.passage.text: hit.terms for hit in hits}
    assert terms[given.chunks[3].text] == frozenset(given.sparse[3].indices)
    assert terms[given.chunks[0].text] == frozenset()
    assert library.search(dense=given.dense[0], sparse=None, limit=1, prefetch=1)[0].vector is None


def test_equal_scores_are_ordered_by_id() -> None:
    fused = reciprocal_rank_fusion({"dense": {"b": 0.9, "a": 0.9}, "sparse": {"d": 3.0, "c": 1.0}})
    assert fused == {"a": 0.5, "b": pytest.approx(1 / 3), "d": 0.5, "c": pytest.approx(1 / 3)}


def test_pages_in_other_languages_count_half_and_less_the_farther_they_are() -> None:
    fused = reciprocal_rank_fusion({"dense": {"a": 0.8}, "across": {"b": 0.8, "c": 0.4, "d": -0.1}})
    assert fused == {"a": 0.5, "b": 0.25, "c": pytest.approx(1 / 96), "d": 0.0}


def change_record(library: Library, url_hash: str) -> None:
    library.client.set_payload(library.pages_collection, {"generation": "next"}, points=[page_id(url_hash)])


@pytest.mark.parametrize("when", ["while it changes", "after a change failed", "by another process"])
def test_hits_of_a_generation_that_is_not_current_are_passed_over(
    library: Library, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Between the commit and the flags, old chunks are still active; the page's record decides."""
    old, other = draft("a"), draft("b")
    stored = old.commit(library)
    other.commit(library)
    switch = library_locks(library.client, library.name).commit_lock
    if when == "by another process":
        change_record(library, stored.url_hash)
        monkeypatch.setattr("rag.store.qdrant.library.is_shared", lambda client: True)
        library = open_library(library.client, library.name, library.embedding_model, library.dimension)
    elif when == "after a change failed":
        with pytest.raises(StoreError), switch:
            change_record(library, stored.url_hash)
            raise StoreError("store_closed")
    with switch if when == "while it changes" else nullcontext():
        change_record(library, stored.url_hash)
        hits = library.search(dense=old.dense[0], sparse=old.sparse[0], limit=4, prefetch=8)
    assert [hit.passage.url for hit in hits] == [other.page.url] * 4


def test_a_change_during_a_search_is_noticed(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    old = draft("a")
    stored = old.commit(library)
    retrieve = library.client.retrieve

    def interrupted(collection: str, *given: Any, **options: Any) -> Any:
        if collection == library.chunks_collection:
            with library_locks(library.client, library.name).commit_lock:
                change_record(library, stored.url_hash)
        return retrieve(collection, *given, **options)

    monkeypatch.setattr(library.client, "retrieve", interrupted)
    assert library.search(dense=old.dense[0], sparse=old.sparse[0], limit=4, prefetch=8) == []


def test_records_are_not_read_while_nothing_changes(
    library: Library, drafts: list[Draft], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    retrieve = library.client.retrieve
    monkeypatch.setattr(library.client, "retrieve", lambda name, *a, **o: asked.append(name) or retrieve(name, *a, **o))
    hits = library.search(dense=drafts[0].dense[0], sparse=None, limit=4, prefetch=8)
    assert len(hits) == 4
    assert asked == [library.chunks_collection]


def test_idfs_are_asked_once_until_something_changes(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    given = draft("a")
    given.commit(library)
    terms = list(given.sparse[0].indices)
    first = library.idf(terms)
    asked: list[int] = []
    query = library.client.query_batch_points
    monkeypatch.setattr(library.client, "query_batch_points", lambda *a, **o: asked.append(1) or query(*a, **o))
    assert library.idf(terms) == first
    assert asked == []
    draft("b", chunks=9).commit(library)
    again = library.idf(terms)
    assert len(asked) == 1
    assert again != first
