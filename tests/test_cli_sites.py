"""The command line with sites, re-checks, whole libraries, and users' feedback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag.cli import main
from rag.runs.run import Question
from tests.support.apps import open_app
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
        monkeypatch.setattr("rag.ingest.sources._DELAYS", (0.01, 0.02))
        _, rows = run("site", site.url("/"), "--by", "crawl", "--pages", "50", "--depth", "9")
        # A page added under another address yields to the one that it names: both rows report it.
        added = {row["url"] for row in run("pages")[1]}
        assert added <= {row["url"] for row in rows if row["status"] == "added"}
        assert len(added) == len(site.paths("page"))
        path = next(path for path in reversed(site.paths("page")) if site.url(path) in added)
        site.change([path])
        status, rows = run("recheck")
        assert status == 0
        assert [row["url"] for row in rows if row["status"] == "updated"] == [site.url(path)]
    status, (row,) = run("export", "team.zip")
    assert (status, row["pages"], row["versions"]) == (0, len(added), 1)
    assert run("restore", "team.zip", library="copy")[0] == 0
    assert {row["url"] for row in run("pages", library="copy")[1]} == added


def test_what_people_thought_of_answers_becomes_test_cases(run: Any, tmp_path: Path) -> None:
    (tmp_path / "pages.jsonl").write_text('{"url": "https://a.example/1", "title": "Lamp", "text": "It is red."}')
    assert run("import", "pages.jsonl")[0] == 0
    app = open_app(tmp_path / "data")
    for owner in ("ann", "bob"):
        asked = app.converse(Question("What colour is the lamp?", ("main",)), owner=owner)
        app.wait(asked.run_id, 60)
        app.feedback.rate(asked.turn_id, -1, owner=owner, correction="red")
    app.close()
    status, (row,) = run("feedback", "set")
    assert (status, row["questions"]) == (0, 2)
    rows = [json.loads(line) for line in (tmp_path / "set" / "questions.jsonl").read_text().splitlines()]
    assert [one["answers"] for one in rows] == [["red"], ["red"]]
    (page,) = (tmp_path / "set" / "pages.jsonl").read_text().splitlines()
    assert json.loads(page)["text"] == "It is red."
    (tmp_path / "file").write_text("")
    assert run("feedback", "file")[0] == 2


def test_a_site_that_is_not_there_is_said(run: Any) -> None:
    status, rows = run("site", "https://nowhere.invalid/", "--by", "sitemap")
    assert (status, rows) == (1, [])
