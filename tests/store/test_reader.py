"""What a library tells of its pages: aliases, what their sites said last, and which are left out."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from qdrant_client import models

from rag.store.aliases import alias_hash, joined_aliases
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import page_id
from rag.types import Page
from tests.store.support import draft


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
    assert library.known(asked).keys() == {asked[1], asked[3]}
    assert library.resolve([]) == {}


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
    stored = library.known([again.url_hash])[again.url_hash]
    assert stored.aliases == (*again.aliases[1:], many[1])
    assert library.resolve([alias_hash(many[1])])
    assert library.resolve([alias_hash(again.aliases[0])]) == {}


@pytest.mark.parametrize("sign", ["x", "字", "\ud800", '"'])
def test_long_aliases_leave_room_for_fewer(sign: str) -> None:
    long = [f"https://a.example/{number}/{sign * 2000}" for number in range(200)]
    kept = joined_aliases(long[:100], long[100:])
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
    assert seconds < 5  # 0.1 to 0.4 seconds of the processor


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
    library.set_left_out([stored.url_hash, "unknown"], True)
    assert library.left_out() == {stored.url_hash}
    found = library.search(dense=hidden.dense[0], sparse=hidden.sparse[0], limit=10, prefetch=10)
    assert {hit.passage.url for hit in found} == {kept.page.url}
    assert library.page(stored.url_hash) == stored
    assert len(library.chunks(stored.url_hash)) == 4
    library.set_left_out([stored.url_hash], False)
    assert library.left_out() == set()
    best = library.search(dense=hidden.dense[0], sparse=hidden.sparse[0], limit=1, prefetch=10)
    assert best[0].passage.url == stored.url


def test_a_page_stays_left_out_through_its_changes(library: Library) -> None:
    stored = draft("a").commit(library)
    library.set_left_out([stored.url_hash], True)
    new = draft("a", version=1)
    for given in (new, new):  # a change, and the same again
        given.commit(library, chunker="x")
        library.sweep()
        assert library.left_out() == {stored.url_hash}
        assert library.search(dense=new.dense[0], sparse=None, limit=5, prefetch=5) == []


def test_a_page_that_is_back_takes_part_again(library: Library) -> None:
    for version, comes_back in enumerate((True, False)):
        given = draft("a", version=version)
        gone = replace(given.commit(library), status="gone")
        library.update_record(gone)
        library.set_left_out([gone.url_hash], True)
        if comes_back:
            library.update_record(replace(gone, status="active"))
        else:
            given = draft("a", version=5)
            given.commit(library)
        assert library.left_out() == set()
        assert library.search(dense=given.dense[0], sparse=None, limit=5, prefetch=5)


def test_removing_a_page_that_is_left_out(library: Library) -> None:
    stored = draft("a").commit(library)
    library.set_left_out([stored.url_hash], True)
    assert library.remove([stored.url_hash]) == 1
    assert library.client.count(library.chunks_collection).count == 0
    assert library.left_out() == set()
