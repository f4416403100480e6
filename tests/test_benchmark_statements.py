"""The benchmark of checks: what it counts, on cases of one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import statements
from benchmarks.statements import Judged, auroc, small_rule

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
    assert rows["small rule"].count("1.000") == rows["rules"].count("1.000") == 3
    assert "0.000 (0.00–0.00)" in rows["judge, 100% right"]


def test_the_order_counts_ties_half() -> None:
    wrong, fine = [Judged(True, 0.2, True), Judged(True, 0.9, False)], [Judged(False, 0.9, False)]
    assert auroc(wrong, fine) == 0.75


def test_the_small_rule_flags_few_words_and_unknown_numbers() -> None:
    assert [flagged for *_, flagged in small_rule(CASES[0])] == [False, True]
