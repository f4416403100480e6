"""Idle shards unload their engine, and load it again with the next call."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.errors import StoreError
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from tests.store.support import DIMENSION, MODEL, draft, open_edge


def engine(library: Library) -> EdgeClient:
    assert isinstance(library.client, EdgeClient)
    return library.client


def threads() -> set[str]:
    """Return the threads of this process by name; those of other tests may come and go."""
    return set(os.listdir("/proc/self/task"))  # noqa: PTH208 - nothing but their names


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
def test_idle_libraries_hold_no_threads(client: EdgeClient) -> None:
    before = threads()
    made = [open_library(client, f"lib-{n}", MODEL, DIMENSION) for n in range(3)]
    busy = threads() - before
    assert client.backend.unload_idle(0.0) >= 9
    resting = threads()
    assert len(busy - resting) >= 9
    assert client.backend.unload_idle(0.0) == 0
    assert made[0].page_count() == 0
    assert 0 < len(threads() - resting) < len(busy)


def test_all_of_it_is_there_after_a_rest(folder: Path) -> None:
    client, library = open_edge(folder)
    one, two = draft("a"), draft("b")
    one.commit(library)
    client.backend.unload_idle(0.0)
    two.commit(library)
    client.backend.unload_idle(0.0)
    found = library.search(dense=one.dense[1], sparse=one.sparse[1], limit=1, prefetch=10)
    assert found[0].passage.text == one.chunks[1].text
    assert {page.url_hash for page in library.pages()} == {one.page.url_hash, two.page.url_hash}
    client.close()
    client, again = open_edge(folder)
    assert again.page_count() == 2
    client.close()


def test_a_shard_that_was_used_lately_or_is_being_copied_does_not_rest(library: Library) -> None:
    draft("a").commit(library)
    assert engine(library).backend.unload_idle(600.0) == 0, "used just now"
    shard = engine(library).backend.shard(library.chunks_collection)
    copy, _ = shard.start_copy()
    assert not shard.unload_idle(0.0)
    shard.replace_with(copy, 0)
    assert shard.unload_idle(0.0)
    assert library.chunk_count() == 4


def test_nothing_that_runs_is_cut(library: Library) -> None:
    drafts = [draft(f"p{n}") for n in range(12)]

    def work(n: int) -> int:
        drafts[n].commit(library)
        return len(library.search(dense=drafts[n].dense[0], sparse=None, limit=1, prefetch=5))

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(work, n) for n in range(12)]
        while not all(one.done() for one in running):
            engine(library).backend.unload_idle(0.0)
    assert [one.result() for one in running] == [1] * 12
    assert library.page_count() == 12


def test_what_was_closed_does_not_wake(folder: Path) -> None:
    client, library = open_edge(folder)
    shard = client.backend.shard(library.chunks_collection)
    client.close()
    assert not shard.unload_idle(0.0)
    with pytest.raises(StoreError, match="closed"):
        shard.points()
