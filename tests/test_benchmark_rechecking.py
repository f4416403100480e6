"""A part of benchmarks/rechecking.py: a small site, read twice."""

from __future__ import annotations

from benchmarks.rechecking import recheck_site
from tests.support.site_server import SiteServer


def test_a_recheck_encodes_and_shows_only_changes() -> None:
    with SiteServer(60, delay=0.0) as site:
        told = recheck_site(site, 0.05)
    expected = [outcome for outcome in site.expected.values() if outcome == "page"]
    assert told["pages"] == told["first"]["added"] == len(expected)
    assert told["first"]["duplicate"] == len(site.paths("duplicate"))
    assert told["changed"] == told["versions"] == told["diffs_right"] == told["again"]["updated"] == 2
    assert told["updated_as_changed"]
    assert told["again"]["unchanged"] == told["pages"] - 2
    assert 0 < told["encoded_share"] <= 0.06
    assert told["encoded_share_of_changed_pages"] <= 0.4
    assert told["bytes_share"] < 0.3
    assert told["same_text_twice"] == 0
