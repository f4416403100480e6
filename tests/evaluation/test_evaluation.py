"""A sample of answers is scored after they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from rag.evaluation.evaluation import DisplayedAnswerScorer, Sampling
from rag.evaluation.metrics import Judges
from rag.types import Answer

ANSWER = Answer("When?", "fast", "answered", "It was opened in 1932.", seconds=1.0)


class RecordingTable:
    """A table that records its rows."""

    def __init__(self) -> None:
        self.extra: dict[str, Any] = {}

    def add_extra(self, turn_id: str, extra: Any) -> None:
        self.extra[turn_id] = extra


def scored(which: Sampling, tools: Any = Judges) -> dict[str, Any]:
    table = RecordingTable()
    shown = DisplayedAnswerScorer(table, which)  # type: ignore[arg-type]
    for number in range(40):
        shown.score(f"{number:032x}", ANSWER, tools)
    shown._thread.shutdown()
    return table.extra


@pytest.mark.parametrize(("which", "count"), [("off", 0), ("sample", 4), ("all", 40)])
def test_which(which: Sampling, count: int) -> None:
    found = scored(which)
    assert len(found) == count
    assert all("failed" in one["scores"] for one in found.values())


def test_one_that_breaks_breaks_no_other() -> None:
    calls: list[int] = []

    def tools() -> Judges:
        calls.append(1)
        if len(calls) == 2:
            raise ZeroDivisionError
        return Judges()

    assert len(scored("all", tools)) == 39
