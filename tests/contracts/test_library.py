"""The contract of a library, over the embedded engine and over a server."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import LIBRARIES, chunks_collections, library_id
from rag.store.values import Audit, CommitResult, Filters, alias_hash, content_hash, sign
from rag.types import Page, SparseVector
from tests.contracts.conftest import Store
from tests.store.support import DIMENSION, MODEL, Draft, draft

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")


@pytest.fixture
def library(store: Store) -> Iterator[Library]:
    yield open_library(store.client, f"lib-{store.name}", MODEL, DIMENSION)
    store.client.delete(LIBRARIES, [library_id(f"lib-{store.name}")])


def commit(library: Library, *drafts: Draft, claim: str = "") -> list[CommitResult]:
    return library.commit_all([library.draft(one.page, one.new, "by hand", claim) for one in drafts])


def bare(page: Page) -> Page:
    return replace(page, text="")


def test_pages_are_stored_told_and_removed(library: Library) -> None:
    assert (library.embedding_model, library.dimension) == (MODEL, DIMENSION)
    drafts = [draft(f"page-{n}") for n in range(3)]
    stored = [stand.page for stand in commit(library, *drafts)]
    assert [page.chunks for page in stored] == [4, 4, 4] and all(page.added_at and page.generation for page in stored)
    assert all(page.characters == len(page.text) and page.updated_at == page.added_at for page in stored)
    hashes = [page.url_hash for page in stored]
    assert library.stored_pages([*hashes, "0" * 32]) == {page.url_hash: bare(page) for page in stored}
    assert library.page(hashes[1]) == stored[1] and library.page("0" * 32) is None
    assert library.texts([hashes[0], "0" * 32]) == {hashes[0]: stored[0].text}
    assert {page.url_hash for page in library.pages()} == {*hashes}
    assert [page.added_at for page in library.pages()] == sorted((page.added_at for page in stored), reverse=True)
    assert (library.page_count(), library.chunk_count()) == (3, 12)
    with library.lock_pages(hashes[:1]):
        assert library.remove([hashes[0], hashes[0], "0" * 32]) == 1
    assert (library.page_count(), library.chunk_count(), library.page(hashes[0])) == (2, 8, None)
    assert library.client.count(library.chunks_collection).count == 8
    assert library.clear() == 2
    assert (library.pages(), library.chunk_count(), library.versions(hashes[1])) == ([], 0, [])
    assert library.client.count(library.chunks_collection).count == 0


def test_a_text_takes_the_place_of_another_which_becomes_a_version(library: Library) -> None:
    old, new = draft("a", chunks=6), draft("a", version=1)
    (first,) = commit(library, old)
    assert library.is_current(first.page, old.page.text, "by hand")
    assert not library.is_current(first.page, new.page.text, "by hand")
    assert not library.is_current(first.page, old.page.text, "by another")
    (second,) = commit(library, new)
    assert first.written and second.written and first.page.generation != second.page.generation
    assert second.page.added_at == first.page.added_at < second.page.updated_at
    key = new.page.url_hash
    assert [one.text for one in library.versions(key)] == [old.page.text, new.page.text]
    assert [one.text for one in library.chunks(key)] == [one.text for one in new.chunks]
    assert library.chunk_count() == library.client.count(library.chunks_collection).count == 4
    hits = library.search(dense=old.dense[0], sparse=old.sparse[0], limit=10, prefetch=10)
    assert {hit.passage.text for hit in hits} <= {chunk.text for chunk in new.chunks}
    library.sweep()
    assert library.audit(deep=True) == Audit()


def test_pages_are_found_by_their_other_addresses_and_by_their_text(library: Library) -> None:
    given, other = draft("a"), draft("b")
    commit(library, replace(given, page=replace(given.page, aliases=("https://old.example/a",))))
    commit(library, other, claim="https://claimed.example/")
    key, alias = given.page.url_hash, alias_hash("https://old.example/a")
    found = library.resolve([alias, other.page.url_hash, "0" * 32])
    assert {one: page.url_hash for one, page in found.items()} == {alias: key, other.page.url_hash: other.page.url_hash}
    assert library.find_known([alias, other.page.url_hash, "0" * 32]) == found.keys()
    assert library.stored_pages([alias]) == library.resolve([]) == {} and library.find_known([]) == set()
    assert (page := library.page(alias)) and page.url_hash == key
    assert [page.url_hash for page in library.pages_with_text(given.page.text_hash)] == [key]
    assert library.pages_with_texts([given.page.text_hash, other.page.text_hash]) == sorted(
        library.pages(), key=lambda page: (page.added_at, page.url_hash)
    )
    claimed = alias_hash("https://claimed.example/")
    (claimant,) = library.claimants([claimed])[claimed]
    assert claimant.url_hash == other.page.url_hash
    library.update_record(claimant, claim="")
    assert library.claimants([claimed]) == {}


def test_what_is_left_out_is_kept_and_not_found(library: Library) -> None:
    kept, aside = draft("a"), draft("b")
    _, stored = commit(library, kept, aside)
    key = aside.page.url_hash
    library.set_excluded([key, "0" * 32], True)
    library.sweep()
    found = library.search(dense=aside.dense[0], sparse=aside.sparse[0], limit=10, prefetch=20)
    assert {hit.passage.url_hash for hit in found} == {kept.page.url_hash}
    assert (library.page(key), len(library.chunks(key))) == (stored.page, 4)
    library.update_record(replace(library.stored_pages([key])[key], status="gone", failures=3))
    assert (library.stored_pages([key])[key].status, library.excluded_pages()) == ("gone", {key})
    library.set_excluded([key], False)
    assert library.excluded_pages() == set()
    found = library.search(dense=aside.dense[0], sparse=aside.sparse[0], limit=1, prefetch=20)
    assert [hit.passage.url_hash for hit in found] == [key]


def test_nearly_the_same_text_is_found(library: Library) -> None:
    texts = [
        " ".join(f"word{n % 97 + 100 * seed} and {n * 7 % 89 + 100 * seed}" for n in range(300)) for seed in (1, 2)
    ]
    for number, text in enumerate(texts):
        given = draft(f"p{number}", chunks=0)
        commit(library, replace(given, page=replace(given.page, text=text, text_hash=str(number))))
    signature = sign(texts[1] + " and a few words more at its end")
    ((page, score),) = library.similar_pages(signature)
    assert page.title == "Page p1" and 0.85 <= score < 1.0
    assert library.similar_pages_batch([sign("too short"), signature]) == [[], [(page, score)]]


def test_chunks_come_in_order_with_the_vectors_they_were_given(library: Library) -> None:
    plain = draft("a", chunks=13)
    given = replace(plain, sparse=[*plain.sparse[:12], SparseVector([], [])])
    given.dense[2], given.dense_ok[2] = np.nan, False
    hashes = [content_hash(f"Title\n{chunk.text}") for chunk in given.chunks]
    library.commit_all([library.draft(given.page, replace(given.new, hashes=hashes))])
    chunks = library.chunks(given.page.url_hash)
    assert [one.text for one in chunks] == [given.page.text[one.start : one.end] for one in chunks]
    assert [one.text for one in chunks] == [one.text for one in given.chunks]
    assert {(one.url, one.title, one.site, one.language, one.section) for one in chunks} == {
        (given.page.url, given.page.title, given.page.site, "en", ("Heading",))
    }
    assert library.passages([chunks[2].id, "6f1f6f0e-55a3-5c0b-9f8a-2d1c3f0a7b11", chunks[0].id]) == [
        chunks[2],
        chunks[0],
    ]
    assert len(library.search(dense=given.dense[0], sparse=None, limit=20, prefetch=20)) == 12
    vectors = library.reusable_vectors(given.page.url_hash)
    assert vectors.keys() == {*hashes} and library.reusable_vectors("0" * 32) == {}
    for row, key in enumerate(hashes):
        dense, sparse = vectors[key]
        assert sparse.indices == given.sparse[row].indices
        assert sparse.values == pytest.approx(given.sparse[row].values)
        assert (dense is None) if row == 2 else (dense is not None and np.allclose(dense, given.dense[row], atol=1e-6))


def test_a_search_ranks_fuses_and_is_confined(library: Library) -> None:
    drafts = [draft(f"page-{n}", site=f"s{n % 3}.example") for n in range(8)]
    commit(library, *drafts)
    wanted, depth = drafts[3], {"limit": 5, "prefetch": 32}
    hits = library.search(dense=wanted.dense[1], sparse=wanted.sparse[1], **depth, with_vectors=True)
    assert hits[0].passage.text == wanted.chunks[1].text
    assert hits[0].passage.ranks == {"dense": 1, "sparse": 1, "fused": 1}
    assert hits[0].vector is not None and np.allclose(hits[0].vector, wanted.dense[1], atol=1e-6)
    by_vector = library.search(dense=wanted.dense[1], sparse=None, limit=5, prefetch=3)
    assert set(by_vector[0].passage.ranks) == {"dense", "fused"}
    assert by_vector[0].passage.score == pytest.approx(1.0, abs=1e-3)
    nearest = sorted(
        ((-float(row @ wanted.dense[1]), n, at) for n, one in enumerate(drafts) for at, row in enumerate(one.dense))
    )
    assert [hit.passage.text for hit in by_vector] == [drafts[n].chunks[at].text for _, n, at in nearest[:5]]
    within = Filters(sites=("s1.example",))
    found = library.search(dense=wanted.dense[1], sparse=wanted.sparse[1], **depth, scope=within)
    assert {hit.passage.url_hash for hit in found} <= {one.page.url_hash for one in drafts[1::3]} and len(found) == 5
    assert library.chunk_count(within) == 12
    both = library.search(
        dense=wanted.dense[1],
        sparse=None,
        **depth,
        more=[(drafts[0].dense[0], None)],
        fuse=lambda legs: {one: legs["dense.2"].get(one, -1.0) for leg in legs.values() for one in leg},
    )
    assert both[0].passage.text == drafts[0].chunks[0].text and both[0].passage.ranks["dense.2"] == 1


def test_pages_in_other_languages_have_a_leg_of_their_own(library: Library) -> None:
    drafts = [draft(f"page-{n}") for n in range(8)]
    drafts[5] = replace(drafts[5], page=replace(drafts[5].page, language="zh"))
    commit(library, *drafts)
    query = {"dense": drafts[3].dense[1], "sparse": drafts[3].sparse[1], "limit": 32, "prefetch": 32}
    alone, hits = library.search(**query), library.search(**query, language="en")
    assert not any("across" in hit.passage.ranks for hit in alone)
    across = [hit.passage for hit in hits if "across" in hit.passage.ranks]
    assert across and {one.url_hash for one in across} == {drafts[5].page.url_hash}
    assert all(one.scores["dense"] == one.scores["across"] for one in across)
    none = library.search(**query, language="en", scope=Filters(languages=("en",)))
    assert not any("across" in hit.passage.ranks for hit in none)


def test_langchains_mmr_is_confined_and_sees_what_takes_part(library: Library) -> None:
    drafts = [draft(f"page-{n}", site=f"s{n % 3}.example") for n in range(8)]
    commit(library, *drafts)
    wanted, depth = drafts[3], {"limit": 10, "fetch_k": 20}
    hits = library.search_diverse(wanted.dense[1], **depth, lambda_mult=0.7)
    assert (len({hit.passage.id for hit in hits}), hits[0].passage.text) == (10, wanted.chunks[1].text)
    assert hits[0].passage.ranks == {"dense": 1, "fused": 1}
    assert hits[0].passage.score == hits[0].passage.scores["dense"] == pytest.approx(1.0, abs=1e-3)
    nearest = library.search(dense=wanted.dense[1], sparse=None, limit=10, prefetch=20)
    relevant = library.search_diverse(wanted.dense[1], **depth, lambda_mult=1.0)
    assert [hit.passage.id for hit in relevant] == [hit.passage.id for hit in nearest]
    library.set_excluded([wanted.page.url_hash], True)
    within = library.search_diverse(wanted.dense[1], **depth, lambda_mult=0.7, scope=Filters(sites=("s0.example",)))
    assert {hit.passage.url_hash for hit in within} == {drafts[n].page.url_hash for n in (0, 6)}


def test_rare_terms_weigh_more(store: Store, library: Library) -> None:
    drafts = [draft(f"page-{n}") for n in range(8)]
    commit(library, *drafts)
    terms = [term for one in drafts for row in one.sparse for term in row.indices]
    counts = {term: terms.count(term) for term in {*terms}}
    rare, common = min(counts, key=lambda one: counts[one]), max(counts, key=lambda one: counts[one])
    weights = library.idf([rare, common, 10_000])
    chunks = library.chunk_count()

    def exact(having: int) -> float:
        return float(np.log(1 + (chunks - having + 0.5) / (having + 0.5)))

    if shard_count(store) > 1:  # shards count separately
        assert weights[10_000] >= max(weights.values()) and 0 < weights[common] <= exact(1) >= weights[rare]
        return
    assert weights[10_000] >= weights[rare] > weights[common] > 0
    assert weights[common] == pytest.approx(exact(counts[common]), abs=1e-4)


def shard_count(store: Store) -> int:
    """Return the number of shards of the library's chunks."""
    (name,) = chunks_collections(store.client, f"lib-{store.name}")
    return store.client.get_collection(name).config.params.shard_number or 1


def test_it_is_as_of_another_moment_after_each_change(library: Library) -> None:
    (stand,) = commit(library, draft("a"))
    moments = [library.change_token()]
    assert moments == [library.change_token()]
    library.update_record(replace(stand.page, aliases=("https://old.example/a",)))
    moments.append(library.change_token())
    library.set_excluded([stand.page.url_hash], True)
    moments.append(library.change_token())
    library.remove([stand.page.url_hash])
    moments.append(library.change_token())
    assert len(set(moments)) == 4 or set(moments) == {None}  # others may write to a server


def test_every_method_of_a_library_is_called_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    promised = {
        name
        for name, _ in inspect.getmembers(Library, inspect.isfunction)
        if not name.startswith("_") and name != "vector_store"  # covered by LangChain's own tests
    }
    assert len(promised) >= 25
    assert not [name for name in sorted(promised) if f"library.{name}(" not in here]


def test_a_chunk_brings_the_header_of_the_table_that_it_goes_on_with(library: Library) -> None:
    given = draft("table")
    chunks = [replace(chunk, context="| Boat | Fee |" if chunk.index == 2 else "") for chunk in given.chunks]
    commit(library, replace(given, chunks=chunks))
    found = library.search(dense=given.dense[2], sparse=None, limit=4, prefetch=20)
    assert [hit.passage.header for hit in found if hit.passage.text == chunks[2].text] == ["| Boat | Fee |"]
    assert {hit.passage.header for hit in found} == {"", "| Boat | Fee |"}
