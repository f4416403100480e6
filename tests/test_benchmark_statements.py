"""The benchmark of checks: its counts, on cases of one sentence."""

from __future__ import annotations

import json
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import intervals, statements
from benchmarks.statements import DATA, find_cases, judge, measure, rules, small_rule
from rag.checking.rules import lacks_number

SCORE = DATA.parent / "bench" / "statements.py"
FIELDS = ("start", "end", "verdict", "score")
PAGE = "The harbour bridge was opened in 1932. It carries eight lanes of traffic."
TRUE, FALSE = "The harbour bridge was opened in 1932.", "Penguins guard the harbour since 1985."
CASES: list[dict[str, Any]] = [
    {"id": "a", "passages": [PAGE], "text": f"{TRUE} {FALSE}", "bad": 1, "spans": [[39, 47]]},
    {"id": "b", "passages": [PAGE], "text": "It carries traffic on eight lanes.", "bad": 0, "spans": []},
]


def test_a_table_for_each_set_with_the_small_rule_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "statements").mkdir()
    (tmp_path / "statements" / "tiny.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    monkeypatch.setattr(statements, "DATA", tmp_path)
    ((title, table),) = statements.run(right=1.0)
    assert title == "tiny, 2 cases"
    rows = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()[2:]}
    assert rows["small rule"].count("1.000 (") == rows["rules"].count("1.000 (") == 3
    assert "| 1.000 (1.000 to 1.000) | 0.000 (0.000 to 0.000) |" in rows["judge, 100% right"]
    assert "| 0 | 0 |" in rows["… overruled if a number is missing"]


def test_an_overrule_turns_verdicts_right_and_wrong() -> None:
    """A judge that is always wrong says that the years are right."""
    case = {"id": "c", "passages": [PAGE], "text": "Nobody crossed it in 1985.", "bad": 1, "spans": [[21, 25]]}
    alone, over = (measure([case], partial(judge, right=0.0, overrule=one)) for one in (None, lacks_number))
    assert (alone[0].flagged, over[0].flagged) == (False, True)
    assert statements._count_turned(alone, over) == ["1", "0"]
    assert statements._count_turned(over, alone) == ["0", "1"]


def test_the_small_rule_flags_few_words_and_unknown_numbers() -> None:
    assert [verdict for *_, verdict, _ in small_rule(CASES[0])] == ["supported", "unsupported"]


@pytest.mark.skipif(not SCORE.is_file(), reason="the judging script is not beside the project")
@pytest.mark.parametrize("name", ["ragtruth-qa", "ocnli"])
def test_figures_and_the_small_rule_are_those_of_the_judging_script(name: str) -> None:
    judging = runpy.run_path(str(SCORE))
    ((_, cases),) = find_cases(DATA, [name], 30)
    for checker in (small_rule, rules):
        checked = [
            {"id": case["id"], "statements": [dict(zip(FIELDS, row, strict=True)) for row in checker(case)]}
            for case in cases
        ]
        theirs = judging["score"](cases, checked)
        units = measure(cases, checker)
        wrong, weights = [one.wrong for one in units], np.ones((1, len(units)))
        assert len(units) == theirs["n"]
        assert intervals.auroc(weights, wrong, [one.score for one in units]) == pytest.approx(theirs["AUROC"])
        assert intervals.mean_recall(weights, wrong, [one.flagged for one in units]) == pytest.approx(
            theirs["balanced"]
        )
        if checker is small_rule:
            assert theirs == judging["score"](cases, [judging["small_rule"](case) for case in cases])
