"""Figures of many users' answers, and their cost to the server."""

from __future__ import annotations

import os
import sys
import time

import pytest

from benchmarks.serving import ServedApp
from benchmarks.streaming import Round, cpu_of_answers, parts_of, row_of


def test_an_answer_costs_its_share_of_the_servers_processor_time() -> None:
    row = row_of([Round([2.0, 3.0], 0, 0.5), Round([2.0, 4.0], 0, 0.7)], 2.0)
    assert row == {"median_s": 2.5, "p95_s": 4.0, "ratio_p95": 2.0, "dropped": 0, "server_cpu_s": 0.3}


def test_parts_are_those_of_one_answer() -> None:
    rounds = [
        Round([2.0, 3.0], 0, 0.5, {"search": 0.03}, {"search": 2}),
        Round([2.0], 0, 0.2, {"search": 0.03, "rest": 0.3}),
    ]
    assert parts_of(rounds) == {"server_ms": {"rest": 100.0, "search": 20.0}, "calls": {"search": 0.7}}
    assert parts_of([Round([], 1, 0.5)]) == {}


def test_answers_that_never_came_are_counted_and_cost_those_that_did() -> None:
    assert row_of([Round([2.0], 3, 0.5)], 2.0)["dropped"] == 3
    assert row_of([Round([], 1, 0.5)], 2.0)["median_s"] is None
    assert cpu_of_answers([Round([2.0], 3, 0.5)]) == 0.5
    assert cpu_of_answers([Round([], 1, 0.5)]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_processor_time_grows_with_work() -> None:
    served, end = ServedApp("", 0.0, os.getpid()), time.process_time() + 0.05
    began = served.cpu_seconds()
    while time.process_time() < end:
        pass
    assert 0.03 <= served.cpu_seconds() - began < 1.0


def test_of_a_process_that_is_not_there_nothing_is_known() -> None:
    assert ServedApp("", 0.0, -1).cpu_seconds() == 0.0
