"""Turns at a host: how many at once, how long between, in which order, and what waiting costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.errors import FetchError
from rag.web.fetch import Fetcher
from rag.web.hosts import MAX_PAUSE, Host, HostGates
from tests.support.page_server import PageServer

HOST = ("example.com", 443)
OTHER = ("example.org", 443)


def is_busy(gates: HostGates, host: Host) -> bool:
    """Whether a request to `host` would have to wait now."""
    gate = gates._gates.get(host)
    return bool(gate and gate.is_busy())


class Crowd:
    """Threads that go through gates and note how many were in at once, and in which order they came in."""

    def __init__(self, gates: HostGates, stay: Callable[[], object] = lambda: None) -> None:
        self.gates = gates
        self.stay = stay
        self.inside = 0
        self.most = 0
        self.order: list[int] = []
        self.starts: list[float] = []
        self._lock = threading.Lock()

    def visit(self, number: int) -> None:
        with self.gates.enter(HOST, "https://example.com/"):
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                self.order.append(number)
                self.starts.append(time.monotonic())
            self.stay()
            with self._lock:
                self.inside -= 1


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_than_the_limit_and_no_fewer(limit: int) -> None:
    together = threading.Barrier(limit)  # none leaves before as many as may are in
    crowd = Crowd(HostGates(limit, 0.0), lambda: together.wait(60))
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(crowd.visit, range(5 * limit)))
    assert crowd.most == limit
    assert sorted(crowd.order) == list(range(5 * limit))


def test_hosts_do_not_wait_for_each_other() -> None:
    gates = HostGates(1, 0.0)
    with gates.enter(HOST, "u"), gates.enter(OTHER, "u") as waited, gates.enter(("example.com", 80), "u"):
        assert waited < 5
        assert is_busy(gates, HOST)
    assert not is_busy(gates, HOST)


def test_starts_are_apart() -> None:
    crowd = Crowd(HostGates(4, 0.05))
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(crowd.visit, range(5)))
    assert all(start - began >= 0.05 * place for place, start in enumerate(crowd.starts))


def test_first_come_first_served() -> None:
    gates = HostGates(1, 0.0)
    crowd = Crowd(gates)
    threads = []
    with gates.enter(HOST, "u"):
        for number in range(8):
            threads.append(threading.Thread(target=crowd.visit, args=(number,)))
            threads[-1].start()
            while len(gates._gates[HOST]._queue) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert crowd.order == list(range(8))


def test_a_site_may_ask_for_more_time() -> None:
    gates = HostGates(2, 0.0)
    gates.slow_down(HOST, 0.15)
    gates.slow_down(HOST, 0.01)
    began = time.monotonic()
    with gates.enter(HOST, "u"):
        pass
    with gates.enter(HOST, "u"):
        assert time.monotonic() - began >= 0.15
    gates.pause(HOST, MAX_PAUSE)
    with gates.enter(HOST, "u", redirected=True) as waited:
        assert waited < MAX_PAUSE / 2, "where the server leads needs no delay"


def test_a_busy_server_is_left_alone() -> None:
    gates = HostGates(2, 0.0)
    began = time.monotonic()
    gates.pause(HOST, 1.0)
    assert is_busy(gates, HOST)
    with gates.enter(HOST, "u"):
        assert time.monotonic() - began >= 1.0
    gates.pause(OTHER, 10_000)
    gate = gates._gates[OTHER]
    assert gate._next_start - time.monotonic() <= MAX_PAUSE


def test_waiting_ends_when_the_import_is_stopped() -> None:
    gates = HostGates(1, 0.0)
    stopped = threading.Event()
    threading.Timer(0.1, stopped.set).start()
    with gates.enter(HOST, "u"):
        with pytest.raises(FetchError) as raised, gates.enter(HOST, "u", stopped.is_set):
            raise AssertionError
        assert raised.value.code == "cancelled"
    with gates.enter(HOST, "u") as waited:
        assert waited < 5, "who gave up holds no place"


def test_closing_turns_away_who_waits() -> None:
    gates = HostGates(1, 0.0)
    threading.Timer(0.1, gates.close).start()
    with gates.enter(HOST, "u"), pytest.raises(FetchError), gates.enter(HOST, "u"):
        raise AssertionError


def test_a_failure_gives_the_place_back() -> None:
    gates = HostGates(1, 0.0)
    with pytest.raises(ZeroDivisionError), gates.enter(HOST, "u"):
        raise ZeroDivisionError
    with gates.enter(HOST, "u") as waited:
        assert waited < 5


def test_hosts_are_forgotten_but_those_that_matter() -> None:
    gates = HostGates(1, 0.0)
    gates.slow_down(HOST, 1.0)
    with gates.enter(OTHER, "u"):
        for number in range(2000):
            with gates.enter((f"h{number}.example", 80), "u"):
                pass
        assert len(gates._gates) < 600
        assert HOST in gates._gates
        assert OTHER in gates._gates


@pytest.mark.parametrize("arguments", [(0, 0.1), (2, -1.0)])
def test_what_makes_no_sense(arguments: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        HostGates(*arguments)


def test_waiting_is_not_charged_to_the_deadline() -> None:
    """Four pages of 0.6 s one after the other, with a deadline of 1.7 s each: the last waits 1.8 s."""
    with PageServer() as server:
        urls = [server.add(f"/slow{number}", "<p>Slow</p>", pause=0.6) for number in range(4)]
        fetcher = Fetcher([server.pair], deadline=1.7, gates=HostGates(1, 0.0))
        with ThreadPoolExecutor(4) as pool:
            fetched = list(pool.map(fetcher.fetch, urls))
    assert [one.status for one in fetched] == [200] * 4
    assert max(one.seconds for one in fetched) < 1.7
