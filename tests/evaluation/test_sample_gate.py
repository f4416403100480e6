"""The gate of CI over the sample pages: its baseline fits them, and it can fail."""

from __future__ import annotations

import json

from benchmarks import sample_gate
from benchmarks.samples import samples
from rag.evaluation.comparison import check_limits, read_limits


def test_the_baseline_fits_the_samples_and_a_loss_fails() -> None:
    rows = [json.loads(line) for line in sample_gate.BASELINE.read_text().splitlines()]
    before = {row["id"]: row["scores"] for row in rows}
    assert set(before) == {row["id"] for row in samples().questions}
    limits = read_limits(sample_gate.LIMITS)
    assert all(one.passes for one in check_limits(limits, before, before))
    worse = {key: {**scores, "contains": scores["contains"] and 0.0, "calls": 1.0} for key, scores in before.items()}
    failed = [one.limit.metric for one in check_limits(limits, before, worse) if not one.passes]
    assert failed == ["contains", "calls"]
