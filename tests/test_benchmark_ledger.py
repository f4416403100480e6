"""Answers from a ledger are compared with searches, pair by pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import ledger
from benchmarks.datasets import Dataset
from benchmarks.ledger import Result, pairs_of, rows_of


def test_it_runs_on_the_sample_pages(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger.main(["--data", str(results_folder / "none"), "--sets", "examples", "--limit", "5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["without a search"] == "0.00"
    assert len({row["questions"] for row in rows}) == 1 and len(rows) == 3


def test_only_questions_about_one_page_follow_on_each_other() -> None:
    rows = [{"id": n, "evidence": [{"url": url}]} for n, url in enumerate("abba")]
    pairs = pairs_of(Dataset("set", [], [*rows, {"id": 9, "evidence": []}]), None)
    assert [(one["id"], other["id"]) for one, other in pairs] == [(0, 3), (1, 2)]


def test_what_a_ledger_lacks_counts_against_it() -> None:
    asked = [Result(1.0, 0.0, False, True), Result(1.0, 1.0, True, True)]
    rows = {str(row["way"]): row for row in rows_of("set", asked)}
    assert str(rows["one place says enough"]["all@4000"]).startswith("1.000")
    assert str(rows["likelier than not"]["ahead of a search"]).startswith("-0.500")
