"""Comparison of runs, by scores of which the truth is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rag.errors import ConfigError
from rag.evaluation import comparison
from rag.evaluation.cases import Case
from rag.evaluation.comparison import (
    MetricDifference,
    Scores,
    as_junit,
    check_limits,
    compare,
    figures,
    rank_by_difference,
    read_limits,
    select,
)


def scored(count: int = 120, *, shift: float = 0.0, seed: int = 1, calls: float = 1.0) -> dict[str, dict[str, Any]]:
    """Return scores of questions of equal difficulty with some noise; `shift` makes a system better."""
    hard, luck = random.Random(0), random.Random(seed)
    rows = {}
    for n in range(count):
        level = hard.betavariate(2, 2)
        recall = min(1.0, max(0.0, level + shift + luck.gauss(0, 0.1)))
        rows[str(n)] = {
            "recall@4000": recall,
            "all@4000": float(recall > 0.5),
            "calls": calls,
            "coverage": luck.random(),
            "faithfulness": None if n % 10 else 1.0,
            "seconds": 1 + luck.random(),
        }
    return rows


def of(found: list[MetricDifference]) -> dict[str, MetricDifference]:
    return {one.metric.name: one for one in found}


def test_a_system_that_is_worse_is_called_worse_and_costs_more() -> None:
    (found,) = compare([scored(), scored(shift=-0.1, seed=2, calls=2.0)])
    named = of(found)
    assert named["recall@4000"].difference.verdict == named["calls"].difference.verdict == "worse"
    assert named["recall@4000"].difference.delta.high < 0
    assert named["recall@4000"].p <= 0.05
    assert named["calls"].difference.delta.value == 1.0
    assert (named["recall@4000"].total, named["faithfulness"].difference.n) == (120, 12)
    assert "money" not in named, "nothing could be judged by it"


def test_equal_systems_show_no_difference_and_how_many_questions_would() -> None:
    (found,) = compare([scored(), scored(seed=2)])
    named = of(found)
    assert {one.difference.verdict for one in found} == {"no_difference_shown"}
    assert named["recall@4000"].difference.needed is None or named["recall@4000"].difference.needed > 120
    assert named["calls"].difference.needed is None


def test_holm_counts_all_metrics_of_all_runs() -> None:
    first, second = scored(), scored(shift=-0.025, seed=2)
    (alone,) = compare([first, second], names=["recall@4000"])
    among, _ = compare([first, second, scored(seed=3)])
    assert alone[0].difference.verdict == "worse"
    assert of(among)["recall@4000"].p > alone[0].p
    assert alone[0].p == alone[0].difference.p


def test_what_only_describes_takes_no_part_in_the_family() -> None:
    (found,) = compare([scored(), scored(seed=2)], names=["recall@4000", "coverage"])
    assert of(found)["recall@4000"].p == of(found)["recall@4000"].difference.p


def test_two_halves_of_one_run_are_rarely_called_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PAIRED_ROUNDS", 2000)
    rows = scored(240)
    differ = 0
    for seed in range(40):
        ids = list(rows)
        random.Random(seed).shuffle(ids)
        halves = [{one: rows[one] for one in half} for half in (ids[:120], ids[120:])]
        (found,) = compare(halves)
        differ += of(found)["recall@4000"].difference.verdict != "no_difference_shown"
    assert differ <= 2


def test_two_samples_that_differ_are_told_apart() -> None:
    other = {f"other {key}": row for key, row in scored(shift=-0.3, seed=2).items()}
    ((found,),) = compare([scored(), other], names=["all@4000"])
    assert found.difference.verdict == "worse"


def test_figures_and_questions_by_difference() -> None:
    rows = scored(30)
    named = {one.metric.name: one for one in figures(rows)}
    assert (named["faithfulness"].n, named["faithfulness"].total) == (3, 30)
    assert named["recall@4000"].value.low < named["recall@4000"].value.value < named["recall@4000"].value.high
    other = {key: {**row, "recall@4000": 0.0 if key == "7" else row["recall@4000"]} for key, row in rows.items()}
    first, *rest = rank_by_difference([rows, other], "recall@4000")
    assert (first.case_id, first.delta) == ("7", -rows["7"]["recall@4000"])
    assert len(rest) == 29
    assert all(pair.delta == 0 for pair in rest)


def test_languages_and_tags() -> None:
    cases = [Case("1", "a", "en", tags=("x",)), Case("2", "b", "zh", tags=("x", "y")), Case("3", "c", "zh")]
    assert select(cases) == ["1", "2", "3"]
    assert select(cases, ["zh"]) == ["2", "3"]
    assert select(cases, ["zh"], ["x"]) == ["2"]


class TestGate:
    @pytest.mark.parametrize(
        ("limits", "baseline", "run", "passes"),
        [
            ("recall@4000:-0.01,calls:+0", scored(), scored(), [True, True]),
            ("recall@4000:-0.01", scored(), scored(shift=-0.1, seed=2), [False]),
            ("recall@4000:-0.5", scored(), scored(shift=-0.1, seed=2), [True]),
            ("calls:+0.5,calls:+1", scored(), scored(calls=2.0), [False, True]),
            ("all@4000:0", scored(), scored(seed=5), [True]),
        ],
    )
    def test_it(self, limits: str, baseline: Scores, run: Scores, passes: list[bool]) -> None:
        found = check_limits(read_limits(limits), baseline, run)
        assert [one.passes for one in found] == passes

    @pytest.mark.parametrize(
        "limits",
        ["recall", "recall@4000", "recall@4000:", "recall@4000:0.1", "calls:-1", "coverage:0", "calls:nan", "x:1"],
    )
    def test_misuse(self, limits: str) -> None:
        with pytest.raises(ConfigError):
            read_limits(limits)

    def test_what_cannot_be_judged_does_not_pass(self) -> None:
        with pytest.raises(ConfigError, match="money"):
            check_limits(read_limits("money:+0"), scored(), scored())

    def test_junit(self) -> None:
        found = check_limits(read_limits("recall@4000:0,calls:+0"), scored(), scored(shift=-0.2, seed=2))
        text = as_junit("a <set>", found)
        assert 'tests="2" failures="1"' in text
        assert text.count("<failure") == text.count("<system-out>") == 1
        assert "a &lt;set&gt;" in text


def test_a_run_without_an_answer_yet_has_no_figures_and_no_differences() -> None:
    assert figures({}) == []
    assert compare([{}, scored()]) == [[]] and compare([scored(), {}]) == [[]]
