"""kill -9 at random moments of a site import."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.import_process import ImportProcess, expected_outcomes, items, outcomes_by_path, stored, timed_run
from tests.support.site_server import SiteServer

PAGES = 40
KILLS = 4


@pytest.mark.slow
def test_a_killed_import_ends_as_one_that_was_not(tmp_path: Path) -> None:
    chance = random.Random(4)
    with SiteServer(PAGES, delay=0.05) as site:
        usual = timed_run(tmp_path / "whole", site)
        whole = stored(tmp_path / "whole")
        killed = 0
        progress = []
        for number in range(KILLS):
            with ImportProcess(tmp_path / "killed", site) as process:
                moment = chance.uniform(0.02, 1.2 * usual / KILLS)
                killed += process.kill_after(moment, starting=number == 1)
            progress.append(sum(item.result is not None for item in items(tmp_path / "killed")))
        with ImportProcess(tmp_path / "killed", site) as process:
            process.wait()
        found = items(tmp_path / "killed")
        assert killed >= 3
        assert 0 < progress[0] < progress[2] < len(found)
        assert outcomes_by_path(found, site) == expected_outcomes(site)
        assert len({item.url for item in found}) == len(found)
        assert all(item.result is not None for item in found)
    after = stored(tmp_path / "killed")
    assert len(after.pages) == after.page_records == len(site.paths("page"))
    assert after.orphaned_chunks == 0
    assert after == whole
