"""The choice of a forward pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from rag.models.transformer import Batch, CallBatcher, Rows, choose, pad_rows

SAMPLE = pad_rows([[1, 2, 3]], 0, 8)
EXACT: Rows = np.array([[1.0, 0.0]], dtype=np.float32)
WRONG: Rows = np.array([[0.0, 1.0]], dtype=np.float32)


class FakeEngines:
    """Engines whose passes return fixed rows."""

    def __init__(self, **passes: Rows) -> None:
        self.passes = passes
        self.asked: list[str] = []

    def native_pass(self, *, half: bool) -> Callable[[Batch], Rows] | None:
        return (
            self._pass("native_half" if half else "native")
            if any(key.startswith("native") for key in self.passes)
            else None
        )

    def loaded_pass(self, *, half: bool) -> Callable[[Batch], Rows]:
        return self._pass("loaded_half" if half else "loaded")

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum() > 0.999)

    def _pass(self, name: str) -> Callable[[Batch], Rows]:
        def run(batch: Batch) -> Rows:
            self.asked.append(name)
            return self.passes[name]

        return run


@pytest.mark.parametrize(
    ("half", "passes", "chosen"),
    [
        (True, {"native_half": EXACT, "native": EXACT}, ("native", True)),
        (True, {"native_half": WRONG, "native": EXACT}, ("native", False)),
        (True, {"native_half": WRONG, "native": WRONG, "loaded_half": EXACT}, ("loaded", True)),
        (True, {"native_half": WRONG, "native": WRONG, "loaded_half": WRONG}, ("loaded", False)),
        (True, {"loaded_half": EXACT}, ("loaded", True)),
        (False, {"native": EXACT}, ("native", False)),
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


def test_what_comes_in_while_the_thread_is_busy_goes_together() -> None:
    seen: list[list[int]] = []
    opened: list[Future[Sequence[int]]] = []
    began, go_on = threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int]:
        seen.append(list(items))
        began.set()
        go_on.wait(60)
        return [item * 10 for item in items]

    def submit(group: Callable[[], Sequence[int]]) -> Future[Sequence[int]]:
        opened.append(thread.submit(group))
        return opened[-1]

    with ThreadPoolExecutor(1) as thread, ThreadPoolExecutor(12) as callers:
        together = CallBatcher(work, submit, max_items=8)
        first = callers.submit(together.process, 0)
        assert began.wait(60)
        rest = [callers.submit(together.process, number) for number in range(1, 12)]
        while len(opened) < 3 or together._open is None or len(together._open.items) < 3:
            time.sleep(0.001)  # until all eleven are in two groups, the second of three
        go_on.set()
        assert [future.result() for future in (first, *rest)] == [number * 10 for number in range(12)]
    assert [len(items) for items in seen] == [1, 8, 3]


def test_one_after_the_other_each_goes_alone() -> None:
    seen: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        seen.append(len(items))
        return list(items)

    with ThreadPoolExecutor(1) as thread:
        together = CallBatcher(work, thread.submit, max_items=8)
        assert [together.process(number) for number in range(3)] == [0, 1, 2]
    assert seen == [1, 1, 1]


def test_what_goes_wrong_is_told_and_forgotten() -> None:
    def work(items: Sequence[int]) -> list[float]:
        return [1 / item for item in items]

    with ThreadPoolExecutor(1) as thread:
        together = CallBatcher(work, thread.submit, max_items=8)
        with pytest.raises(ZeroDivisionError):
            together.process(0)
        assert together.process(2) == 0.5
