"""The command line over sites, re-checks and whole libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag.cli import main
from tests.support.site_server import SiteServer


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, library: str = "main") -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        status = main(["--data-dir", str(tmp_path / "data"), "--library", library, *arguments, "--json"])
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_a_site_comes_in_is_looked_at_again_and_travels(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SiteServer(20, delay=0.0, share=0.0) as site:
        monkeypatch.setenv("FETCH_ALLOW_PRIVATE_HOSTS", "{}:{}".format(*site.pair))
        monkeypatch.setenv("FETCH_DELAY", "0")
        monkeypatch.setenv("FETCH_TIMEOUT", "1")
        _, rows = run("site", site.url("/"), "--by", "crawl", "--pages", "50", "--depth", "9")
        added = [row["url"] for row in rows if row["status"] == "added"]
        assert len(added) == len(site.paths("page"))
        path = next(path for path in reversed(site.paths("page")) if site.url(path) in added)
        site.change([path])
        status, rows = run("recheck")
        assert status == 0
        assert [row["url"] for row in rows if row["status"] == "updated"] == [site.url(path)]
    status, (row,) = run("export", "team.zip")
    assert (status, row["pages"], row["versions"]) == (0, len(added), 1)
    assert run("restore", "team.zip", library="copy")[0] == 0
    assert {row["url"] for row in run("pages", library="copy")[1]} == set(added)


def test_a_site_that_is_not_there_is_said(run: Any) -> None:
    status, rows = run("site", "https://nowhere.invalid/", "--by", "sitemap")
    assert (status, rows) == (1, [])
