"""The choice of a forward pass, and that it is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.models.engines import Choice, Rows, choose
from rag.models.measured_cache import recall, remember
from rag.models.tokens import Batch, padded

SAMPLE = padded([[1, 2, 3]], 0, 8)
EXACT: Rows = np.array([[1.0, 0.0]], dtype=np.float32)
WRONG: Rows = np.array([[0.0, 1.0]], dtype=np.float32)


class FakeEngines:
    """Each pass takes its milliseconds and gives its rows."""

    def __init__(self, **passes: tuple[int, Rows]) -> None:
        self.passes = passes
        self.asked: list[str] = []

    def own(self, *, half: bool) -> Callable[[Batch], Rows] | None:
        return self._pass("own_half" if half else "own") if any(key.startswith("own") for key in self.passes) else None

    def loaded(self, *, half: bool) -> Callable[[Batch], Rows]:
        return self._pass("loaded_half" if half else "loaded")

    def close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum() > 0.999)

    def _pass(self, name: str) -> Callable[[Batch], Rows]:
        milliseconds, rows = self.passes[name]

        def run(batch: Batch) -> Rows:
            self.asked.append(name)
            time.sleep(milliseconds / 1000)
            return rows

        return run


FAST, SLOW = 1, 60


@pytest.mark.parametrize(
    ("half", "passes", "chosen"),
    [
        (True, {"own_half": (FAST, EXACT), "own": (FAST, EXACT)}, ("own", True)),
        (True, {"own_half": (FAST, WRONG), "own": (FAST, EXACT)}, ("own", False)),
        (
            True,
            {"own_half": (3 * SLOW, EXACT), "own": (3 * SLOW, EXACT), "loaded_half": (1, EXACT)},
            ("loaded", True),
        ),
        (True, {"own_half": (FAST, WRONG), "own": (FAST, WRONG), "loaded_half": (FAST, WRONG)}, ("loaded", False)),
        (True, {"loaded_half": (FAST, EXACT)}, ("loaded", True)),
        (False, {"own": (FAST, EXACT)}, ("own", False)),
        (False, {}, ("loaded", False)),
    ],
)
def test_the_first_that_is_close_and_faster(half: bool, passes: dict[str, Any], chosen: tuple[str, bool]) -> None:
    engines = FakeEngines(loaded=(SLOW, EXACT), **passes)
    forward, choice = choose(engines, SAMPLE, half=half, run=lambda work: work())
    assert (choice.kind, choice.half) == chosen
    assert (choice.times > 1) is (chosen != ("loaded", False))
    assert (forward(SAMPLE) == EXACT).all()


def test_a_known_choice_is_compared_but_not_timed() -> None:
    known = Choice("own", True, 4.0)
    engines = FakeEngines(loaded=(SLOW, EXACT), own_half=(FAST, EXACT))
    assert choose(engines, SAMPLE, half=True, run=lambda work: work(), known=known)[1] is known
    assert engines.asked == ["loaded", "own_half"]
    spoilt = FakeEngines(loaded=(SLOW, EXACT), own_half=(FAST, WRONG))
    assert choose(spoilt, SAMPLE, half=True, run=lambda work: work(), known=known)[1] == Choice("loaded", False)


def test_a_choice_is_remembered_for_its_model(tmp_path: Path) -> None:
    file = tmp_path / "data" / "passes.json"
    assert recall(file, "a", "cpu") is None
    remember(file, "a", "cpu", Choice("own", True, 5.5))
    remember(file, "b", "cpu", Choice("loaded", False))
    assert recall(file, "a", "cpu") == Choice("own", True, 5.5)
    assert recall(file, "b", "cpu") == Choice("loaded", False)
    assert recall(file, "a", "cuda:0") is None
    assert [path.name for path in file.parent.iterdir()] == ["passes.json"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}'])
def test_a_damaged_memory_is_none(tmp_path: Path, content: str) -> None:
    file = tmp_path / "passes.json"
    file.write_text(content, "utf-8")
    assert recall(file, "a", "cpu") is None
    remember(file, "a", "cpu", Choice("own", False, 2.0))
    assert recall(file, "a", "cpu") == Choice("own", False, 2.0)


def test_odd_rows_and_a_folder_that_takes_no_file_do_no_harm(tmp_path: Path) -> None:
    import json

    file = tmp_path / "passes.json"
    remember(file, "a", "cpu", Choice("own", False, 2.0))
    (key,) = json.loads(file.read_text("utf-8"))
    for row in ({"kind": "other"}, {"kind": "own", "half": "yes", "times": 1}, {"kind": "own", "half": True}, 3):
        file.write_text(json.dumps({key: row}), "utf-8")
        assert recall(file, "a", "cpu") is None
    remember(file / "below a file" / "x.json", "a", "cpu", Choice("own", False))
    remember(None, "a", "cpu", Choice("own", False))
    assert recall(None, "a", "cpu") is None
