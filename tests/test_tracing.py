"""Spans: nesting across tasks and threads, and statuses."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from rag.tracing import Trace, end, span


def _within_a_trace(work: Callable[[], Any]) -> Trace:
    trace = Trace()

    def traced() -> None:
        trace.activate()
        work()

    contextvars.copy_context().run(traced)
    return trace


def test_spans_nest_over_tasks_and_threads() -> None:
    def leg(name: str) -> None:
        with span(name, "leg") as done:
            done.attributes["hits"] = 3

    async def node(name: str) -> None:
        with span(name, "node", part=name):
            await asyncio.to_thread(leg, f"leg of {name}")

    async def both() -> None:
        await asyncio.gather(node("left"), node("right"))

    trace = _within_a_trace(lambda: asyncio.run(both()))
    by_name = {one.name: one for one in trace.spans}
    assert {name: one.parent for name, one in by_name.items()} == {
        "left": "",
        "right": "",
        "leg of left": by_name["left"].id,
        "leg of right": by_name["right"].id,
    }
    assert by_name["left"].attributes == {"part": "left"} and by_name["leg of left"].attributes == {"hits": 3}
    assert {one.status for one in trace.spans} == {"ok"}
    assert all(one.start <= one.end and one.ms >= 0 for one in trace.spans)


def test_a_failure_and_a_stop_are_told_apart() -> None:
    def work() -> None:
        for problem in (ValueError(), asyncio.CancelledError()):
            with pytest.raises(type(problem)), span("one", "node"):
                raise problem

    trace = _within_a_trace(work)
    left = trace.begin("left open", "model")
    trace.close()
    assert [one.status for one in trace.spans] == ["error", "stopped", "stopped"]
    end(left, "ok", tokens=3)
    assert (left.status, left.attributes) == ("ok", {"tokens": 3})


def test_nothing_is_kept_where_nothing_is_traced_and_no_more_than_is_bearable() -> None:
    with span("one", "leg") as lone:
        pass
    assert lone.status == "ok"

    def work() -> None:
        for _ in range(3_000):
            with span("one", "leg"):
                pass

    assert len(_within_a_trace(work).spans) == 2_000
