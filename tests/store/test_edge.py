"""The limits of the embedded engine: refusals, faults, locks, and leftovers on disk."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models
from qdrant_client.client_base import QdrantBase

from rag.errors import StoreBusyError, StoreError
from rag.store.qdrant.edge.client import BATCH, EdgeBackend, EdgeClient
from rag.store.qdrant.edge.shard import Shard, _is_cached, copy_file, read_ahead
from rag.store.qdrant.library import Library
from tests.store.support import draft, open_edge, point_id

ROOT = Path(__file__).resolve().parents[2]
PLAIN = models.VectorParams(size=3, distance=models.Distance.COSINE)


@pytest.fixture
def three(client: EdgeClient) -> EdgeClient:
    client.create_collection("three", vectors_config=PLAIN)
    return client


def some(number: int, vector: list[float] | None = None) -> models.PointStruct:
    return models.PointStruct(id=point_id(number), vector=vector or [1.0, 2.0, 3.0], payload={"n": number})


# Refusals


@pytest.mark.parametrize("value", ["half \ud83d of it", {"deep": ["\udc00"]}, {"no JSON", "value"}])
def test_what_the_engine_cannot_hold_is_told(three: EdgeClient, value: Any) -> None:
    bad = models.PointStruct(id=point_id(1), vector=[1.0, 2.0, 3.0], payload={"text": value})
    for points in ([bad], models.Batch(ids=[bad.id], vectors=[bad.vector], payloads=[bad.payload])):  # type: ignore[list-item]
        with pytest.raises(StoreError, match="upsert"):
            three.upsert("three", points)
    three.upsert("three", [some(1)])
    assert three.count("three").count == 1


def test_every_call_that_is_not_translated_says_its_name(client: EdgeClient) -> None:
    refused = []
    for name in vars(QdrantBase):
        if not name.startswith("_") and getattr(EdgeBackend, name).__qualname__.startswith("_refuser"):
            with pytest.raises(StoreError, match=f"doesn't support {name}"):
                getattr(client.backend, name)()
            refused.append(name)
    assert "create_snapshot" in refused
    assert "query_points" not in refused
    assert len(refused) > 20


def query(query: Any) -> Callable[[EdgeClient], Any]:
    return lambda client: client.query_points("three", query=query)


def condition(condition: Any) -> Callable[[EdgeClient], Any]:
    return lambda client: client.count("three", count_filter=models.Filter(must=[condition]))


NOT_TRANSLATED: dict[str, Callable[[EdgeClient], Any]] = {
    "RecommendQuery": query(models.RecommendQuery(recommend=models.RecommendInput(positive=[[1.0, 0.0, 0.0]]))),
    "SampleQuery": query(models.SampleQuery(sample=models.Sample.RANDOM)),
    "RrfQuery": query(models.RrfQuery(rrf=models.Rrf(k=60))),
    "point id": query(point_id(1)),
    "MatchText": condition(models.FieldCondition(key="a", match=models.MatchText(text="x"))),
    "geo_radius": condition(
        models.FieldCondition(key="a", geo_radius=models.GeoRadius(center=models.GeoPoint(lon=0, lat=0), radius=1))
    ),
    "NestedCondition": condition(models.NestedCondition(nested=models.Nested(key="a", filter=models.Filter()))),
    "order_by": lambda client: client.scroll("three", order_by="number"),
    "quantization_config": lambda client: client.create_collection(
        "a",
        vectors_config=PLAIN,
        quantization_config=models.BinaryQuantization(binary=models.BinaryQuantizationConfig()),
    ),
}


def test_what_is_not_translated_is_refused_by_name(three: EdgeClient) -> None:
    for named, call in NOT_TRANSLATED.items():
        with pytest.raises(StoreError, match=named):
            call(three)
    assert [one.name for one in three.get_collections().collections] == ["three"]


# Bad vectors and bad calls


def nested(levels: int) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    for _ in range(levels):
        payload = {"deeper": payload}
    return payload


NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
MISREAD: dict[str, Callable[[EdgeClient], Any]] = {
    "not dict": lambda c: c.query_points("three", query=[1.0, 0.0, 0.0], search_params={"hnsw_ef": 9}),  # type: ignore[arg-type]
    "'dict' object": lambda c: c.query_points("three", prefetch={"limit": 1}),  # type: ignore[arg-type]
    "a Filter, not dict": lambda c: c.count("three", count_filter={"must": []}),  # type: ignore[arg-type]
    "which keys": lambda c: c.query_points("three", query=[1.0, 0.0, 0.0], with_payload={"include": ["n"]}),  # type: ignore[arg-type]
    "negative int": lambda c: c.scroll("three", limit=-1),
    "as UUID": lambda c: c.delete("three", ["no-id"]),
    "'when'": lambda c: c.upsert("three", [models.PointStruct(id=1, vector=[1.0, 0.0, 0.0], payload={"when": NOW})]),
    "set_payload": lambda c: c.set_payload("three", {"when": NOW}, [1]),
    "'deeper' is more than 100 levels": lambda c: c.upsert(
        "three", [models.PointStruct.model_construct(id=1, vector=[1.0, 0.0, 0.0], payload=nested(9000))]
    ),
    "each index once": lambda c: c.query_points("three", query=models.SparseVector(indices=[1, 2], values=[1.0])),
    "no attribute 'id'": lambda c: c.upsert("three", [{"id": 1}]),  # type: ignore[list-item]
}


def test_a_value_of_a_wrong_kind_is_told_with_advice(three: EdgeClient) -> None:
    for named, call in MISREAD.items():
        with pytest.raises(StoreError, match=re.escape(named)) as told:
            call(three)
        assert told.value.code == "store_argument"
        assert "qdrant_client.models" in str(told.value) and "isoformat()" in str(told.value)
        three.upsert("three", [some(1)])
        assert three.count("three").count == 1


def test_a_payload_that_is_kept_can_be_read_again(three: EdgeClient) -> None:
    deep = models.PointStruct(id=1, vector=[1.0, 2.0, 3.0], payload=nested(100))
    three.upsert("three", [deep])
    assert three.retrieve("three", [1])[0].payload == deep.payload


@pytest.mark.parametrize("wanted", [False, True, ["dense"], ["sparse"]])
def test_mmr_returns_the_vectors_that_were_asked_for(client: EdgeClient, wanted: Any) -> None:
    client.create_collection("two", {"dense": PLAIN}, sparse_vectors_config={"sparse": models.SparseVectorParams()})
    words = models.SparseVector(indices=[1], values=[1.0])
    client.upsert("two", [models.PointStruct(id=1, vector={"dense": [1.0, 2.0, 3.0], "sparse": words})])
    query = models.NearestQuery(nearest=[1.0, 0.0, 0.0], mmr=models.Mmr(diversity=0.5, candidates_limit=5))
    vector = client.query_points("two", query=query, using="dense", with_vectors=wanted).points[0].vector
    names = ["dense", "sparse"] if wanted is True else wanted or []
    assert sorted(vector) == names if isinstance(vector, dict) else vector is None and not names


@pytest.mark.parametrize("file", ["segment.json", "payload_storage/bitmask.dat", "payload_storage/page_0.dat"])
def test_a_damaged_segment_is_told_with_advice(tmp_path: Path, file: str) -> None:
    with_points = EdgeClient(tmp_path)
    with_points.create_collection("three", vectors_config=PLAIN)
    with_points.upsert("three", [some(1)])
    with_points.close()
    (damaged,) = tmp_path.glob(f"three/shard-*/segments/*/{file}")
    with damaged.open("r+b") as bytes_of:
        bytes_of.write(b"\xff" * 200)
        bytes_of.truncate(5 if damaged.stat().st_size < 100_000 else None)
    again = EdgeClient(tmp_path)
    with pytest.raises(StoreError, match=r"is damaged: .* Restore it from a backup"):
        again.scroll("three")
    again.close()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_vector_that_is_not_finite_is_refused(three: EdgeClient, bad: float) -> None:
    with pytest.raises(StoreError, match="not a finite number"):
        three.upsert("three", [some(1), some(2, [1.0, bad, 0.0])])
    with pytest.raises(StoreError, match="not a finite number"):
        three.query_points("three", query=[1.0, bad, 0.0])
    assert three.count("three").count == 0


def test_a_wrong_dimension_is_one_sentence(three: EdgeClient) -> None:
    with pytest.raises(StoreError, match="expected dim: 3, got 2"):
        three.upsert("three", [some(1, [1.0, 2.0])])


def test_a_missing_collection_is_named(client: EdgeClient) -> None:
    with pytest.raises(StoreError, match="no collection named nowhere"):
        client.count("nowhere")
    assert not client.delete_collection("nowhere")


def test_a_collection_is_made_once(three: EdgeClient) -> None:
    with pytest.raises(StoreError, match="already has a collection named three"):
        three.create_collection("three", vectors_config=PLAIN)


@pytest.mark.parametrize("name", ["../out", ".hidden", "a/b", "ünï %41", "c:d"])
def test_any_name_stays_inside_the_folder(client: EdgeClient, tmp_path: Path, name: str) -> None:
    client.create_collection(name, vectors_config=PLAIN)
    client.upsert(name, [some(1)])
    assert [one.name for one in client.get_collections().collections] == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["bare"]
    client.close()
    again = EdgeClient(tmp_path / "bare")
    assert again.count(name).count == 1
    assert again.delete_collection(name)
    again.close()


def test_large_writes_reach_the_engine_in_small_batches(three: EdgeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = Shard.write

    def counting(self: Shard, *args: Any, **kwargs: Any) -> None:
        before = self.points()
        real(self, *args, **kwargs)
        sizes.append(self.points() - before)

    monkeypatch.setattr(Shard, "write", counting)
    three.upsert("three", [some(n) for n in range(2 * BATCH + 5)])
    assert sizes == [BATCH, BATCH, 5]
    assert BATCH <= 128


# Folders and processes


def test_a_second_client_gets_a_clear_sentence(folder: Path) -> None:
    first, _ = open_edge(folder)
    with pytest.raises(StoreBusyError, match="Another process is using the database"):
        EdgeClient(folder)
    first.close()
    EdgeClient(folder).close()


def test_a_folder_that_cannot_be_made_gets_a_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="Can't write"):
        EdgeClient(tmp_path / "file" / "qdrant")


def test_a_closed_client_says_so(folder: Path) -> None:
    client, library = open_edge(folder)
    client.close()
    client.close()
    with pytest.raises(StoreError, match="closed"):
        library.page_count()


def test_a_damaged_collection_says_where(folder: Path) -> None:
    client, library = open_edge(folder)
    client.close()
    (folder / library.pages_collection / "current.json").write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        open_edge(folder)


def test_writes_stop_before_the_disk_is_full(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, other = draft("a").commit(library), draft("b").commit(library)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 40, 1 << 40, 30 << 20))
    with pytest.raises(StoreError, match="less than 64 MB left"):
        draft("a", version=1).commit(library)
    assert library.page(stored.url_hash) == stored
    assert library.remove([stored.url_hash]) == 1
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 40, 1 << 40, 1 << 20))
    with pytest.raises(StoreError, match="less than 16 MB left"):
        library.remove([other.url_hash])


def test_an_unclosed_client_is_silent_and_loses_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.store.support import draft, open_edge;"
        "client, library = open_edge(Path(sys.argv[1])); draft('a').commit(library)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "q")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    client, library = open_edge(tmp_path / "q")
    assert library.chunk_count() == 4
    client.close()


# After a crash


def test_leftovers_are_cleared_at_the_next_start(folder: Path) -> None:
    client, library = open_edge(folder)
    draft("a").commit(library)
    name = library.chunks_collection
    client.close()
    live = json.loads((folder / name / "current.json").read_text())["shard"]
    shutil.copytree(folder / library.pages_collection, folder / ".new-left")
    shutil.copytree(folder / library.pages_collection, folder / ".gone-left")
    (folder / name / "shard-left" / "segments").mkdir(parents=True)
    (folder / name / live / "temp_segments" / "x").mkdir(parents=True)

    client, library = open_edge(folder)
    assert library.chunk_count() == 4
    assert sorted(path.name for path in (folder / name).iterdir()) == ["collection.json", "current.json", live]
    assert not (folder / name / live / "temp_segments").exists()
    assert not list(folder.glob(".*"))
    assert len(client.get_collections().collections) == 4
    client.close()


def test_a_copy_keeps_holes_and_content(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.write(b"begin")
        file.seek(50 << 20)
        file.write(b"middle")
        file.truncate(90 << 20)
    copy_file(source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert (tmp_path / "copy").stat().st_blocks <= source.stat().st_blocks + 16


def test_reading_ahead_skips_unneeded_and_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("segments/a/vector_index-dense/links.bin", "segments/a/payload_storage/page_0.dat", "wal/open-1"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 3_000_000)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    opened: list[str] = []
    plain = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *a, **o: opened.append(path.name) or plain(path, *a, **o))
    read_ahead(tmp_path, payloads=True)
    assert sorted(opened) == ["dangling", "links.bin", "page_0.dat"]
    opened.clear()
    read_ahead(tmp_path, payloads=False)
    assert sorted(opened) == ["dangling", "links.bin"]
    opened.clear()
    monkeypatch.setattr("rag.store.qdrant.edge.shard._MAX_READ_AHEAD", 1_000_000)
    read_ahead(tmp_path, payloads=True)
    assert sorted(opened) == ["dangling", "links.bin"]


def test_a_file_is_cached_if_no_megabyte_of_it_has_to_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def preadv(file: int, buffers: list[bytearray], at: int, flags: int) -> int:
        asked.append(at)
        if at >= missing:
            raise BlockingIOError
        return 1

    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    missing = 3 << 20
    assert _is_cached(0, 0, missing) and asked == [0, 1 << 20, 2 << 20]
    assert not _is_cached(0, 0, missing + 1)
    monkeypatch.delattr(os, "RWF_NOWAIT")
    assert not _is_cached(0, 0, 1)
