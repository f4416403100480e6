"""A sample of answers is scored after they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.evaluation.evaluation import Evaluation, Sampling
from rag.evaluation.metrics import Judges
from rag.store.sql.database import Database
from rag.types import Answer
from tests.support.evaluating import RuleBasedApp

ANSWER = Answer("When?", "fast", "answered", "It was opened in 1932.", seconds=1.0)


def scored(folder: Path, sampling: Sampling, judges: Callable[[], Judges] = Judges) -> dict[str, Any]:
    database, app, extra = Database(folder / "app.sqlite3"), RuleBasedApp(), dict[str, Any]()
    app.judges = lambda *_: judges()  # type: ignore[method-assign]
    database.conversations.add_extra = extra.__setitem__  # type: ignore[assignment, method-assign]
    evaluation = Evaluation(database, app, None, sampling)  # type: ignore[arg-type]
    for number in range(40):
        evaluation.score_displayed("main", f"{number:032x}", ANSWER)
    evaluation._scorer.shutdown()
    database.close()
    return extra


@pytest.mark.parametrize(("sampling", "count"), [("off", 0), ("sample", 4), ("all", 40)])
def test_which(tmp_path: Path, sampling: Sampling, count: int) -> None:
    found = scored(tmp_path, sampling)
    assert len(found) == count
    assert all("failed" in one["scores"] for one in found.values())


def test_one_that_breaks_breaks_no_other(tmp_path: Path) -> None:
    calls: list[int] = []

    def judges() -> Judges:
        calls.append(1)
        if len(calls) == 2:
            raise ZeroDivisionError
        return Judges()

    assert len(scored(tmp_path, "all", judges)) == 39
