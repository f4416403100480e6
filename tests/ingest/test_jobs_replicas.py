"""Three processes import one site into one library; some are killed, and one stalls longer than its lease."""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.import_process import ImportProcess, expected_outcomes, items, outcomes_by_path, stored, timed_run
from tests.support.qdrant_server import QdrantServer
from tests.support.site_server import SiteServer

PAGES = 40
LEASE = 1.0


@pytest.mark.slow
def test_three_workers_that_die_and_stall_import_what_one_does(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    with ExitStack() as stack:
        site = stack.enter_context(SiteServer(PAGES, delay=0.05))
        server = stack.enter_context(QdrantServer(tmp_path / "server"))
        timed_run(tmp_path / "whole", site)

        def begin() -> ImportProcess:
            return stack.enter_context(ImportProcess(tmp_path, site, server.url, postgres_url, LEASE))

        first = begin()
        first.wait_for_first_page()
        workers = [begin(), begin()]
        first.suspend()  # it owns the job, and wakes up after another process has taken it
        threading.Event().wait(2 * LEASE)
        first.resume()
        for worker in workers:
            worker.kill_after(chance.uniform(0.2, 0.8), starting=True)
            begin()
        last = begin()
        last.wait_for_first_page()
        last.wait_until_done()
        found = items(tmp_path, postgres_url)
        assert all(item.result is not None for item in found)
        assert len({item.url for item in found}) == len(found)
        assert outcomes_by_path(found, site) == expected_outcomes(site)
        later = time.time() + 3600  # dead processes' leftovers are swept once they are old enough
        monkeypatch.setattr("rag.store.qdrant.library.time", SimpleNamespace(time=lambda: later))
        after = stored(tmp_path, server.url)
        assert after.orphaned_chunks == 0 and after.page_records == len(site.paths("page"))
        assert after == stored(tmp_path / "whole")
