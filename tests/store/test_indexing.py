"""Conditions for an index build, which leaves the collection intact however it ends."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from rag.errors import StoreError
from rag.store.qdrant.edge import shard as shards_of
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.edge.shard import IndexBuilder, Shard
from tests.store.support import DIMENSION, point_id, unit
from tests.support.waiting import until

POINTS = 3000
VECTORS = unit(np.random.default_rng(3), POINTS)


@pytest.fixture
def filled(client: EdgeClient) -> Iterator[EdgeClient]:
    client.create_collection(
        "c", vectors_config={"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)}
    )
    add(client, 0, POINTS)
    yield client


def add(client: EdgeClient, start: int, end: int) -> None:
    points = [
        models.PointStruct(id=point_id(n), vector={"dense": VECTORS[n % POINTS].tolist()}, payload={"n": n})
        for n in range(start, end)
    ]
    client.upsert("c", points)


def shards(client: EdgeClient) -> list[str]:
    return sorted(path.name for path in (client.backend.folder / "c").glob("shard-*"))


def nearest(client: EdgeClient, number: int) -> str:
    return str(client.query_points("c", query=VECTORS[number].tolist(), using="dense", limit=1).points[0].id)


def test_writes_between_copy_and_swap_are_replayed_in_order(filled: EdgeClient) -> None:
    shard = filled.backend.shard("c")
    copy, points = shard.start_copy()
    add(filled, POINTS, POINTS + 300)
    filled.delete("c", [point_id(5)])
    only = models.FilterSelector(filter=models.Filter(must=[models.FieldCondition(key="n", range=models.Range(lt=10))]))
    filled.set_payload("c", {"mark": 1}, points=only)
    filled.upsert("c", [models.PointStruct(id=point_id(6), vector={}, payload={"n": -6})])
    shard.replace_with(copy, points)
    assert filled.count("c").count == POINTS + 299
    marked, _ = filled.scroll(
        "c",
        scroll_filter=models.Filter(must=[models.FieldCondition(key="mark", match=models.MatchValue(value=1))]),
        limit=20,
    )
    assert sorted((point.payload or {})["n"] for point in marked) == [0, 1, 2, 3, 4, 7, 8, 9]
    assert filled.retrieve("c", [point_id(6)])[0].payload == {"n": -6}
    assert filled.retrieve("c", [point_id(5)]) == []
    assert nearest(filled, 5) == point_id(POINTS + 5)  # its vector is that of the deleted point
    add(filled, 5, 6)
    assert filled.count("c").count == POINTS + 300


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_copy_is_synced_before_it_replaces_the_shard(filled: EdgeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = filled.backend.shard("c")
    copy, points = shard.start_copy()
    add(filled, POINTS, POINTS + 10)
    done: list[str] = []
    synced, replace, rmtree = os.fsync, Path.replace, shutil.rmtree

    def fsync(file: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        synced(file)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", lambda path, to: (done.append(f"now {to.name}"), replace(path, to))[1])
    monkeypatch.setattr(shutil, "rmtree", lambda path, **how: (done.append(f"gone {path.name}"), rmtree(path, **how)))
    old = shard.folder.shard
    shard.replace_with(copy, points)
    named, gone = done.index("now current.json"), done.index(f"gone {old.name}")
    files = {str(path) for path in copy.rglob("*")} | {str(copy)}
    assert files - set(done[:named]) == set()
    assert str(copy.parent) in done[named:gone]


def test_a_build_that_fails_leaves_the_shard_as_it_was(filled: EdgeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shards(filled)

    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rag.store.qdrant.edge.shard.sync_folder", full)
        with pytest.raises(StoreError):
            filled.backend.builder("c").build()
    assert shards(filled) == before
    monkeypatch.setattr(shards_of.sys, "executable", "/bin/false")
    assert not filled.backend.builder("c").build()
    assert shards(filled) == before
    add(filled, POINTS, POINTS + 1)
    assert filled.count("c").count == POINTS + 1


def test_closing_ends_a_build(filled: EdgeClient, tmp_path: Path) -> None:
    builder = filled.backend.builder("c")
    builder._delay = 0.0
    builder.start()
    child = until(lambda: builder._child)
    filled.close()
    assert child.poll() is not None
    again = EdgeClient(tmp_path / "bare")
    assert again.count("c").count == POINTS
    again.close()


def test_a_build_starts_by_itself_after_enough_writes(filled: EdgeClient) -> None:
    builder = IndexBuilder(filled.backend.shard("c"), threshold=POINTS + 100, delay=0.05)
    for points in (0, POINTS):  # the second ones are written again
        builder.note_write(points)
        assert builder._thread is None
    add(filled, POINTS, POINTS + 100)
    builder.note_write(100)
    builder.wait(60)
    assert filled.backend.shard("c").folder.indexed == POINTS + 100
    builder.stop()


def test_a_large_index_is_rebuilt_by_growth_not_at_every_step(
    filled: EdgeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = filled.backend.shard("c")
    builder = IndexBuilder(shard, threshold=100)
    shard.folder.indexed = POINTS - 150
    assert not builder.is_due()
    shard.folder.indexed = POINTS - int(POINTS * shards_of.MIN_GROWTH)
    assert builder.is_due()
    builder.pause()
    assert not builder.is_due()
    assert builder.build()


def test_records_without_vectors_are_never_indexed(client: EdgeClient) -> None:
    client.create_collection("r", vectors_config={}, sparse_vectors_config={"s": models.SparseVectorParams()})
    builder = IndexBuilder(client.backend.shard("r"), threshold=0)
    assert not builder.is_due()


def test_a_shard_is_copied_once_at_a_time(filled: EdgeClient) -> None:
    shard: Shard = filled.backend.shard("c")
    copy, _ = shard.start_copy()
    with pytest.raises(RuntimeError, match="being copied already"):
        shard.start_copy()
    shard.abandon(copy)
    assert not copy.exists()
    assert filled.backend.builder("c").build()


def test_a_large_index_is_searched_by_bytes_and_finds_the_same(
    filled: EdgeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = {number: nearest_ten(filled, number) for number in range(0, POINTS, 100)}
    monkeypatch.setattr(shards_of, "QUANTISATION_THRESHOLD", POINTS)
    assert filled.backend.builder("c").build()
    config = json.loads((filled.backend.shard("c").folder.shard / "edge_config.json").read_text("utf-8"))
    assert config["vectors"]["dense"]["quantization_config"]["scalar"]["type"] == "int8"
    shared = [len(found & nearest_ten(filled, number)) / 10 for number, found in exact.items()]
    assert np.mean(shared) >= 0.98
    filled.close()
    again = EdgeClient(tmp_path / "bare")
    assert (again.count("c").count, again.backend.shard("c").folder.indexed) == (POINTS, POINTS)
    assert nearest(again, 77) == point_id(77)
    again.close()


def keyword(client: EdgeClient, term: int) -> float:
    sparse = models.SparseVector(indices=[term], values=[1.0])
    return client.query_points("words", sparse, using="sparse", limit=1).points[0].score


def test_words_of_deleted_points_do_not_count(client: EdgeClient) -> None:
    client.create_collection(
        "words",
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )

    def point(number: int, term: int) -> models.PointStruct:
        sparse = models.SparseVector(indices=[term], values=[1.0])
        return models.PointStruct(id=point_id(number), vector={"dense": [1.0, 0.0], "sparse": sparse}, payload={})

    client.upsert("words", [point(number, 7 if number < 5 else 8) for number in range(10)])
    shard = client.backend.shard("words")
    assert not shard.has_ghosts()
    before = keyword(client, 7)
    client.upsert("words", [point(number, 7) for number in range(20, 40)])
    assert not shard.has_ghosts()
    assert keyword(client, 7) < before
    client.delete("words", [point_id(number) for number in range(20, 40)])
    assert shard.has_ghosts()
    assert keyword(client, 7) == pytest.approx(before)
    assert client.backend.builder("words").build()
    assert not shard.has_ghosts()
    assert keyword(client, 7) == pytest.approx(before)


def nearest_ten(client: EdgeClient, number: int) -> set[str]:
    query = VECTORS[number] + 0.05
    return {str(point.id) for point in client.query_points("c", query=query.tolist(), using="dense").points}
