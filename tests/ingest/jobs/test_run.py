"""Speed and remaining time of a job."""

from __future__ import annotations

from rag.ingest.jobs.run import WINDOW, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_late() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.rate("j") is None
    pace.begin("j")
    for _ in range(30):
        clock.now += 1.0
        pace.note("j")
    assert pace.rate("j") == 60.0
    assert pace.seconds_left("j", 10) == 10.0
    clock.now += WINDOW - 10
    assert pace.rate("j") == 11.0  # everything done in the last minute, including its first second
    clock.now += 20
    assert pace.rate("j") is None
    assert pace.seconds_left("j", 10) is None


def test_too_few_tell_nothing() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.begin("j")
    clock.now += 5
    pace.note("j")
    pace.note("j")
    assert pace.rate("j") is None
    pace.note("j")
    assert pace.rate("j") == 36.0
    pace.forget("j")
    assert pace.rate("j") is None
