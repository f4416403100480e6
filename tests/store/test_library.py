"""Pages added, changed, reused, removed, and found, over the embedded engine."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from rag.errors import ModelMismatchError, StoreError
from rag.store.qdrant.commit import _supersedes
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import PageRecord, library_info, list_libraries, page_id
from rag.store.values import Draft as StoredDraft
from rag.store.values import NewChunks, alias_hash, content_hash, merge_aliases
from rag.types import Page, SparseVector
from tests.store.support import DIMENSION, MODEL, draft, open_edge


def test_a_page_comes_back_as_it_went_in(library: Library) -> None:
    given = draft("a")
    stored = given.commit(library)
    assert (stored.chunks, stored.characters) == (4, len(given.page.text))
    assert stored.generation
    assert stored.added_at == stored.updated_at != ""
    assert library.page(given.page.url_hash) == stored
    assert library.stored_pages([given.page.url_hash, "unknown"]) == {given.page.url_hash: replace(stored, text="")}
    assert library.pages() == [replace(stored, text="")]
    assert (library.page_count(), library.chunk_count()) == (1, 4)


def test_chunks_come_back_in_order_with_their_places(library: Library) -> None:
    given = draft("a", chunks=13)
    given.commit(library)
    passages = library.chunks(given.page.url_hash)
    assert [passage.text for passage in passages] == [chunk.text for chunk in given.chunks]
    assert all(given.page.text[p.start : p.end] == p.text for p in passages)
    assert {(p.url, p.title, p.site, p.language, p.section) for p in passages} == {
        (given.page.url, given.page.title, given.page.site, "en", ("Heading",))
    }
    backwards = [passage.id for passage in reversed(passages)]
    assert [passage.id for passage in library.passages([*backwards, "0" * 32])] == backwards


def test_a_new_version_replaces_the_old_one(library: Library) -> None:
    old, new = draft("a", chunks=6), draft("a", chunks=3, version=1)
    first, second = old.commit(library), new.commit(library)
    assert first.generation != second.generation
    assert second.added_at == first.added_at < second.updated_at
    assert (library.page_count(), library.chunk_count()) == (1, 3)
    assert library.client.count(library.chunks_collection).count == 3
    assert [p.text for p in library.chunks(new.page.url_hash)] == [chunk.text for chunk in new.chunks]
    hits = library.search(dense=old.dense[0], sparse=old.sparse[0], limit=10, prefetch=10)
    assert {hit.passage.text for hit in hits} <= {chunk.text for chunk in new.chunks}


def test_the_same_page_again_changes_nothing_but_its_time(library: Library) -> None:
    given = draft("a")
    first, second = given.commit(library), given.commit(library)
    assert replace(second, updated_at=first.updated_at, generation=first.generation) == first
    assert library.chunk_count() == 4


def test_the_recipe_tells_whether_a_page_is_current(library: Library) -> None:
    stored = draft("a").commit(library, chunker="semantic-1")
    assert library.is_current(stored, stored.text, "semantic-1")
    assert not library.is_current(stored, stored.text, "semantic-2")
    assert not library.is_current(stored, stored.text + " ", "semantic-1")


def test_a_page_without_chunks_is_kept(library: Library) -> None:
    given = draft("a", chunks=0)
    assert given.commit(library).chunks == 0
    assert library.page_count() == 1
    assert library.chunks(given.page.url_hash) == []


def test_vectors_can_be_used_again(library: Library) -> None:
    given = draft("a")
    hashes = [content_hash(f"Title\n{chunk.text}") for chunk in given.chunks]
    sparse = [*given.sparse[:3], SparseVector([], [])]
    known = [True, False, True, True]
    new = NewChunks(given.chunks, given.dense, known, sparse, hashes)
    library.commit_all([library.draft(given.page, new)])
    found = library.reusable_vectors(given.page.url_hash)
    assert list(found) != hashes
    assert set(found) == set(hashes)
    dense, terms = found[hashes[0]]
    assert dense == pytest.approx(given.dense[0], abs=1e-6)
    assert dict(zip(terms.indices, terms.values, strict=True)) == pytest.approx(
        dict(zip(given.sparse[0].indices, given.sparse[0].values, strict=True))
    )
    assert found[hashes[1]][0] is None
    assert found[hashes[3]][1] == SparseVector([], [])
    assert library.reusable_vectors("unknown") == {}


def test_pages_are_listed_newest_first(library: Library) -> None:
    urls = [draft(f"p{n}").commit(library).url for n in range(7)]
    assert [page.url for page in library.pages()] == urls[::-1]


def test_removed_pages_leave_nothing_behind(library: Library) -> None:
    drafts = [draft(f"p{n}") for n in range(4)]
    for one in drafts:
        one.commit(library)
    hashes = [one.page.url_hash for one in drafts]
    assert library.remove([hashes[0], hashes[1], hashes[0], "unknown"]) == 2
    assert set(library.stored_pages(hashes)) == set(hashes[2:])
    assert library.client.count(library.chunks_collection).count == 8
    assert library.clear() == 2
    assert (library.page_count(), library.client.count(library.chunks_collection).count) == (0, 0)
    assert library.search(dense=drafts[0].dense[0], sparse=None, limit=5, prefetch=5) == []


def test_many_hashes_are_looked_up_at_once(library: Library) -> None:
    drafts = [draft(f"p{n}", chunks=1) for n in range(20)]
    for one in drafts:
        one.commit(library)
    unknown = [draft(f"u{n}").page.url_hash for n in range(2500)]
    assert set(library.stored_pages([*unknown, *(one.page.url_hash for one in drafts)])) == {
        one.page.url_hash for one in drafts
    }
    assert library.stored_pages([]) == {}


def test_a_vector_that_is_not_finite_leaves_the_page_as_it_was(library: Library) -> None:
    old = draft("a")
    stored = old.commit(library)
    new = draft("a", version=1)
    new.dense[2, 3] = np.nan
    with pytest.raises(StoreError, match="not a finite number"):
        new.commit(library)
    assert library.page(old.page.url_hash) == stored
    library.sweep()
    assert library.client.count(library.chunks_collection).count == 4


def test_vectors_that_the_model_cannot_read_are_not_looked_at(library: Library) -> None:
    given = draft("a")
    given.dense[1] = np.nan
    given.dense_ok[1] = False
    given.commit(library)
    found = library.search(dense=given.dense[0], sparse=None, limit=10, prefetch=10)
    assert len(found) == 3


def test_rows_must_agree(library: Library) -> None:
    given = draft("a")
    with pytest.raises(ValueError, match="one row for each chunk"):
        replace(given, dense=given.dense[:2]).commit(library)


def test_libraries_live_side_by_side(client: EdgeClient) -> None:
    assert list_libraries(client) == []
    first = open_library(client, "main", MODEL, DIMENSION)
    second = open_library(client, "team-b", "other/model", DIMENSION * 2)
    given = draft("a")
    given.commit(first)
    assert list_libraries(client) == ["main", "team-b"]
    assert (first.page_count(), second.page_count()) == (1, 0)
    info = library_info(client, "team-b")
    assert info is not None
    assert (info.embedding_model, info.dimension) == ("other/model", DIMENSION * 2)
    assert library_info(client, "none") is None


@pytest.mark.parametrize(("model", "dimension"), [("another", DIMENSION), (MODEL, DIMENSION + 1)])
def test_another_model_is_refused_with_the_way_out(library: Library, model: str, dimension: int) -> None:
    with pytest.raises(ModelMismatchError) as caught:
        open_library(library.client, "main", model, dimension)
    assert f"EMBEDDING_MODEL={MODEL}" in str(caught.value)
    assert "choose another library" in str(caught.value)
    assert list_libraries(library.client) == ["main"]


@pytest.mark.parametrize("name", ["", "Main", "-a", "a/b", "a" * 41, "über"])
def test_a_name_that_cannot_be_one_is_refused(client: EdgeClient, name: str) -> None:
    with pytest.raises(StoreError, match="library name"):
        open_library(client, name, MODEL, DIMENSION)


def test_everything_is_there_after_reopening(folder: Path) -> None:
    client, library = open_edge(folder)
    stored = draft("a").commit(library)
    client.close()
    client, library = open_edge(folder)
    assert library.page(stored.url_hash) == stored
    assert library.chunk_count() == 4
    client.close()


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


def test_an_alias_leads_to_its_page(library: Library) -> None:
    first = with_aliases(library, "a", "https://old.example/a", "https://a.example/a?print=1")
    second = draft("b").commit(library)
    asked = [alias_hash("https://old.example/a"), second.url_hash, alias_hash("https://none.example/"), first.url_hash]
    found = library.resolve(asked)
    assert {key: page.url for key, page in found.items()} == {
        asked[0]: first.url,
        asked[1]: second.url,
        asked[3]: first.url,
    }
    assert library.stored_pages(asked).keys() == {asked[1], asked[3]}
    assert library.find_known(asked) == {asked[0], asked[1], asked[3]}
    assert library.resolve([]) == {}
    assert library.find_known([]) == set()


def test_a_page_s_own_address_comes_before_an_alias(library: Library) -> None:
    own = draft("b").commit(library)
    with_aliases(library, "a", own.url)
    assert library.resolve([own.url_hash])[own.url_hash].url == own.url


def test_aliases_survive_a_new_text(library: Library) -> None:
    with_aliases(library, "a", "https://old.example/a")
    changed = draft("a", version=1).commit(library)
    assert changed.aliases == ("https://old.example/a",)
    assert library.resolve([alias_hash("https://old.example/a")])


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


def test_updating_a_page_that_is_not_there_makes_none(library: Library) -> None:
    library.update_record(draft("a").page)
    assert library.page_count() == 0


def test_a_record_is_updated_amid_commits(library: Library) -> None:
    drafts = [draft("a", version=n) for n in range(12)]
    stored = drafts[0].commit(library)

    def note(number: int) -> None:
        library.update_record(replace(stored, checked_at=f"moment {number}", aliases=("https://old.example/a",)))

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(one.commit, library) for one in drafts[1:]]
        futures += [pool.submit(note, n) for n in range(12)]  # type: ignore[misc]
        for future in futures:
            future.result()
    page = library.page(stored.url_hash)
    assert page is not None
    shown = next(one for one in drafts if one.page.text == page.text)
    assert [p.text for p in library.chunks(page.url_hash)] == [chunk.text for chunk in shown.chunks]
    assert page.aliases == ("https://old.example/a",)
    assert len(library.versions(page.url_hash)) == page.version == 12


def test_a_page_that_is_left_out_is_found_by_nobody(library: Library) -> None:
    kept, hidden = draft("a"), draft("b")
    kept.commit(library)
    stored = hidden.commit(library)
    library.set_excluded([stored.url_hash, "unknown"], True)
    assert library.excluded_pages() == {stored.url_hash}
    found = library.search(dense=hidden.dense[0], sparse=hidden.sparse[0], limit=10, prefetch=10)
    assert {hit.passage.url for hit in found} == {kept.page.url}
    assert library.page(stored.url_hash) == stored
    assert len(library.chunks(stored.url_hash)) == 4
    library.set_excluded([stored.url_hash], False)
    assert library.excluded_pages() == set()
    best = library.search(dense=hidden.dense[0], sparse=hidden.sparse[0], limit=1, prefetch=10)
    assert best[0].passage.url == stored.url


def test_a_page_stays_left_out_through_its_changes(library: Library) -> None:
    stored = draft("a").commit(library)
    library.set_excluded([stored.url_hash], True)
    new = draft("a", version=1)
    for given in (new, new):  # a change, and the same again
        given.commit(library, chunker="x")
        library.sweep()
        assert library.excluded_pages() == {stored.url_hash}
        assert library.search(dense=new.dense[0], sparse=None, limit=5, prefetch=5) == []


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


def test_removing_a_page_that_is_left_out(library: Library) -> None:
    stored = draft("a").commit(library)
    library.set_excluded([stored.url_hash], True)
    assert library.remove([stored.url_hash]) == 1
    assert library.client.count(library.chunks_collection).count == 0
    assert library.excluded_pages() == set()


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
