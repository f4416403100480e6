"""Reading ahead: in order, within limits, and without losses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rag.errors import FetchError, IngestError, RagError, StoreError
from rag.ingest.sources import MAX_DELAY, FairQueue, Limits, ReadAhead, delay_before
from rag.types import because


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def ahead() -> Iterator[ReadAhead[str]]:
    one: ReadAhead[str] = ReadAhead(Limits(readers=2, ahead=4, per_host=2, megabytes=1), size=len)
    yield one
    one.close()


def test_groups_take_turns() -> None:
    turns: FairQueue[int] = FairQueue()
    for number in range(4):
        turns.put("a", number)
    turns.put("b", 10)
    turns.put("c", 20)
    assert [turns.pop() for _ in range(6)] == [0, 10, 20, 1, 2, 3]
    assert len(turns) == 0
    turns.put("a", 1)
    assert turns.drop("a") == [1]
    assert turns.drop("a") == []


def test_what_is_read_comes_out_with_its_place(ahead: ReadAhead[str]) -> None:
    for number in range(4):
        ahead.begin("g", number, "", lambda number=number: f"text {number}")  # type: ignore[misc]
    taken = [one for _ in range(4) for one in ahead.take(1, 60)]
    assert sorted((one.position, one.result()) for one in taken) == [(n, f"text {n}") for n in range(4)]
    assert ahead.take(1, 0.01) == []


def test_an_error_comes_out_where_it_is_taken(ahead: ReadAhead[str]) -> None:
    def fails() -> str:
        raise KeyError("x")

    ahead.begin("g", 0, "", fails)
    (taken,) = ahead.take(9, 60)
    with pytest.raises(KeyError):
        taken.result()


def test_room_is_bounded_by_number_host_and_bytes(ahead: ReadAhead[str], gate: threading.Event) -> None:
    def waits() -> str:
        gate.wait(60)
        return "x" * 600_000

    for number in range(2):
        ahead.begin("g", number, "a.example", waits)
    assert not ahead.has_capacity("a.example")
    assert ahead.has_capacity("b.example")
    assert ahead.has_capacity()
    for number in range(2):
        ahead.begin("g", 2 + number, "b.example", waits)
    assert not ahead.has_capacity()
    gate.set()
    assert len(ahead.take(1, 60)) == len(ahead.take(1, 60)) == 1
    rest = ahead.take(9, 60)
    while len(rest) < 2:
        rest += ahead.take(9, 60)
    assert all(one.value for one in rest)
    assert ahead.has_capacity("a.example")


def test_what_is_ready_and_large_leaves_no_room(ahead: ReadAhead[str]) -> None:
    ahead.begin("g", 0, "", lambda: "x" * 1_000_000)
    ahead.begin("g", 1, "", lambda: "")
    while ahead.has_capacity():
        threading.Event().wait(0.01)
    taken = ahead.take(9, 60)
    while len(taken) < 2:  # the small one may be ready later
        taken += ahead.take(9, 60)
    assert ahead.has_capacity()


def test_a_dropped_group_comes_out_no_more(ahead: ReadAhead[str], gate: threading.Event) -> None:
    def waits() -> str:
        gate.wait(60)
        return "x"

    for number in range(4):
        ahead.begin("g", number, "a.example", waits)
    dropped = ahead.drop("g")
    assert len(dropped) >= 2  # two readers may have started
    gate.set()
    rest = [one.position for _ in range(4 - len(dropped)) for one in ahead.take(1, 60)]
    assert set(rest) == set(range(4)) - set(dropped)
    assert ahead.take(1, 0.2) == []


def test_waking_and_closing_end_the_wait(ahead: ReadAhead[str]) -> None:
    ahead.wake()
    assert ahead.take(1, 60) == []
    threading.Timer(0.05, ahead.close).start()
    assert ahead.take(1, 60) == []


def http_error(status: int, **more: Any) -> FetchError:
    return FetchError("http_error", url="u", status=status, **because("server_fault", status=status), **more)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (FetchError("timeout", url="u", seconds=30), True),
        (FetchError("unreachable", url="u", **because("broken_off", host="h")), True),
        (FetchError("unreachable", url="u", **because("refused", host="h")), False),
        (FetchError("unresolved", url="u", host="h"), False),
        *[(http_error(status), True) for status in (408, 429, 500, 502, 503, 504)],
        *[(http_error(status), False) for status in (400, 401, 403, 404, 410, 451)],
        (IngestError("no_text", url="u"), False),
        (StoreError("job_unknown"), False),
    ],
    ids=str,
)
def test_time_outs_and_busy_servers_pass(error: RagError, passes: bool) -> None:
    assert (delay_before(error, 1) is not None) == passes


def test_the_third_failure_counts() -> None:
    delays = [delay_before(http_error(500), tries) for tries in (1, 2, 3)]
    assert delays == [1.0, 4.0, None]


@pytest.mark.parametrize(("asked", "waited"), [(0, 1.0), (7, 7.0), (86_400, MAX_DELAY), (None, 1.0)])
def test_what_the_server_asks_for_counts_within_bounds(asked: int | None, waited: float) -> None:
    assert delay_before(http_error(503, retry_after=asked), 1) == waited
