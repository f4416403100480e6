"""The benchmark of answers: each setting answers each question, and yields figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import answers


def test_a_row_for_each_setting(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers.main(["examples", "--data", str(results_folder), "--limit", "2"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[1].partition(",")[0] for row in rows] == ["fast", "fast", "deep", "deep", "classic"]
    assert {row[2] for row in rows} == {"2 of 2"}
    calls = {row[1]: float(row[-1].split()[0]) for row in rows}
    assert calls["fast, quoting"] == 0 < calls["classic, the scripted model"]
    assert all(0 < float(row[4].split()[0]) < 1 for row in rows), "sentences hold an answer, and are not it"
