"""Processor time is attributed to the part that used it, and to no other."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from benchmarks.stages import Stages


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Steps:
    def inner(self) -> None:
        _work(0.04)

    def outer(self) -> None:
        _work(0.02)
        self.inner()
        time.sleep(0.05)

    async def stream(self) -> AsyncIterator[int]:
        try:
            for number in range(2):
                _work(0.02)
                await asyncio.sleep(0.02)
                yield number
        except GeneratorExit:
            self.inner()
            raise

    def broken(self) -> None:
        raise ValueError


PARTS = {"outer": [(Steps, "outer")], "inner": [(Steps, "inner")], "stream": [(Steps, "stream")]}


def test_a_part_does_not_count_the_part_inside_it_nor_waits() -> None:
    stages, steps = Stages(), Steps()
    with stages.patch(PARTS):
        steps.outer()
        thread = threading.Thread(target=steps.inner)
        thread.start()
        thread.join()
    steps.outer()
    seconds = stages.seconds()
    assert seconds["outer"] == pytest.approx(0.02, abs=0.01)
    assert seconds["inner"] == pytest.approx(0.08, abs=0.02)
    assert stages.calls == {"outer": 1, "inner": 2}


def test_a_stream_counts_while_it_runs_and_closes_as_before() -> None:
    async def consume() -> list[int]:
        items = Steps().stream()
        found = [item async for item in items]
        other = Steps().stream()
        found.append(await anext(other))
        await other.aclose()  # type: ignore[attr-defined]
        return found

    stages = Stages()
    with stages.patch(PARTS):
        assert asyncio.run(consume()) == [0, 1, 0]
    seconds = stages.seconds()
    assert seconds["stream"] == pytest.approx(0.06, abs=0.02)
    assert stages.calls["inner"] == 1


def test_what_fails_fails_as_before_and_is_counted() -> None:
    stages = Stages()
    with stages.patch({"broken": [(Steps, "broken")]}), pytest.raises(ValueError):
        Steps().broken()
    assert stages.calls == {"broken": 1}


def test_all_time_is_somewhere() -> None:
    stages = Stages()
    with stages.patch(PARTS):
        Steps().outer()
    seconds = stages.seconds()
    assert sum(seconds.values()) == pytest.approx(time.process_time(), rel=0.05)
