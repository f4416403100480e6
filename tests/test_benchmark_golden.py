"""The comparison of recorded answers, and the mutants that measure the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import golden, mutants
from benchmarks.golden import differences
from benchmarks.mutants import find_mutants, is_detected

SOURCE = "def grade(points: int) -> bool:\n    return points > 4 and not points % 2\n"


def test_answers_are_recorded_once_and_then_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    command = [str(file), "--data", str(tmp_path), "--sets", "examples", "--modes", "fast", "--limit", "2"]
    assert golden.main(command) == 0
    assert golden.main(command) == 0
    assert "0 of 2 answers differ" in capsys.readouterr().out
    file.write_text(file.read_text("utf-8").replace('"answered"', '"caveat"', 1), "utf-8")
    assert golden.main(command) == 1


def test_an_answer_that_was_not_recorded_differs() -> None:
    row = {"set": "tea", "mode": "fast", "question": "How hot?", "outcome": "answered", "text": "80 °C [1]"}
    assert differences([row], [row]) == []
    assert "not recorded" in differences([], [row])[0]


def test_a_mutant_changes_one_expression() -> None:
    found = {mutant.key[2:]: mutant.source for mutant in find_mutants("grade.py", SOURCE)}
    assert {after for _, after in found} == {"points > 4 or not points % 2", "points >= 4", "5", "points % 2", "3"}
    assert "return (points >= 4) and not" in found["points > 4", "points >= 4"]


@pytest.mark.parametrize(("points", "is_detected_by"), [(4, True), (6, False)])
def test_a_mutant_is_detected_if_a_test_fails(tmp_path: Path, points: int, is_detected_by: bool) -> None:
    (tmp_path / "grade.py").write_text(SOURCE)
    check = f"from grade import grade\n\n\ndef test_grade():\n    assert grade({points}) is {points > 4}\n"
    (tmp_path / "test_grade.py").write_text(check)
    mutant = next(one for one in find_mutants("grade.py", SOURCE) if one.after == "points >= 4")
    assert is_detected(mutant, tmp_path, tmp_path) is is_detected_by
    assert (tmp_path / "grade.py").read_text() == SOURCE


def test_the_sample_is_drawn_from_the_packages_named() -> None:
    sample = mutants.draw_mutants(["rag/routing"], 5, seed=1)
    assert [one.key for one in sample] == [one.key for one in mutants.draw_mutants(["rag/routing"], 5, seed=1)]
    assert len(sample) == 5 and all(one.path.startswith("rag/routing/") for one in sample)
