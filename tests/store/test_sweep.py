"""Every place at which a commit or a removal can stop, and what the next start makes of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from rag.store.commit import Committer
from rag.store.edge.client import EdgeClient
from rag.store.library import Library
from rag.store.sweep import sweep
from tests.store.support import draft, open_edge

# The calls of a commit that change something, in their order.
WRITES = ["upsert", "upsert", "upsert", "set_payload", "delete", "set_payload"]


class Stopped(BaseException):
    """Stands for the end of the process."""


def stop_before(client: EdgeClient, monkeypatch: pytest.MonkeyPatch, write: int) -> None:
    """The write of this number, and all after it, do not happen."""
    done: list[str] = []

    def stopping(name: str) -> Any:
        real = getattr(client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(done) >= write:
                raise Stopped
            done.append(name)
            return real(*args, **kwargs)

        return call

    for name in {"upsert", "set_payload", "delete"}:
        monkeypatch.setattr(client, name, stopping(name))


def whole(library: Library, url_hash: str, versions: dict[int, list[str]]) -> int | None:
    """The version that the library shows, from every side; fails when it shows none or two."""
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


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("write", range(len(WRITES) + 1))
def test_a_commit_that_stops_anywhere_is_all_or_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, write: int, first: bool
) -> None:
    client, library = open_edge(folder)
    old, new = draft("a", chunks=5), draft("a", chunks=140, version=1)
    if not first:
        old.commit(library)
    with monkeypatch.context() as patch:
        stop_before(client, patch, write)
        if write < len(WRITES):
            with pytest.raises(Stopped):
                new.commit(library)
        else:
            new.commit(library)
    client.close()

    client, library = open_edge(folder)
    versions = {n: [c.text for c in one.chunks] for n, one in enumerate((old, new))}
    before = None if first else 0
    assert whole(library, new.page.url_hash, versions) == (1 if write >= 3 else before)
    new.commit(library)
    assert whole(library, new.page.url_hash, versions) == 1
    client.close()


@pytest.mark.parametrize("write", range(4))
def test_a_removal_that_stops_anywhere_is_all_or_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    client, library = open_edge(folder)
    given = draft("a")
    given.commit(library)
    with monkeypatch.context() as patch:
        stop_before(client, patch, write)
        if write < 3:
            with pytest.raises(Stopped):
                library.remove([given.page.url_hash])
        else:
            library.remove([given.page.url_hash])
    client.close()

    client, library = open_edge(folder)
    versions = {0: [chunk.text for chunk in given.chunks]}
    assert whole(library, given.page.url_hash, versions) == (0 if write < 2 else None)
    client.close()


def test_a_sweep_leaves_alone_what_another_process_may_be_writing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = draft("a")
    with monkeypatch.context() as patch:
        stop_before(library.client, patch, 1)  # type: ignore[arg-type]
        with pytest.raises(Stopped):
            given.commit(library)

    def swept(before: float | None) -> int:
        names = (library.pages_collection, library.chunks_collection)
        committer = Committer(library.client, *names, library._locks)
        return sweep(library.client, *names, committer, before=before)

    assert swept(time.time() - 600) == 0
    assert library.client.count(library.chunks_collection).count == 4
    assert swept(time.time() + 1) == 1
    assert library.client.count(library.chunks_collection).count == 0
