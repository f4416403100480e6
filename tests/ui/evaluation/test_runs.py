"""A run with its figures."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rag.evaluation.comparison import Figure
from rag.evaluation.metrics import METRICS
from rag.evaluation.statistics import Estimate
from rag.ui.kit import session

RUN = SimpleNamespace(
    id="run",
    name="set",
    state="done",
    done=4,
    notice=None,
    settings=[SimpleNamespace(name="fast")],
    created_at="2026-01-02T08:00",
)
EVALUATION = SimpleNamespace(
    calibration=lambda side: [],
    export=lambda *_: "",
    figures=lambda side: [Figure(METRICS["contains"], 4, 4, Estimate(1.0, 1.0, 1.0))],
    main_figures=lambda run_id: {"fast": {"contains": 1.0, "seconds": 0.5, "failed": 0.0}},
    runs=SimpleNamespace(
        runs=lambda library: [RUN],
        run=lambda run_id: RUN,
        **dict.fromkeys(("cancel", "delete", "pause", "resume"), print),
    ),
    scores_over_time=lambda library: [],
    sets=SimpleNamespace(sets=lambda library: [SimpleNamespace(id="set", name="set", cases=4, drafts=0)]),
    withheld_metrics=lambda sides: [],
)
APP: Any = SimpleNamespace(
    chats=SimpleNamespace(of_settings=lambda: None),
    evaluation=SimpleNamespace(of=lambda owner: EVALUATION),
    models=SimpleNamespace(reranker=None),
)


def draw() -> None:
    from rag.ui.evaluation.runs import draw_runs
    from tests.ui.evaluation.test_runs import APP

    draw_runs(APP, "main", "en")


def test_figures_have_three_decimals_in_the_summary_and_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "browser_id", lambda: "a-browser")
    page = AppTest.from_function(draw, default_timeout=60).run()
    assert not page.exception
    assert ":gray[Fast:] correct answers 1.000 · 500 ms per answer" in [one.value for one in page.markdown]
    assert page.dataframe[0].value.loc[0, "interval"] == "1.000 – 1.000"
    assert json.loads(page.dataframe[0].proto.columns)["value"]["type_config"]["format"] == "%.3f"
