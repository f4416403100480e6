"""Several processes write one page at once: it stays intact in any order of their calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from typing import Any, cast

import pytest
from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.qdrant.health import sweep
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import LIBRARIES, LibraryInfo, library_id, match
from rag.store.qdrant.transfer import open_import
from rag.store.values import Audit, Filters
from tests.store.support import DIMENSION, MODEL, Draft, draft
from tests.support.stepping import SteppedClient, Writer

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")


Change = Callable[[Library, list[Draft]], Any]


class SharedLibrary:
    """A library seen by three processes, in which each case has a separate page."""

    def __init__(self) -> None:
        self._pages = count()
        self._open()

    def _open(self) -> None:
        self.memory = QdrantClient(":memory:")
        self.first, self.second, self.reader = (self._process() for _ in range(3))

    def _process(self) -> Library:
        return open_library(cast(QdrantClient, SteppedClient(self.memory)), "main", MODEL, DIMENSION)

    def page(self, *stored: int) -> list[Draft]:
        """Return three texts of a page that no other case has, some of them stored."""
        number = next(self._pages)
        texts = [draft(f"p{number}", chunks=2 + version, version=version) for version in range(3)]
        for one in stored:
            texts[one].commit(self.reader)
        return texts

    def calls(self, change: Change, *stored: int) -> int:
        """Return the number of calls of a change without interference."""
        texts = self.page(*stored)
        return Writer(stepped(self.first), lambda: change(self.first, texts)).finish()

    def check(self, texts: list[Draft], allowed: set[int | None]) -> int | None:
        """Check that the page is intact and found by searches; return the index of its text, None if it has none."""
        key = texts[0].page.url_hash
        page = self.reader.page(key)
        shown = None if page is None else [one.page.text for one in texts].index(page.text)
        assert shown in allowed
        chunks = [passage.text for passage in self.reader.chunks(key)]
        assert chunks == ([] if shown is None else [chunk.text for chunk in texts[shown].chunks])
        found = self.reader.search(
            dense=texts[0].dense[0], sparse=None, limit=9, prefetch=50, scope=Filters(pages=(key,))
        )
        assert {hit.passage.text for hit in found} == (set() if key in self.reader.excluded_pages() else set(chunks))
        return shown

    def check_clean(self) -> None:
        """Check that after a final sweep every chunk belongs to a page and has the right flag."""
        sweep_now(self.reader)
        points = self.memory.scroll(self.reader.chunks_collection, limit=10_000)[0]
        assert len(points) == sum(page.chunks for page in self.reader.pages())
        left_out = self.reader.excluded_pages()
        for data in ((point.payload or {})["metadata"] for point in points):
            assert data["active"] == (data["url_hash"] not in left_out)

    def begin_anew(self) -> None:
        """Check that all is clean, and begin an empty library: a search in memory takes longer with each page."""
        self.check_clean()
        self._open()


def stepped(library: Library) -> SteppedClient:
    return cast(SteppedClient, library.client)


def sweep_now(library: Library) -> None:
    """Sweep as if everything had been written long ago."""
    sweep(library._committer, before=time.time() + 1)


@pytest.fixture
def shared() -> Iterator[SharedLibrary]:
    shared = SharedLibrary()
    yield shared
    shared.check_clean()


CHANGES: dict[str, Change] = {
    "text 1": lambda library, texts: texts[1].commit(library),
    "text 2": lambda library, texts: texts[2].commit(library),
    "removal": lambda library, texts: library.remove([texts[0].page.url_hash]),
    "left out": lambda library, texts: library.set_excluded([texts[0].page.url_hash], True),
    "state": lambda library, texts: library.update_record(texts[0].page),
    "sweep": lambda library, texts: sweep_now(library),
}


def interleave(shared: SharedLibrary, texts: list[Draft], one: Change, other: Change, at: int, then: int) -> None:
    """Let `one` make `at` calls, `other` `then` calls, then both finish, one after the other."""
    left = Writer(stepped(shared.first), lambda: one(shared.first, texts))
    left.step(at)
    right = Writer(stepped(shared.second), lambda: other(shared.second, texts))
    right.step(then)
    shared.check(texts, {None, 0, 1, 2})
    left.finish()
    shared.check(texts, {None, 0, 1, 2})
    right.finish()


@pytest.mark.parametrize("stored", [(), (0,), (1,)], ids=["new", "there", "back to a text of before"])
def test_two_interleaved_commits_of_a_page(shared: SharedLibrary, stored: tuple[int, ...]) -> None:
    one, other = CHANGES["text 1"], CHANGES["text 2"]
    calls = shared.calls(other, *stored)
    for at in range(1, shared.calls(one, *stored)):
        for then in range(calls):
            texts = shared.page(*stored)
            interleave(shared, texts, one, other, at, then)
            assert shared.check(texts, {1, 2}) is not None
        shared.begin_anew()


@pytest.mark.parametrize("other", ["removal", "left out", "state", "sweep"])
def test_a_commit_interleaved_with_another_change(shared: SharedLibrary, other: str) -> None:
    one = CHANGES["text 1"]
    for at in range(1, shared.calls(one, 0)):
        for then in (0, 1, 2, 3, 4):
            texts = shared.page(0)
            interleave(shared, texts, one, CHANGES[other], at, then)
            assert shared.check(texts, {None, 1} if other == "removal" else {1}) is not None or other == "removal"
        shared.begin_anew()


def test_a_writer_that_crashes_anywhere_leaves_nothing_half_done(shared: SharedLibrary) -> None:
    for name, at in product(("text 1", "removal", "left out"), range(1, 10)):
        texts = shared.page(0)
        writer = Writer(stepped(shared.first), lambda name=name, texts=texts: CHANGES[name](shared.first, texts))  # type: ignore[misc]
        writer.step(at)
        writer.stop()
        shared.check(texts, {None, 0, 1})
        shared.check_clean()
        texts[2].commit(shared.second)
        assert shared.check(texts, {2}) == 2


def test_late_and_repeated_writes_change_nothing(shared: SharedLibrary) -> None:
    for name in ("text 1", "removal", "left out"):
        texts = shared.page(0)
        log = stepped(shared.first).log
        log.clear()
        CHANGES[name](shared.first, texts)
        writes = list(log)
        for late in range(len(writes)):
            texts[2].commit(shared.second)
            writes[late]()
            assert shared.check(texts, {2}) == 2
            shared.check_clean()


def test_a_lost_response_is_requested_again(shared: SharedLibrary) -> None:
    """A compare-and-set that may have happened, or may still happen, is repeated unchanged."""
    for applied in (True, False):
        texts = shared.page(0)
        client, lost = stepped(shared.first), iter([True])
        real = client.real.batch_update_points

        def losing(*args: Any, **kwargs: Any) -> Any:
            return real(*args, **kwargs) if applied or not next(lost, False) else None  # noqa: B023

        client.real.batch_update_points = losing  # type: ignore[method-assign]
        try:
            texts[1].commit(shared.first)
        finally:
            client.real.batch_update_points = real  # type: ignore[method-assign]
        assert shared.check(texts, {1}) == 1


def test_the_loser_of_a_race_with_the_same_text_finds_it_unchanged(shared: SharedLibrary) -> None:
    texts = shared.page(0)
    given = texts[1]
    drafts = [shared.first.draft(given.page, given.new)]
    stands: list[Any] = []
    writer = Writer(stepped(shared.first), lambda: stands.extend(shared.first.commit_all(drafts)))
    writer.step(2)
    stored = given.commit(shared.second)
    writer.finish()
    assert [(one.written, one.page.generation) for one in stands] == [(False, stored.generation)]


def test_two_processes_that_create_a_library_at_once_share_it(shared: SharedLibrary) -> None:
    def make(name: str) -> Any:
        return lambda library: open_library(library.client, name, MODEL, DIMENSION)

    whole = Writer(stepped(shared.first), lambda: make("whole")(shared.first)).finish()
    for at in range(1, whole, 3):
        writer = Writer(stepped(shared.first), lambda at=at: make(f"n{at}")(shared.first))  # type: ignore[misc]
        writer.step(at)
        other = make(f"n{at}")(shared.second)
        writer.finish()
        draft("a").commit(other)
        assert make(f"n{at}")(shared.reader).page_count() == 1


def test_a_library_is_restored_by_one_process_at_a_time(shared: SharedLibrary) -> None:
    info = LibraryInfo("restored", MODEL, DIMENSION)
    with pytest.raises(StoreError, match="is restoring"), open_import(shared.first.client, info) as (first, alive):
        draft("a").commit(first)
        present = partial(open_library, create=False)
        for attempt in (open_library, present, lambda client, *_: open_import(client, info).__enter__()):
            with pytest.raises(StoreError, match="is restoring"):
                attempt(shared.second.client, "restored", MODEL, DIMENSION)
        alive()
        shared.memory.set_payload(LIBRARIES, {"seen": time.time() - 1000}, [library_id("restored")])
        other = open_library(shared.second.client, "restored", MODEL, DIMENSION)
        draft("b").commit(other)
    assert [page.title for page in other.pages()] == ["Page b"]


def test_a_page_without_chunks_is_repaired_by_its_next_import(shared: SharedLibrary) -> None:
    texts, well = shared.page(0), shared.page(1)
    key = texts[0].page.url_hash
    gone = models.Filter(
        must=[
            match("metadata.url_hash", key),
            models.FieldCondition(key="metadata.start", match=models.MatchValue(value=0)),
        ]
    )
    shared.memory.delete(shared.reader.chunks_collection, models.FilterSelector(filter=gone))
    library = open_library(shared.first.client, "main", MODEL, DIMENSION)
    page = library.page(key)
    assert page is not None and (page.chunks, page.text) == (0, texts[0].page.text)
    assert not library.is_current(page, page.text, "")
    assert library.audit(deep=True) == Audit()
    texts[0].commit(library)
    assert (shared.check(texts, {0}), shared.check(well, {1})) == (0, 1)


def test_orphaned_chunks_are_found(shared: SharedLibrary) -> None:
    texts = shared.page(0)
    log = stepped(shared.first).log
    log.clear()
    texts[1].commit(shared.first)
    writes = list(log)
    texts[2].commit(shared.second)
    for late in writes:
        late()
    assert shared.first.audit(deep=True).extra == 1
    assert shared.check(texts, {2}) == 2
