"""A library that moves to another embedding model stays intact, whatever is written, stopped or killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.errors import LibraryMovedError, StoreError
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.moving import Encoded, Move, drop_unused_chunks
from rag.store.qdrant.records import check_present, chunks_collections
from rag.types import Passage
from tests.store.support import DIMENSION, MODEL, HashEmbeddings, draft, open_edge
from tests.support.forked_process import start_process

OTHER = "another"


class Encoder:
    """An encoder that records its texts, and has no vector for those with "unreadable"."""

    def __init__(self, delay: float = 0.0) -> None:
        self.texts: list[str] = []
        self._delay = delay

    def __call__(self, passages: Sequence[Passage]) -> list[Encoded]:
        time.sleep(self._delay)
        self.texts += [one.text for one in passages]
        return [(vector(one.text), None) for one in passages]


def vector(text: str) -> NDArray[np.float32] | None:
    return None if "unreadable" in text else np.asarray(HashEmbeddings().embed_query(text), dtype=np.float32)


def moved(library: Library, model: str = OTHER) -> Encoder:
    """Move the whole library."""
    encoder = Encoder()
    move = Move(library, model, DIMENSION, encoder)
    assert move.fill(lambda done, total: None, lambda: False)
    move.switch()
    return encoder


def opened(client: EdgeClient, model: str = OTHER) -> Library:
    return open_library(client, "main", model, DIMENSION, create=False)


def shown(library: Library) -> dict[str, list[tuple[str, str]]]:
    """Return the chunks of each page, by id and text."""
    return {page.url: [(one.id, one.text) for one in library.chunks(page.url_hash)] for page in library.pages()}


def nearest(library: Library, text: str) -> list[str]:
    hits = library.search(dense=vector(text), sparse=None, limit=3, prefetch=10)
    return [hit.passage.text for hit in hits]


def test_all_of_it_is_there_by_the_other_model(library: Library) -> None:
    for key in "abc":
        draft(key, chunks=5).commit(library)
    before = shown(library)
    encoder = moved(library)
    after = opened(library.client)
    assert shown(after) == before
    assert sorted(encoder.texts) == sorted(text for page in before.values() for _, text in page)
    assert nearest(after, "Sentence 3 of b, version 0.")[0] == "Sentence 3 of b, version 0."
    info = check_present(library.client, "main")
    assert (info.embedding_model, info.moving_to, info.previous_model) == (OTHER, "", MODEL)
    with pytest.raises(StoreError, match="already uses"):
        Move(after, OTHER, DIMENSION, encoder)


def test_what_is_written_meanwhile_comes_along(library: Library) -> None:
    for key in "abcd":
        draft(key).commit(library)
    b, c, d = (draft(key).page.url_hash for key in "bcd")
    library.set_excluded([d], True)
    encoder = Encoder()
    move = Move(library, OTHER, DIMENSION, encoder)
    assert move.fill(lambda done, total: None, lambda: False)
    draft("a", version=1).commit(library)
    library.remove([b])
    library.set_excluded([c], True)
    library.set_excluded([d], False)
    draft("new").commit(library)
    written = shown(library)
    move.switch()
    after = opened(library.client)
    assert shown(after) == written
    assert after.excluded_pages() == {c}
    assert nearest(after, "Sentence 0 of new, version 0.")[0] == "Sentence 0 of new, version 0."
    assert nearest(after, "Sentence 0 of d, version 0.")[0] == "Sentence 0 of d, version 0."
    assert "version 0" not in "".join(text for _, text in written[draft("a").page.url])
    for absent in ("Sentence 0 of b, version 0.", "Sentence 0 of c, version 0."):
        assert absent not in nearest(after, absent)
    assert after.chunk_count() == library.client.count(library.chunks_collection).count - 4  # those of c
    assert after.audit(deep=True).incomplete == 0


def test_a_process_with_a_stale_library_does_not_write_into_its_successor(library: Library) -> None:
    draft("a").commit(library)
    moved(library)
    writes = (
        lambda: draft("b").commit(library),
        lambda: library.remove([draft("a").page.url_hash]),
        lambda: library.set_excluded([draft("a").page.url_hash], True),
    )
    for write in writes:
        with pytest.raises(LibraryMovedError, match="Try again"):
            write()
    after = opened(library.client)
    draft("b").commit(after)
    assert {page.title for page in after.pages()} == {"Page a", "Page b"}
    assert nearest(library, "Sentence 1 of a, version 0.")  # a search that began before completes normally


def test_going_back_takes_along_what_was_added_since(library: Library) -> None:
    for key in "abc":
        draft(key).commit(library)
    moved(library)
    after = opened(library.client)
    draft("d").commit(after)
    after.remove([draft("a").page.url_hash])
    written = shown(after)
    encoder = moved(after, MODEL)
    assert sorted(encoder.texts) == [f"Sentence {at} of d, version 0." for at in range(4)]
    assert shown(opened(library.client, MODEL)) == written


def test_what_was_stopped_goes_on_where_it_was(library: Library) -> None:
    for number in range(100):
        draft(f"p{number}").commit(library)
    first = Encoder()
    assert not Move(library, OTHER, DIMENSION, first).fill(lambda done, total: None, lambda: True)
    assert check_present(library.client, "main").moving_to == OTHER
    assert len(nearest(library, "Sentence 0 of p1, version 0.")) == 3
    second = moved(library)
    assert len(first.texts) == 128
    assert sorted(first.texts + second.texts) == sorted(text for page in shown(library).values() for _, text in page)


def test_a_chunk_that_the_model_cannot_read_is_found_by_its_words(library: Library) -> None:
    given = draft("unreadable")
    given.commit(library)
    moved(library)
    after = opened(library.client)
    hits = after.search(dense=vector("x"), sparse=given.sparse[0], limit=1, prefetch=10)
    assert hits[0].passage.text == "Sentence 0 of unreadable, version 0."
    assert set(hits[0].passage.ranks) == {"sparse", "fused"}


def test_what_nobody_needs_is_deleted(library: Library) -> None:
    client = library.client
    draft("a").commit(library)
    moved(library)
    Move(opened(client), "third", DIMENSION, Encoder())
    assert len(chunks_collections(client, "main")) == 3
    drop_unused_chunks(
        client, check_present(client, "main"), include_previous=True
    )  # never while a library is being moved
    assert len(chunks_collections(client, "main")) == 3
    moved(opened(client), "third")
    drop_unused_chunks(client, check_present(client, "main"), include_previous=False)
    assert len(chunks_collections(client, "main")) == 2
    drop_unused_chunks(client, check_present(client, "main"), include_previous=True)
    after = opened(client, "third")
    assert chunks_collections(client, "main") == [after.chunks_collection]
    assert check_present(client, "main").previous_model == ""
    assert nearest(after, "Sentence 0 of a, version 0.")


def move_slowly(folder: Path, told: Connection) -> None:
    """Move the library in a process to be killed."""
    _, library = open_edge(folder)
    move = Move(library, OTHER, DIMENSION, Encoder(delay=0.05))
    move.fill(lambda done, total: told.send((done, total)), lambda: False)


def test_a_killed_move_loses_nothing(folder: Path) -> None:
    client, library = open_edge(folder)
    for number in range(150):
        draft(f"p{number}").commit(library)
    before = shown(library)
    client.close()
    child, told = start_process(move_slowly, folder)
    while (said := told.recv())[0] < 128:
        assert said[1] == 600
    child.kill()
    child.join()
    client, library = open_edge(folder)
    assert shown(library) == before
    again = moved(library)
    assert 0 < len(again.texts) < 600
    assert shown(opened(client)) == before
    client.close()
