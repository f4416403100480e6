"""Every point at which a commit or a removal can stop, and what the next start makes of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.health import sweep
from rag.store.qdrant.library import Library
from tests.store.support import draft, open_edge
from tests.support.stepping import SimulatedCrash

# The writes of a commit, in order: of a page's first text, and of one that replaces a text.
FIRST = ["two batches of chunks", "", "the record", "flags"]
NEXT = ["two batches of chunks", "", "the version", "the record", "the old chunks", "flags", "version settled"]


def stop_before(client: EdgeClient, monkeypatch: pytest.MonkeyPatch, write: int) -> None:
    """Make all writes from number `write` on fail."""
    done: list[str] = []

    def stopping(name: str) -> Any:
        real = getattr(client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(done) >= write:
                raise SimulatedCrash
            done.append(name)
            return real(*args, **kwargs)

        return call

    for name in {"upsert", "set_payload", "delete", "batch_update_points"}:
        monkeypatch.setattr(client, name, stopping(name))


def whole(library: Library, url_hash: str, versions: dict[int, list[str]]) -> int | None:
    """Return the version that the library shows; fail if its parts are of different versions."""
    page = library.page(url_hash)
    texts = [passage.text for passage in library.chunks(url_hash)]
    everything = library.client.scroll(library.chunks_collection, limit=1000)[0]
    assert all((point.payload or {})["metadata"]["active"] for point in everything)
    assert len(everything) == len(texts) == library.chunk_count()
    if page is None:
        assert texts == []
        return None
    version = next(number for number, chunks in versions.items() if chunks == texts)
    assert f"version {version}" in page.text
    return version


def kept_versions(library: Library, url_hash: str) -> list[str]:
    """Return the texts of the page's versions; fail if the store has more of them than it shows."""
    points = library.client.scroll(library.versions_collection, limit=1000)[0]
    shown = library.versions(url_hash)
    assert all((point.payload or {})["settled"] for point in points)
    assert len(points) == max(0, len(shown) - 1)
    return [version.text for version in shown]


@pytest.mark.parametrize(("first", "write"), [*((True, n) for n in range(5)), *((False, n) for n in range(8))])
def test_a_commit_that_stops_anywhere_is_all_or_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, first: bool, write: int
) -> None:
    client, library = open_edge(folder)
    old, new = draft("a", chunks=5), draft("a", chunks=140, version=1)
    if not first:
        old.commit(library)
    writes = FIRST if first else NEXT
    with monkeypatch.context() as patch:
        stop_before(client, patch, write)
        if write < len(writes):
            with pytest.raises(SimulatedCrash):
                new.commit(library)
        else:
            new.commit(library)
    client.close()

    client, library = open_edge(folder)
    versions = {n: [c.text for c in one.chunks] for n, one in enumerate((old, new))}
    before = None if first else 0
    shown = whole(library, new.page.url_hash, versions)
    assert shown == (1 if write > writes.index("the record") else before)
    texts = [old.page.text, new.page.text]
    assert kept_versions(library, new.page.url_hash) == ([] if shown is None else texts[first : shown + 1])
    new.commit(library)
    assert whole(library, new.page.url_hash, versions) == 1
    assert kept_versions(library, new.page.url_hash) == texts[first:]
    client.close()


def test_a_sweep_leaves_alone_what_another_process_may_be_writing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = draft("a")
    with monkeypatch.context() as patch:
        stop_before(library.client, patch, 1)  # type: ignore[arg-type]
        with pytest.raises(SimulatedCrash):
            given.commit(library)

    assert sweep(library._committer, before=time.time() - 600) == 0
    assert library.client.count(library.chunks_collection).count == 4
    assert sweep(library._committer, before=time.time() + 1) == 1
    assert library.client.count(library.chunks_collection).count == 0


def test_a_sweep_keeps_versions_that_another_process_may_be_committing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = draft("a"), draft("a", version=1)
    old.commit(library)
    with monkeypatch.context() as patch:
        stop_before(library.client, patch, 2)  # type: ignore[arg-type]
        with pytest.raises(SimulatedCrash):
            new.commit(library)
    assert library._committer.versions.unsettled_pages(time.time() - 600) == set()
    assert library._committer.versions.unsettled_pages(time.time() + 1) == {old.page.url_hash}
    assert [version.text for version in library.versions(old.page.url_hash)] == [old.page.text]
