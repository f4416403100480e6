"""kill -9 at random moments of a process that commits pages in a loop."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag.store.library import Library
from tests.store.support import draft, open_edge

ROOT = Path(__file__).resolve().parents[2]
PAGES = 6
KILLS = 10

LOOP = f"""
import sys
from pathlib import Path
from tests.store.support import draft, open_edge
client, library = open_edge(Path(sys.argv[1]))
round_number = int(sys.argv[2])
print("ready", flush=True)
while True:
    for page in range({PAGES}):
        draft(f"p{{page}}", chunks=20 + page, version=round_number).commit(library)
        print(page, round_number, flush=True)
    round_number += 1
"""


def run_and_kill(folder: Path, start: int, seconds: float) -> dict[int, int]:
    """Commit pages in a child until it is killed; the last version of each that it reported."""
    child = subprocess.Popen(
        [sys.executable, "-c", LOOP, str(folder), str(start)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds)
    child.kill()
    reported, _ = child.communicate()
    lines = [line.split() for line in reported.splitlines() if line.count(" ") == 1]
    return {int(page): int(version) for page, version in lines}


def shown_version(library: Library, page: int) -> int:
    """The one version of a page that the store shows, whole; fails on any mixture. -1 for none."""
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


@pytest.mark.slow
def test_a_kill_never_leaves_a_page_by_halves(folder: Path) -> None:
    chance = random.Random(20)
    acknowledged = dict.fromkeys(range(PAGES), -1)
    version, killed_amid_writing = 0, 0
    for _ in range(KILLS):
        acknowledged |= run_and_kill(folder, version, chance.uniform(0.02, 0.6))
        client, library = open_edge(folder)
        shown = {page: shown_version(library, page) for page in range(PAGES)}
        # A page may be newer than its last report, by the one commit that was under way; never older.
        assert all(shown[page] >= acknowledged[page] for page in shown)
        assert library.chunk_count() == sum(20 + page for page in shown if shown[page] >= 0)
        assert library.client.count(library.chunks_collection).count == library.chunk_count()
        killed_amid_writing += max(acknowledged.values()) > version
        version = max(shown.values()) + 1
        again = draft("p0", chunks=20, version=version)
        again.commit(library)
        acknowledged[0] = version
        assert shown_version(library, 0) == version
        client.close()
    assert killed_amid_writing > 0
