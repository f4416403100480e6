"""The contract of every kind of database: embedded engine, in-memory mode, server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from qdrant_client import models

from rag.store.qdrant.client import is_shared
from rag.store.qdrant.edge.client import EdgeClient
from rag.types import SparseVector
from tests.contracts.conftest import Store
from tests.store.support import DIMENSION, point_id, sparse_vector, unit

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")

POINTS = 60
RNG = np.random.default_rng(7)
VECTORS = unit(RNG, POINTS)
SPARSE = [sparse_vector(RNG) for _ in range(POINTS)]
CORPUS = dict(enumerate(SPARSE))
QUERY = unit(RNG, 1)[0]
TERMS = sorted(RNG.choice(60, size=5, replace=False).tolist())
SITE = models.PayloadField(key="metadata.site")
INDEXES = {
    "metadata.site": models.PayloadSchemaType.KEYWORD,
    "metadata.active": models.PayloadSchemaType.BOOL,
    "number": models.PayloadSchemaType.INTEGER,
    "at": models.PayloadSchemaType.DATETIME,
}


@pytest.fixture
def filled(store: Store) -> Store:
    store.client.create_collection(
        store.name,
        vectors_config={"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)},
        sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        shard_number=1,  # each shard computes its own IDF
    )
    for key, schema in INDEXES.items():
        store.client.create_payload_index(store.name, key, field_schema=schema)
    store.client.upsert(store.name, [stored(number) for number in range(POINTS)])
    return store


def stored(number: int) -> models.PointStruct:
    """Return point `number`; every tenth has no dense vector, every twelfth no site."""
    vector: dict[str, Any] = {
        "sparse": models.SparseVector(indices=SPARSE[number].indices, values=SPARSE[number].values)
    }
    if number % 10:
        vector["dense"] = VECTORS[number].tolist()
    metadata: dict[str, Any] = {"active": number % 3 != 0, "section": ["a", str(number % 4)]}
    if number % 12:
        metadata["site"] = f"s{number % 5}"
    payload = {
        "page_content": f"text {number}",
        "metadata": metadata,
        "number": number,
        "at": f"2025-01-{number % 28 + 1:02d}T00:00:{number:02d}Z",
    }
    return models.PointStruct(id=point_id(number), vector=vector, payload=payload)


def numbers(points: Any) -> list[int]:
    return [uuid.UUID(str(point.id)).int for point in points]


def expect(points: Any, scores: dict[int, float], limit: int) -> None:
    """Check that the points are the best `limit` by `scores`, in order, up to ties."""
    best = sorted(scores.values(), reverse=True)[:limit]
    assert [point.score for point in points] == pytest.approx(best, abs=1e-4)
    for number, point in zip(numbers(points), points, strict=True):
        assert scores[number] == pytest.approx(point.score, abs=1e-4)


def dense_scores() -> dict[int, float]:
    return {number: float(VECTORS[number] @ QUERY) for number in range(POINTS) if number % 10}


def sparse_scores(corpus: Mapping[int, SparseVector] = CORPUS) -> dict[int, float]:
    """Return BM25's IDF over all points times the stored weights, as Qdrant's `Modifier.IDF` computes it."""
    having = {term: sum(term in vector.indices for vector in corpus.values()) for term in TERMS}
    idf = {term: np.log(1 + (len(corpus) - n + 0.5) / (n + 0.5)) for term, n in having.items()}
    scores = {}
    for number, vector in corpus.items():
        weights = dict(zip(vector.indices, vector.values, strict=True))
        if total := sum(float(idf[term]) * weights[term] for term in TERMS if term in weights):
            scores[number] = total
    return scores


def top(scores: dict[int, float], limit: int) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])[:limit]


def sparse_query() -> models.SparseVector:
    return models.SparseVector(indices=TERMS, values=[1.0] * len(TERMS))


def legs(limit: int) -> list[models.Prefetch]:
    return [
        models.Prefetch(query=QUERY.tolist(), using="dense", limit=limit),
        models.Prefetch(query=sparse_query(), using="sparse", limit=limit),
    ]


def field(key: str, **condition: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, **condition)


def value(given: Any) -> models.MatchValue:
    return models.MatchValue(value=given)


def must(*conditions: Any) -> models.Filter:
    return models.Filter(must=list(conditions))


# Collections


def test_a_collection_is_made_described_and_deleted(filled: Store) -> None:
    assert filled.client.collection_exists(filled.name)
    assert filled.name in [one.name for one in filled.client.get_collections().collections]
    info = filled.client.get_collection(filled.name)
    assert info.points_count == POINTS
    assert isinstance(info.config.params.vectors, dict)
    assert info.config.params.vectors["dense"].size == DIMENSION
    assert info.config.params.sparse_vectors is not None
    assert info.config.params.sparse_vectors["sparse"].modifier == models.Modifier.IDF
    filled.client.delete_collection(filled.name)
    assert not filled.client.collection_exists(filled.name)


def test_the_unnamed_vector_is_described_as_such(store: Store) -> None:
    params = models.VectorParams(size=3, distance=models.Distance.DOT)
    store.client.create_collection(store.name, vectors_config=params)
    described = store.client.get_collection(store.name).config.params.vectors
    assert isinstance(described, models.VectorParams)
    assert (described.size, described.distance) == (3, models.Distance.DOT)
    store.client.upsert(store.name, [models.PointStruct(id=1, vector=[1.0, 2.0, 3.0])])
    found = store.client.query_points(store.name, query=[1.0, 1.0, 1.0]).points
    assert [(point.id, point.score) for point in found] == [(1, pytest.approx(6.0))]


def test_what_was_written_is_there_after_reopening(filled: Store) -> None:
    if isinstance(filled.client, EdgeClient) or is_shared(filled.client):
        before = filled.client.retrieve(filled.name, [point_id(7)], with_vectors=True)
        filled.client.close()
        filled.client = filled.reopen()
        assert filled.client.count(filled.name).count == POINTS
        assert filled.client.retrieve(filled.name, [point_id(7)], with_vectors=True) == before


# Points


def test_points_come_back_with_payload_and_vectors(filled: Store) -> None:
    found = filled.client.retrieve(filled.name, [point_id(9), point_id(10), point_id(999)], with_vectors=True)
    by_number = {uuid.UUID(str(point.id)).int: point for point in found}
    assert set(by_number) == {9, 10}
    assert by_number[9].payload == stored(9).payload
    vectors = by_number[9].vector
    assert isinstance(vectors, dict)
    assert vectors["dense"] == pytest.approx(VECTORS[9].tolist(), abs=1e-6)
    sparse = vectors["sparse"]
    assert isinstance(sparse, models.SparseVector)
    order = np.argsort(sparse.indices)
    assert [sparse.indices[at] for at in order] == SPARSE[9].indices
    assert [sparse.values[at] for at in order] == pytest.approx(SPARSE[9].values)
    assert isinstance(by_number[10].vector, dict)
    assert "dense" not in by_number[10].vector


def test_points_may_come_as_columns(filled: Store) -> None:
    ids = [point_id(n) for n in (100, 101)]
    batch = models.Batch(ids=ids, vectors={"dense": VECTORS[1:3].tolist()}, payloads=[{"a": 1}, {"a": 2}])
    filled.client.upsert(filled.name, batch)
    found = filled.client.retrieve(filled.name, ids, with_vectors=["dense"])
    assert sorted(point.payload["a"] for point in found if point.payload) == [1, 2]
    assert all(isinstance(point.vector, dict) and set(point.vector) == {"dense"} for point in found)


def test_the_payload_is_returned_in_part(filled: Store) -> None:
    selections: list[tuple[Any, set[str]]] = [
        (True, {"page_content", "metadata", "number", "at"}),
        (["number"], {"number"}),
        (models.PayloadSelectorInclude(include=["number", "at"]), {"number", "at"}),
        (models.PayloadSelectorExclude(exclude=["metadata"]), {"page_content", "number", "at"}),
    ]
    for selector, keys in selections:
        found = filled.client.retrieve(filled.name, [point_id(3)], with_payload=selector)
        assert set(found[0].payload or {}) == keys


def test_upsert_replaces_a_point(filled: Store) -> None:
    filled.client.upsert(filled.name, [models.PointStruct(id=point_id(5), vector={}, payload={"new": 1})])
    assert filled.client.retrieve(filled.name, [point_id(5)])[0].payload == {"new": 1}
    assert filled.client.count(filled.name).count == POINTS


# Queries


def test_offset_threshold_and_filter_of_a_query(filled: Store) -> None:
    active = FILTERS["true"][0]
    scores = {number: score for number, score in dense_scores().items() if number % 3}
    best = top(scores, 8)
    found = filled.client.query_points(
        filled.name, query=QUERY.tolist(), using="dense", query_filter=active, limit=5, offset=3
    ).points
    assert numbers(found) == best[3:8]
    bar = (scores[best[3]] + scores[best[4]]) / 2
    found = filled.client.query_points(
        filled.name, query=QUERY.tolist(), using="dense", query_filter=active, score_threshold=bar, limit=20
    ).points
    assert numbers(found) == best[:4]


def test_reciprocal_rank_fusion(filled: Store) -> None:
    query = models.FusionQuery(fusion=models.Fusion.RRF)
    expected: dict[int, float] = {}
    for scores in (dense_scores(), sparse_scores()):
        for rank, number in enumerate(top(scores, 15)):
            expected[number] = expected.get(number, 0.0) + 1 / (rank + 2)
    found = filled.client.query_points(filled.name, prefetch=legs(15), query=query, limit=10).points
    expect(found, expected, 10)


def test_a_filter_outside_a_fusion_reaches_both_legs(filled: Store) -> None:
    only = must(field("number", range=models.Range(lt=12)))
    fusion = models.FusionQuery(fusion=models.Fusion.RRF)
    found = filled.client.query_points(filled.name, prefetch=legs(10), query=fusion, query_filter=only, limit=20).points
    inside = {n for scores in (dense_scores(), sparse_scores()) for n in scores if n < 12}
    assert set(numbers(found)) == inside
    assert len(inside) > 8


def test_many_queries_in_one_call(filled: Store) -> None:
    requests = [
        models.QueryRequest(query=QUERY.tolist(), using="dense", limit=12),
        models.QueryRequest(query=sparse_query(), using="sparse", limit=10, with_payload=["number"]),
    ]
    dense, sparse = filled.client.query_batch_points(filled.name, requests)
    expect(dense.points, dense_scores(), 12)
    expect(sparse.points, sparse_scores(), 10)  # rare terms weigh more
    assert dense.points[0].payload in (None, {})
    assert [point.payload["number"] for point in sparse.points if point.payload] == numbers(sparse.points)


@pytest.mark.parametrize("diversity", [0.1, 0.5, 0.9])
def test_maximal_marginal_relevance(filled: Store, diversity: float) -> None:
    scores = dense_scores()
    candidates, picked = top(scores, 20), list[int]()
    while len(picked) < 6:

        def worth(number: int) -> float:
            alike = max((float(VECTORS[number] @ VECTORS[other]) for other in picked), default=0.0)
            return (1 - diversity) * scores[number] - diversity * alike

        picked.append(max((n for n in candidates if n not in picked), key=worth))
    query = models.NearestQuery(nearest=QUERY.tolist(), mmr=models.Mmr(diversity=diversity, candidates_limit=20))
    found = filled.client.query_points(filled.name, query=query, using="dense", limit=6).points
    assert numbers(found) == picked


# Filters, scroll, count

FILTERS: dict[str, tuple[models.Filter, Callable[[int], bool]]] = {
    "a keyword": (must(field("metadata.site", match=value("s1"))), lambda n: bool(n % 12) and n % 5 == 1),
    "true": (must(field("metadata.active", match=value(True))), lambda n: n % 3 != 0),
    "false": (must(field("metadata.active", match=value(False))), lambda n: n % 3 == 0),
    "a number": (must(field("number", match=value(8))), lambda n: n == 8),
    "a list's element": (must(field("metadata.section", match=value("2"))), lambda n: n % 4 == 2),
    "any of": (
        must(field("metadata.site", match=models.MatchAny(any=["s1", "s2", "none"]))),
        lambda n: bool(n % 12) and n % 5 in (1, 2),
    ),
    "all but": (
        must(field("metadata.site", match=models.MatchExcept(**{"except": ["s1"]}))),
        lambda n: bool(n % 12) and n % 5 != 1,
    ),
    "a range": (must(field("number", range=models.Range(gte=10, lt=20))), lambda n: 10 <= n < 20),
    "a time": (
        must(field("at", range=models.DatetimeRange(gte=datetime(2025, 1, 20, tzinfo=UTC)))),
        lambda n: n % 28 + 1 >= 20,
    ),
    "ids": (must(models.HasIdCondition(has_id=[point_id(n) for n in (1, 2, 99)])), lambda n: n in (1, 2)),
    "empty": (must(models.IsEmptyCondition(is_empty=SITE)), lambda n: n % 12 == 0),
    "not": (models.Filter(must_not=[field("number", range=models.Range(gt=5))]), lambda n: n <= 5),
    "either": (
        models.Filter(should=[field("number", match=value(4)), field("number", match=value(40))]),
        lambda n: n in (4, 40),
    ),
    "all three": (
        models.Filter(
            must=[field("metadata.active", match=value(True))],
            should=[field("number", range=models.Range(lt=10)), field("number", range=models.Range(gte=50))],
            must_not=[field("metadata.section", match=value("1"))],
        ),
        lambda n: n % 3 != 0 and (n < 10 or n >= 50) and n % 4 != 1,
    ),
    "a filter within": (
        models.Filter(
            must=[models.Filter(should=[field("number", match=value(4)), field("number", match=value(6))])],
            must_not=[must(field("number", match=value(6)))],
        ),
        lambda n: n == 4,
    ),
    "null": (must(models.IsNullCondition(is_null=SITE)), lambda n: False),
    "having a vector": (must(models.HasVectorCondition(has_vector="dense")), lambda n: n % 10 != 0),
    "nothing asked": (models.Filter(), lambda n: True),
}


def test_filters(filled: Store) -> None:
    for name, (only, passes) in FILTERS.items():
        expected = [n for n in range(POINTS) if passes(n)]
        found, _ = filled.client.scroll(filled.name, scroll_filter=only, limit=POINTS)
        assert sorted(numbers(found)) == expected, name
        assert filled.client.count(filled.name, count_filter=only).count == len(expected), name


def test_scroll_walks_through_everything_once(filled: Store) -> None:
    seen: list[int] = []
    offset: Any = None
    while True:
        found, offset = filled.client.scroll(filled.name, limit=17, offset=offset, with_payload=False)
        assert len(found) <= 17
        assert all(not point.payload for point in found)
        seen.extend(numbers(found))
        if offset is None:
            break
    assert seen == list(range(POINTS))


# Payload and deletion


def test_set_payload_by_ids_merges(filled: Store) -> None:
    filled.client.set_payload(filled.name, {"number": -1}, points=[point_id(1), point_id(2)])
    found = filled.client.retrieve(filled.name, [point_id(1)])[0].payload or {}
    assert found["number"] == -1
    assert found["page_content"] == "text 1"
    below = must(field("number", range=models.Range(lt=0)))
    assert filled.client.count(filled.name, count_filter=below).count == 2


def test_set_payload_by_filter_below_a_key(filled: Store) -> None:
    site = field("metadata.site", match=value("s3"))
    only, active = must(site), must(site, field("metadata.active", match=value(True)))
    filled.client.set_payload(filled.name, {"active": False}, points=models.FilterSelector(filter=only), key="metadata")
    assert filled.client.count(filled.name, count_filter=only).count == 11
    assert filled.client.count(filled.name, count_filter=active).count == 0
    found, _ = filled.client.scroll(filled.name, scroll_filter=only, limit=1)
    assert (found[0].payload or {})["metadata"]["site"] == "s3"


def written(store: Store, number: int, rev: int, **how: Any) -> int:
    """Write point `number` with this revision under a condition; return the revision afterwards."""
    point = models.PointStruct(id=point_id(number), vector={}, payload={"rev": rev})
    store.client.upsert(store.name, [point], **how)
    found = store.client.retrieve(store.name, [point_id(number)])
    return int((found[0].payload or {}).get("rev", -1)) if found else 0


def test_a_conditional_upsert_is_a_compare_and_set(filled: Store) -> None:
    first = must(field("rev", match=value(1)))
    only, new = models.UpdateMode.UPDATE_ONLY, models.UpdateMode.INSERT_ONLY
    assert written(filled, 99, 1, update_mode=only) == 0
    assert written(filled, 99, 1, update_mode=new) == 1
    assert written(filled, 99, 2, update_mode=new) == 1
    assert written(filled, 99, 2, update_mode=only, update_filter=first) == 2
    assert written(filled, 99, 3, update_mode=only, update_filter=first) == 2
    assert written(filled, 98, 7, update_filter=first) == 7  # a missing point is inserted whatever the filter says


def test_a_batch_is_applied_in_order(filled: Store) -> None:
    new = models.PointStruct(id=point_id(99), vector={}, payload={"rev": 1})
    here = must(models.HasIdCondition(has_id=[point_id(99)]))
    filled.client.batch_update_points(
        filled.name,
        [
            models.UpsertOperation(upsert=models.PointsList(points=[new], update_mode=models.UpdateMode.INSERT_ONLY)),
            models.SetPayloadOperation(set_payload=models.SetPayload(payload={"rev": 2}, filter=here)),
            models.DeleteOperation(delete=models.PointIdsList(points=[point_id(1)])),
            models.DeleteOperation(delete=models.FilterSelector(filter=FILTERS["true"][0])),
        ],
    )
    assert filled.client.retrieve(filled.name, [point_id(99)])[0].payload == {"rev": 2}
    left = numbers(filled.client.scroll(filled.name, limit=POINTS)[0])
    assert 1 not in left
    assert 3 in left
    assert 5 not in left


def test_delete_by_ids_and_by_filter(filled: Store) -> None:
    filled.client.delete(filled.name, [point_id(1), point_id(2), point_id(777)])
    assert filled.client.count(filled.name).count == POINTS - 2
    only = models.FilterSelector(filter=must(field("number", range=models.Range(gte=50))))
    filled.client.delete(filled.name, only)
    assert filled.client.count(filled.name).count == POINTS - 12
    found = filled.client.query_points(filled.name, query=QUERY.tolist(), using="dense", limit=POINTS).points
    assert set(numbers(found)) == {n for n in range(3, 50) if n % 10}


def test_a_term_s_weight_forgets_what_was_deleted(filled: Store, request: pytest.FixtureRequest) -> None:
    if "server" in request.node.callspec.params.values():
        pytest.skip("a server counts what was deleted until it rebuilds the segment")
    gone = [n for n in range(POINTS) if TERMS[0] in SPARSE[n].indices][1:]
    filled.client.delete(filled.name, [point_id(n) for n in gone])
    left = {n: SPARSE[n] for n in range(POINTS) if n not in gone}
    found = filled.client.query_points(filled.name, query=sparse_query(), using="sparse", limit=8).points
    expect(found, sparse_scores(left), 8)
