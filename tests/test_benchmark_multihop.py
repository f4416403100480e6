"""Planned searches are measured on the sample pages, compared with one search and gold sub-questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import multihop
from benchmarks.datasets import Dataset
from benchmarks.multihop import Result, rows_of


def test_it_runs_on_the_sample_pages(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--sets examples --limit 3 --modes one,judge --searches 3 --json"
    assert multihop.main(["--data", str(results_folder / "none"), *options.split()]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["way"] for row in rows] == ["one search", "judge, max. 3"]
    assert [row["questions"] for row in rows] == [3] * 2
    assert rows[0]["searches"] == 1.0 and all(1.0 <= row["searches"] <= 3.0 for row in rows[1:])
    assert "| judge, max. 3 |" in (results_folder / "multihop.md").read_text(encoding="utf-8")


def test_kinds_are_told_apart_and_gains_are_paired() -> None:
    questions = [{"id": "a", "kind": "bridge"}, {"id": "b", "kind": "comparison"}]
    found = {"one search": [Result(1, 0.0), Result(1, 1.0)], "judge": [Result(3, 1.0), Result(1, 1.0)]}
    rows = {(row["set"], row["way"]): row for row in rows_of(Dataset("set", [], questions), found)}
    assert str(rows["set", "judge"]["ahead of one search"]).startswith("+0.500 ")
    assert str(rows["set, bridge", "judge"]["ahead of one search"]).startswith("+1.000 ")
    assert rows["set, comparison", "judge"]["searches"] == 1.0
