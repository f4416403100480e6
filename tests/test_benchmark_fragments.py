"""The benchmark of text fragments can fail."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import fragments


@pytest.mark.parametrize(
    ("boxes", "verdict"),
    [
        ([(10, 10, 90, 20)], ""),
        ([], "no highlight"),
        ([(10, 60, 90, 70)], "wrong place"),
        ([(10, 10, 20, 20)], "highlight too short"),
        ([(10, 10, 90, 20), (10, 40, 90, 55)], "highlight too long"),
    ],
)
def test_highlights_are_judged_by_their_position(boxes: list[tuple[int, int, int, int]], verdict: str) -> None:
    mask = np.zeros((100, 100), dtype=bool)
    for left, top, right, bottom in boxes:
        mask[top:bottom, left:right] = True
    assert fragments.judge_mark(mask, [(10, 10, 90, 20)], 100) == verdict
