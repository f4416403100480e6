"""Ids and payloads are the same everywhere and for ever, since libraries on disk depend on them."""

from __future__ import annotations

import uuid

from rag.store.qdrant.records import _SPACE, chunk_id, library_id, page_id, version_id
from rag.store.values import alias_hash
from rag.web.urls import url_hash


def test_ids_are_uuid5() -> None:
    for number in range(200):
        key = f"{number:032x}"
        assert page_id(key) == str(uuid.uuid5(_SPACE, f"page\n{key}"))
        assert version_id(key, number) == str(uuid.uuid5(_SPACE, f"version\n{key}\n{number}"))
    assert len({library_id("a"), page_id("a"), chunk_id("a", "", 0), version_id("a", 0)}) == 4


def test_an_alias_has_the_hash_of_its_address() -> None:
    for address in ("https://x.example/", "http://x.example/a?b=c%20d", "file:///notes.txt"):
        assert alias_hash(address) == url_hash(address)
