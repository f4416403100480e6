from __future__ import annotations

from qdrant_client import models

from rag.store.qdrant.records import CHUNK_INDEXES, scope_filter
from rag.store.values import Filters


def test_every_key_that_a_search_can_be_confined_by_has_an_index() -> None:
    everything = scope_filter(Filters(("a",), ("b",), ("en",), ("Heading",), "2026-01-01", "2026-02-01"))
    assert everything is not None and isinstance(everything.must, list)
    keys = {condition.key for condition in everything.must if isinstance(condition, models.FieldCondition)}
    assert keys == {"metadata.url_hash", "metadata.site", "metadata.language", "metadata.section", "metadata.added_at"}
    assert keys <= set(CHUNK_INDEXES)
