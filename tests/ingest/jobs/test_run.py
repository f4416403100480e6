"""Speed and remaining time of a job."""

from __future__ import annotations

from rag.ingest.jobs.worker import WINDOW, JobSpeed


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_late() -> None:
    clock = Clock()
    speed = JobSpeed(clock)
    assert speed.rate("j") is None
    speed.begin("j")
    for _ in range(30):
        clock.now += 1.0
        speed.count_item("j")
    assert speed.rate("j") == 60.0
    assert speed.seconds_left("j", 10) == 10.0
    clock.now += WINDOW - 10
    assert speed.rate("j") == 11.0  # everything done in the last minute, including its first second
    clock.now += 20
    assert speed.rate("j") is None
    assert speed.seconds_left("j", 10) is None


def test_too_few_tell_nothing() -> None:
    clock = Clock()
    speed = JobSpeed(clock)
    speed.begin("j")
    clock.now += 5
    speed.count_item("j")
    speed.count_item("j")
    assert speed.rate("j") is None
    speed.count_item("j")
    assert speed.rate("j") == 36.0
    speed.forget("j")
    assert speed.rate("j") is None
