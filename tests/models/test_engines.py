"""The choice of a forward pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rag.models.engines import Rows, choose
from rag.models.tokens import Batch, padded

SAMPLE = padded([[1, 2, 3]], 0, 8)
EXACT: Rows = np.array([[1.0, 0.0]], dtype=np.float32)
WRONG: Rows = np.array([[0.0, 1.0]], dtype=np.float32)


class FakeEngines:
    """Each pass gives its rows."""

    def __init__(self, **passes: Rows) -> None:
        self.passes = passes
        self.asked: list[str] = []

    def own(self, *, half: bool) -> Callable[[Batch], Rows] | None:
        return self._pass("own_half" if half else "own") if any(key.startswith("own") for key in self.passes) else None

    def loaded(self, *, half: bool) -> Callable[[Batch], Rows]:
        return self._pass("loaded_half" if half else "loaded")

    def close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum() > 0.999)

    def _pass(self, name: str) -> Callable[[Batch], Rows]:
        def run(batch: Batch) -> Rows:
            self.asked.append(name)
            return self.passes[name]

        return run


@pytest.mark.parametrize(
    ("half", "passes", "chosen"),
    [
        (True, {"own_half": EXACT, "own": EXACT}, ("own", True)),
        (True, {"own_half": WRONG, "own": EXACT}, ("own", False)),
        (True, {"own_half": WRONG, "own": WRONG, "loaded_half": EXACT}, ("loaded", True)),
        (True, {"own_half": WRONG, "own": WRONG, "loaded_half": WRONG}, ("loaded", False)),
        (True, {"loaded_half": EXACT}, ("loaded", True)),
        (False, {"own": EXACT}, ("own", False)),
        (False, {}, ("loaded", False)),
    ],
)
def test_the_first_that_is_close(half: bool, passes: dict[str, Rows], chosen: tuple[str, bool]) -> None:
    engines = FakeEngines(loaded=EXACT, **passes)
    forward, choice = choose(engines, SAMPLE, half=half, run=lambda work: work())
    assert (choice.kind, choice.half) == chosen
    assert engines.asked[0] == "loaded"
    assert all(engines.asked.count(name) == 1 for name in engines.asked)
    assert (forward(SAMPLE) == EXACT).all()
