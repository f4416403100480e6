from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rag.graphs.research.limits import stagnation


@pytest.mark.parametrize(
    ("gains", "told"), [([0], ""), ([0, 0], "stagnant"), ([2, 0, 0], "stagnant"), ([0, 1], ""), ([0, 0, 1], "")]
)
def test_two_rounds_that_met_no_new_aspect_are_enough(gains: Sequence[int], told: str) -> None:
    state: Any = {"ledger": {}}
    context: Any = SimpleNamespace(model=object())
    assert stagnation(state, gains, (), context) == told
