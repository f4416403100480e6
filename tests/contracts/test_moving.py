"""Moving a library to another embedding model and back, over each kind of database."""

from __future__ import annotations

from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.moving import Move, drop_unused_chunks
from rag.store.qdrant.records import check_present, chunks_collections
from tests.contracts.conftest import Store
from tests.store.support import DIMENSION, MODEL, draft
from tests.store.test_moving import OTHER, Encoder, nearest


def test_a_library_moves_and_goes_back_whole(store: Store) -> None:
    client, name = store.client, store.name

    def opened(model: str) -> Library:
        return open_library(client, name, model, DIMENSION)

    library = opened(MODEL)
    for key in "abc":
        draft(key).commit(library)
    for model, other in ((OTHER, "d"), (MODEL, "e")):
        before = opened(MODEL if model == OTHER else OTHER)
        move = Move(before, model, DIMENSION, Encoder())
        assert move.fill(lambda done, total: None, lambda: False)
        draft(other).commit(before)
        before.remove([draft("a").page.url_hash])
        move.switch()
        after = opened(model)
        assert nearest(after, f"Sentence 2 of {other}, version 0.")[0] == f"Sentence 2 of {other}, version 0."
        assert "Page a" not in {page.title for page in after.pages()}
        assert after.chunk_count() == sum(page.chunks for page in after.pages())
        assert not after.audit(deep=True).incomplete
    drop_unused_chunks(client, check_present(client, name), include_previous=True)
    assert chunks_collections(client, name) == [opened(MODEL).chunks_collection]
