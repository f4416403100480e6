"""The choice of a run whose statements people label."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from streamlit.testing.v1 import AppTest

from rag.evaluation.evaluation import Side

QUEUED: list[Side] = []
RUNS = [
    SimpleNamespace(
        id=name, name="set", state="done", settings=[SimpleNamespace(name="fast")], created_at=f"2026-01-0{day}T08:00"
    )
    for day, name in ((2, "newer"), (1, "older"))
]
EVALUATION = SimpleNamespace(
    agreement=lambda library: {},
    labels=lambda library: [],
    queue_labels=QUEUED.append,
    runs=SimpleNamespace(runs=lambda library: RUNS),
)
APP: Any = SimpleNamespace(evaluation=SimpleNamespace(of=lambda owner: EVALUATION))


def draw() -> None:
    from rag.ui.evaluation.judge import draw_judge
    from tests.ui.evaluation.test_judge import APP

    draw_judge(APP, "main", "en")


def test_each_of_two_runs_of_one_question_set_can_be_selected() -> None:
    page = AppTest.from_function(draw, default_timeout=60).run()
    assert page.selectbox(key="judge-run").options == ["set · Fast · 2026-01-02 08:00", "set · Fast · 2026-01-01 08:00"]
    page.selectbox(key="judge-run").select_index(1).run()
    page.button(key="judge-fetch").click().run()
    assert not page.exception and [Side("older", "fast")] == QUEUED
