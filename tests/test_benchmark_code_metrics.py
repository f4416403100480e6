"""The code metrics of `benchmarks.code_metrics`."""

from __future__ import annotations

import threading

from benchmarks.code_metrics import Profile, cycles, measure_code, profile_tasks
from rag.text import split_sentences


def test_groups_that_import_each_other_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["d", "e"]]
    assert cycles({"a": {"b"}, "b": set()}) == []


def test_code_metrics_are_within_their_limits() -> None:
    counted = measure_code("rag")
    assert counted["cycles"] == counted["cycles with types"] == []
    assert counted["own imports inside functions"] <= 12, "only where a heavy library is behind them"
    assert counted["typed"] == 1.0
    assert counted["functions"]["max"] <= 45
    assert counted["files"] <= 255, "does the new file have a reason to change of its own?"
    assert counted["modules that import"]["streamlit"] > 0


def test_tasks_pass_few_modules() -> None:
    modules = {task: profile["modules"] for task, profile in profile_tasks().items()}
    assert modules["page"] <= 30 and modules["question"] <= 44 and modules["research"] <= 50, modules


def test_a_profile_lists_the_modules_it_passes() -> None:
    road = Profile()
    threading.setprofile(road)
    thread = threading.Thread(target=lambda: list(split_sentences("One. Two.")))
    thread.start()
    thread.join()
    threading.setprofile(None)
    assert "rag.text" in road.report()["modules named"]
