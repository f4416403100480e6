"""The synthetic libraries and the measurements of the speed benchmarks, at a size that takes a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client.models import Filter

from benchmarks import building
from benchmarks.dedupe import known_seconds
from benchmarks.drawing import curves
from benchmarks.searching import searches_of, time_searches
from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, MODEL, World, fill, local_copy
from rag.models.embedding import SparseEncoder
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import match, walk
from rag.store.values import Filters

PAGES = 30


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_chunks_are_of_real_size_and_weighed_as_the_encoder_does(world: World) -> None:
    draft = world.page(3)
    assert draft.page == world.page(3).page
    assert all(draft.page.text[c.start : c.end] == c.text and 450 < len(c.text) < 700 for c in draft.chunks)
    assert np.allclose(np.linalg.norm(draft.dense, axis=1), 1.0, atol=1e-5)
    given = SparseEncoder().encode_passage(draft.chunks[0].text)
    theirs = dict(zip(draft.sparse[0].indices, draft.sparse[0].values, strict=True))
    assert theirs == pytest.approx(dict(zip(given.indices, given.values, strict=True)), abs=1e-5)


def test_filled_pages_are_what_commits_leave(world: World, tmp_path: Path) -> None:
    client = EdgeClient(tmp_path / "qdrant")
    library = open_library(client, "main", MODEL, DIMENSION)
    fill(library, world, 0, PAGES)
    assert (library.page_count(), library.chunk_count()) == (PAGES, PAGES * CHUNKS_A_PAGE)
    committed = open_library(client, "committed", MODEL, DIMENSION)
    world.page(5).commit(committed)
    assert _of_page(library, world.page(5).page.url_hash) == _of_page(committed, world.page(5).page.url_hash)

    asked = [world.question(number, PAGES) for number in range(6)]
    ways = searches_of(library, asked)
    found = time_searches(ways, asked, warm_up=2)
    assert set(found) == {"mmr", "rerank", "mmr_found", "rerank_found"}
    assert found["mmr_found"]["p50"] < found["mmr"]["p50"]
    assert all(0 < one["p50"] <= one["p95"] for one in found.values())
    retrieval = ways["mmr"](asked[0][0], Filters())
    assert 4 < len(retrieval.passages) <= 10  # type: ignore[attr-defined]
    peer = local_copy(library, dict(asked), tmp_path / "local")
    best = peer(asked[0][0], Filters()).points[0]  # type: ignore[attr-defined]
    assert best.payload["page_content"] == retrieval.passages[0].text  # type: ignore[attr-defined]
    assert known_seconds(library, 100, PAGES)[1] == 99
    client.close()


def _of_page(library: Library, url_hash: str) -> list[dict[str, Any]]:
    """Return the stored data of a page and its chunks, except what differs by commit."""
    client = library.client
    points = [
        *walk(client, library.pages_collection, Filter(must=[match("url_hash", url_hash)])),
        *walk(client, library.chunks_collection, Filter(must=[match("metadata.url_hash", url_hash)])),
    ]
    values = [{**(one.payload or {}), **(one.payload or {}).get("metadata", {})} for one in points]
    attempt = {"metadata", "generation", "rev", "recent", "updated_at", "written"}
    return [
        {"recipe": one["generation"][:16]} | {key: value for key, value in one.items() if key not in attempt}
        for one in values
    ]


def test_curves_hold_every_figure() -> None:
    rows: list[dict[str, float]] = [{"n": 10_000, "a": 1.5, "b": 0}, {"n": 1_000_000, "a": 9, "b": 3}]
    drawing = curves(rows, "n", {"a": "a < b", "b": "b"})
    assert drawing.count("<polyline") == 2
    assert drawing.count("<circle") == 4
    assert "a &lt; b" in drawing
    assert "1 M" in drawing


def test_what_goes_on_while_an_index_is_built_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_BEFORE", 0.3)
    assert building.main(["--chunks", "400"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["chunks"] == 400
    assert found["build_s"] > 0
    for when in ("before", "during"):
        assert 0 < found[when]["search_p95_ms"] <= found[when]["search_worst_ms"]
    assert found["ratio_p95"] > 0
