"""Pages added, changed, reused, removed, and found, over the embedded engine."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from qdrant_client import models

from rag.errors import ModelMismatchError, StoreError
from rag.store.qdrant.commit import _supersedes
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import PageRecord, list_libraries, page_id
from rag.store.values import Draft as StoredDraft
from rag.store.values import NewChunks, alias_hash, merge_aliases
from rag.types import Page
from tests.store.support import DIMENSION, MODEL, draft


def test_a_vector_that_is_not_finite_leaves_the_page_as_it_was(library: Library) -> None:
    old = draft("a")
    stored = old.commit(library)
    new = draft("a", version=1)
    new.dense[2, 3] = np.nan
    with pytest.raises(StoreError, match="not a finite number"):
        new.commit(library)
    assert library.page(old.page.url_hash) == stored
    assert [one.text for one in library.versions(stored.url_hash)] == [stored.text]
    library.sweep()
    assert library.client.count(library.chunks_collection).count == 4
    assert library.client.count(library.versions_collection).count == 0


def test_rows_must_agree(library: Library) -> None:
    given = draft("a")
    with pytest.raises(ValueError, match="one row for each chunk"):
        replace(given, dense=given.dense[:2]).commit(library)


@pytest.mark.parametrize(("model", "dimension"), [("another", DIMENSION), (MODEL, DIMENSION + 1)])
def test_another_model_is_refused_with_the_way_out(library: Library, model: str, dimension: int) -> None:
    with pytest.raises(ModelMismatchError) as caught:
        open_library(library.client, "main", model, dimension)
    assert f"EMBEDDING_MODEL={MODEL}" in str(caught.value)
    assert "choose another library" in str(caught.value)
    assert list_libraries(library.client) == ["main"]


def test_a_name_that_cannot_be_one_is_refused(client: EdgeClient) -> None:
    for name in ("", "Main", "-a", "a/b", "a" * 41, "über"):
        with pytest.raises(StoreError, match="library name"):
            open_library(client, name, MODEL, DIMENSION)


def test_every_filtered_key_has_an_index(library: Library) -> None:
    chunks = library.client.get_collection(library.chunks_collection).payload_schema
    pages = library.client.get_collection(library.pages_collection).payload_schema
    assert chunks["metadata.active"].data_type == models.PayloadSchemaType.BOOL
    assert {"metadata.url_hash", "metadata.generation", "metadata.site", "metadata.language"} <= set(chunks)
    assert set(pages) == {"settled", "text_hash", "alias_hashes", "claim_hashes", "left_out", "removed", "rev"}


def test_pages_are_counted_once_until_one_changes(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    draft("a").commit(library)
    asked: list[str] = []
    count = library.client.count
    monkeypatch.setattr(library.client, "count", lambda name, *a, **o: asked.append(name) or count(name, *a, **o))
    assert [library.page_count() for _ in range(3)] == [1, 1, 1]
    assert asked == [library.pages_collection]
    stored = draft("b").commit(library)
    assert library.page_count() == 2
    library.remove([stored.url_hash])
    assert library.page_count() == 1


def with_aliases(library: Library, key: str, *aliases: str) -> Page:
    given = draft(key)
    return replace(given, page=replace(given.page, aliases=aliases)).commit(library)


def test_a_page_s_own_address_comes_before_an_alias(library: Library) -> None:
    own = draft("b").commit(library)
    with_aliases(library, "a", own.url)
    assert library.resolve([own.url_hash])[own.url_hash].url == own.url


def test_of_many_aliases_the_newest_stay(library: Library) -> None:
    many = [f"https://a.example/a?session={number:04d}" for number in range(2000)]
    kept = with_aliases(library, "a", *many).aliases
    assert 0 < len(kept) < len(many)
    assert kept == tuple(many[-len(kept) :])
    again = with_aliases(library, "a", many[0], kept[0])
    assert again.aliases == (*kept[2:], many[0], kept[0])
    library.update_record(replace(again, aliases=(*again.aliases, many[1])))
    stored = library.stored_pages([again.url_hash])[again.url_hash]
    assert stored.aliases == (*again.aliases[1:], many[1])
    assert library.resolve([alias_hash(many[1])])
    assert library.resolve([alias_hash(again.aliases[0])]) == {}


@pytest.mark.parametrize("sign", ["x", "字", "\ud800", '"'])
def test_long_aliases_leave_room_for_fewer(sign: str) -> None:
    long = [f"https://a.example/{number}/{sign * 2000}" for number in range(200)]
    kept = merge_aliases(long[:100], long[100:])
    assert kept == tuple(long[-len(kept) :])
    assert 5 < len(kept) < 60


def test_a_claim_is_no_alias(library: Library) -> None:
    given, claim = draft("a"), "https://a.example/proper"
    stored = given.commit(library, claim=claim)
    asked = alias_hash(claim)
    assert library.resolve([asked]) == {}
    assert library.claimants([asked, given.page.url_hash]) == {asked: [replace(stored, text="")]}
    library.update_record(replace(stored, etag='"x"'))
    assert library.claimants([asked])
    library.update_record(stored, claim="")
    assert library.claimants([asked]) == {}
    given.commit(library, claim=claim)
    library.remove([stored.url_hash])
    assert library.claimants([asked]) == library.claimants([]) == {}


def test_removing_a_page_frees_its_aliases(library: Library) -> None:
    stored = with_aliases(library, "a", "https://old.example/a")
    library.remove([stored.url_hash])
    assert library.resolve([alias_hash("https://old.example/a")]) == {}
    assert library.find_known([alias_hash("https://old.example/a"), stored.url_hash]) == set()


def test_many_hashes_are_resolved_in_two_queries(library: Library) -> None:
    rows = [
        models.PointStruct(
            id=page_id(f"{n:032x}"),
            vector={},
            payload={**record(n), "aliases": [f"https://x/{n}"], "alias_hashes": [alias_hash(f"https://x/{n}")]},
        )
        for n in range(3000)
    ]
    library.client.upsert(library.pages_collection, rows)
    asked = [alias_hash(f"https://x/{n}") for n in range(0, 20_000, 2)]
    asked += [f"{n:032x}" for n in range(100)]
    began = time.process_time()
    found = library.resolve(asked)
    seconds = time.process_time() - began
    assert len(found) == 1500 + 100
    assert library.find_known(asked) == found.keys()
    assert seconds < 5  # 0.1 to 0.4 seconds of processor time


def record(number: int) -> dict[str, object]:
    names = ("url", "title", "language", "site", "text", "text_hash")
    return {
        **dict.fromkeys(names, ""),
        "url_hash": f"{number:032x}",
        "source": "web",
        "added_at": "2025-01-01T00:00:00Z",
    }


def test_a_record_is_updated_without_its_chunks(library: Library) -> None:
    given = draft("a")
    library.update_record(given.page)
    assert library.page_count() == 0
    stored = given.commit(library)
    news = replace(
        stored, etag='"x"', last_modified="Mon", checked_at="2026-01-01T00:00:00Z", failures=2, title="not this"
    )
    library.update_record(replace(news, aliases=("https://old.example/a",), text=""))
    expected = replace(news, title=stored.title, aliases=("https://old.example/a",))
    assert library.page(stored.url_hash) == expected
    assert [p.text for p in library.chunks(stored.url_hash)] == [chunk.text for chunk in given.chunks]
    library.sweep()
    assert library.page(stored.url_hash) == expected


def test_a_page_stays_left_out_through_its_changes(library: Library) -> None:
    stored = draft("a").commit(library)
    library.set_excluded([stored.url_hash], True)
    new = draft("a", version=1)
    for given in (new, new):  # a change, and the same again
        given.commit(library, chunker="x")
        library.sweep()
        assert library.excluded_pages() == {stored.url_hash}
        assert library.search(dense=new.dense[0], sparse=None, limit=5, prefetch=5) == []
    assert library.remove([stored.url_hash]) == 1
    assert library.client.count(library.chunks_collection).count == 0
    assert library.excluded_pages() == set()


def test_a_page_that_is_back_takes_part_again(library: Library) -> None:
    for version, comes_back in enumerate((True, False)):
        given = draft("a", version=version)
        gone = replace(given.commit(library), status="gone")
        library.update_record(gone)
        library.set_excluded([gone.url_hash], True)
        if comes_back:
            library.update_record(replace(gone, status="active"))
        else:
            given = draft("a", version=5)
            given.commit(library)
        assert library.excluded_pages() == set()
        assert library.search(dense=given.dense[0], sparse=None, limit=5, prefetch=5)


@pytest.mark.parametrize(
    ("ours", "theirs", "stands"),
    [("2026-01-02", "2026-01-01", False), ("2026-01-01", "2026-01-02", True), ("", "2026-01-02", False)],
)
def test_what_another_process_fetched_later_stands(ours: str, theirs: str, stands: bool) -> None:
    made = draft("a")
    stored = PageRecord(replace(made.page, checked_at=theirs, generation="another"), False, 1, (), False)
    nothing = NewChunks((), made.dense[:0], (), (), ())
    mine = StoredDraft(replace(made.page, checked_at=ours), nothing, "recipe")
    assert _supersedes(stored, mine) is stands
