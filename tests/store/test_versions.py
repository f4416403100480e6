"""Earlier texts of a page: kept when it changes, limited in number, and removed with it."""

from __future__ import annotations

from rag.store.qdrant.commit import MAX_VERSIONS
from rag.store.qdrant.library import Library
from tests.store.support import draft


def stored_versions(library: Library) -> int:
    return library.client.count(library.versions_collection).count


def test_each_text_is_kept_with_its_time(library: Library) -> None:
    stored = [draft("a", version=n).commit(library) for n in range(3)]
    versions = library.versions(stored[0].url_hash)
    assert [one.number for one in versions] == [page.version for page in stored] == [1, 2, 3]
    assert [one.text for one in versions] == [page.text for page in stored]
    assert [one.since for one in versions] == [stored[0].added_at, stored[1].updated_at, stored[2].updated_at]
    assert [one.until for one in versions] == [stored[1].updated_at, stored[2].updated_at, ""]


def test_the_same_text_cut_anew_is_no_version(library: Library) -> None:
    first = draft("a").commit(library, chunker="one")
    again = draft("a").commit(library, chunker="two")
    assert first.generation != again.generation
    assert again.version == 1
    assert stored_versions(library) == 0
    changed = draft("a", version=1).commit(library, chunker="two")
    versions = library.versions(changed.url_hash)
    assert [one.since for one in versions] == [first.added_at, changed.updated_at]


def test_a_text_that_comes_back_is_a_version_of_its_own(library: Library) -> None:
    for version in (0, 1, 0):
        stored = draft("a", version=version).commit(library)
    texts = [one.text for one in library.versions(stored.url_hash)]
    assert texts[0] == texts[2] != texts[1]


def test_the_oldest_versions_give_way(library: Library) -> None:
    for number in range(MAX_VERSIONS + 3):
        stored = draft("a", chunks=1, version=number).commit(library)
    versions = library.versions(stored.url_hash)
    assert [one.number for one in versions] == list(range(4, MAX_VERSIONS + 4))
    assert stored_versions(library) == MAX_VERSIONS - 1
    assert versions[0].text == draft("a", chunks=1, version=3).page.text


def test_removing_pages_removes_their_versions(library: Library) -> None:
    for key in ("a", "b", "c"):
        for number in range(3):
            stored = draft(key, version=number).commit(library)
    assert stored_versions(library) == 6
    library.remove([stored.url_hash])
    assert stored_versions(library) == 4
    assert library.versions(stored.url_hash) == []
    fresh = draft("c").commit(library)
    assert (fresh.version, len(library.versions(fresh.url_hash))) == (1, 1)
    library.clear()
    assert stored_versions(library) == 0
