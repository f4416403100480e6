"""kill -9 at random moments of a process that commits pages in a loop."""

from __future__ import annotations

import contextlib
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from rag.store.qdrant.commit import MAX_VERSIONS
from rag.store.qdrant.library import Library
from tests.store.support import draft, open_edge
from tests.support.forked_process import start_process

PAGES = 6
KILLS = 10


def commit_in_a_loop(folder: Path, version: int, told: Connection) -> None:
    """Commit pages in a process to be killed, and report each commit."""
    _, library = open_edge(folder)
    told.send("ready")
    while True:
        for page in range(PAGES):
            draft(f"p{page}", chunks=20 + page, version=version).commit(library)
            told.send((page, version))
        version += 1


def run_and_kill(folder: Path, start: int, commits: int, seconds: float) -> dict[int, int]:
    """Commit pages in a child, killed `seconds` after `commits` commits; return the last reported version of each page.

    It waits for commits, so that a busy machine does not kill the child before it has begun.
    """
    child, told = start_process(commit_in_a_loop, folder, start)
    assert told.recv() == "ready"
    reports = [told.recv() for _ in range(commits)]
    time.sleep(seconds)
    child.kill()
    child.join()
    with contextlib.suppress(EOFError):
        while True:
            reports.append(told.recv())
    return dict(reports)


def shown_version(library: Library, page: int) -> int:
    """Return the version of a page that the store shows, -1 for none; fail on any mixture."""
    key = draft(f"p{page}").page.url_hash
    stored = library.page(key)
    if stored is None:
        assert library.chunks(key) == []
        return -1
    version = int(stored.text.rsplit("version ", 1)[1].rstrip("."))
    expected = draft(f"p{page}", chunks=20 + page, version=version)
    assert stored.text == expected.page.text
    assert [p.text for p in library.chunks(key)] == [chunk.text for chunk in expected.chunks]
    return version


def check_versions(library: Library) -> int:
    """Return the number of stored versions; fail if one is missing, incomplete, out of order, or of no page."""
    kept = 0
    for page in library.pages():
        versions = library.versions(page.url_hash)
        assert [one.number for one in versions] == list(range(page.version + 1 - len(versions), page.version + 1))
        assert len(versions) == min(page.version, MAX_VERSIONS)
        numbers = [int(one.text.rsplit("version ", 1)[1].rstrip(".")) for one in versions]
        assert numbers == sorted(set(numbers))
        assert [one.until for one in versions[:-1]] == [one.since for one in versions[1:]]
        kept += len(versions) - 1
    assert library.client.count(library.versions_collection).count == kept
    return kept


@pytest.mark.slow
def test_a_kill_never_leaves_a_page_by_halves(folder: Path) -> None:
    chance = random.Random(20)
    acknowledged = dict.fromkeys(range(PAGES), -1)
    version, killed_amid_writing = 0, 0
    for _ in range(KILLS):
        acknowledged |= run_and_kill(folder, version, chance.randint(1, 3 * PAGES), chance.uniform(0.0, 0.03))
        client, library = open_edge(folder)
        shown = {page: shown_version(library, page) for page in range(PAGES)}
        # A page may be newer than its last report by the one commit in progress, but never older.
        assert all(shown[page] >= acknowledged[page] for page in shown)
        assert library.chunk_count() == sum(20 + page for page in shown if shown[page] >= 0)
        assert library.client.count(library.chunks_collection).count == library.chunk_count()
        kept = check_versions(library)
        killed_amid_writing += max(acknowledged.values()) > version
        version = max(shown.values()) + 1
        again = draft("p0", chunks=20, version=version)
        again.commit(library)
        acknowledged[0] = version
        assert shown_version(library, 0) == version
        client.close()
    assert killed_amid_writing > 0
    assert kept > PAGES
