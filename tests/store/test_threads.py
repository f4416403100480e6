"""Four writers and four readers on one client, during an index build."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from threading import Event
from typing import Any

import numpy as np

from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library
from tests.store.support import draft

ROUNDS = 12


def test_writers_and_readers_share_a_client(library: Library) -> None:
    stop = Event()
    fixed = draft("fixed", chunks=3)
    fixed.commit(library)

    def write(writer: int) -> None:
        for version in range(ROUNDS):
            for page in range(3):
                draft(f"w{writer}-{page}", chunks=5 + version % 3, version=version).commit(library)
            library.remove([draft(f"w{writer}-2").page.url_hash])

    def read(reader: int) -> int:
        found = 0
        while not stop.is_set():
            hits = library.search(dense=fixed.dense[0], sparse=fixed.sparse[0], limit=10, prefetch=30)
            # Everyone finds the unchanged page, at every moment.
            assert hits[0].passage.text == fixed.chunks[0].text
            generations = {(hit.passage.url, hit.passage.text.rsplit("version ", 1)[1]) for hit in hits}
            assert len(generations) == len({url for url, _ in generations})
            found += len(hits) + library.page_count()
        return found

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, number) for number in range(4)]
        writers = [pool.submit(write, number) for number in range(4)]
        for future in writers:
            future.result()
        stop.set()
        assert all(reader.result() > 0 for reader in readers)
    assert library.page_count() == 1 + 4 * 2
    assert library.chunk_count() == library.client.count(library.chunks_collection).count == 3 + 8 * 7


def test_threads_on_one_page_leave_one_whole_version_and_its_predecessors(library: Library) -> None:
    drafts = [draft("a", chunks=3 + n, version=n) for n in range(12)]
    stored = drafts[0].commit(library)

    def note(number: int) -> None:
        library.update_record(replace(stored, checked_at=f"moment {number}", aliases=("https://old.example/a",)))

    with ThreadPoolExecutor(8) as pool:
        futures: list[Future[Any]] = [pool.submit(one.commit, library) for one in drafts[1:]]
        futures += [pool.submit(note, number) for number in range(12)]
        for future in futures:
            future.result()
    page = library.page(stored.url_hash)
    assert page is not None and page.aliases == ("https://old.example/a",)
    shown = next(one for one in drafts if one.page.text == page.text)
    assert [p.text for p in library.chunks(page.url_hash)] == [chunk.text for chunk in shown.chunks]
    assert library.client.count(library.chunks_collection).count == len(shown.chunks)
    versions = library.versions(page.url_hash)
    assert [one.number for one in versions] == list(range(1, 13))
    assert {one.text for one in versions} == {one.page.text for one in drafts}
    assert all(one.until == after.since for one, after in pairwise(versions))


def test_writes_that_arrive_during_a_build_are_kept(library: Library) -> None:
    client = library.client
    assert isinstance(client, EdgeClient)
    for number in range(10):
        draft(f"before-{number}", chunks=30).commit(library)
    builder = client.backend.builder(library.chunks_collection)
    with ThreadPoolExecutor(3) as pool:
        building = pool.submit(builder.build)
        number = 0
        while not building.done():
            draft(f"during-{number}", chunks=3).commit(library)
            library.remove([draft(f"before-{number}").page.url_hash])
            number += 1
        assert building.result()
    gone = min(number, 10)
    assert library.page_count() == number + 10 - gone
    assert library.chunk_count() == 3 * number + 30 * (10 - gone)
    last = draft(f"during-{number - 1}", chunks=3)
    hit = library.search(dense=last.dense[0], sparse=None, limit=1, prefetch=5)[0]
    assert hit.passage.text == last.chunks[0].text
    assert np.isclose(hit.passage.score, 1.0, atol=1e-5)
