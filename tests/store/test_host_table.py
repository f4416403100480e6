"""Requests to a host, counted across all processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rag.errors import FetchError
from rag.store.sql import small_tables
from rag.store.sql.database import Database
from rag.store.sql.small_tables import SharedRateLimiter
from rag.web.connections import Host, RateLimiter


def test_a_host_has_as_many_places_as_its_limit(database: Database) -> None:
    hosts = database.hosts
    assert [hosts.acquire("a:80", 2, 0.0) for _ in range(3)] == [1, 2, None]
    assert hosts.acquire("b:80", 2, 0.0) == 1
    hosts.release("a:80", 1)
    assert hosts.acquire("a:80", 2, 0.0) == 1


def test_starts_are_a_delay_apart_but_for_redirects(database: Database) -> None:
    hosts = database.hosts
    assert hosts.acquire("a:80", 3, 30.0) == 1
    assert hosts.acquire("a:80", 3, 30.0) is None
    assert hosts.acquire("a:80", 3, 30.0, ignore_delay=True) == 2
    hosts.pause("b:80", 30.0)
    assert hosts.acquire("b:80", 1, 0.0) is None


def test_a_place_comes_back_from_a_process_that_died(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "_MAX_REQUEST_SECONDS", -1.0)
    assert [database.hosts.acquire("a:80", 1, 0.0) for _ in range(2)] == [1, 1]


def test_hosts_of_long_ago_are_forgotten(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "_KEEP_SLOT_SECONDS", -1.0)
    slot = database.hosts.acquire("a:80", 1, 0.0)
    assert slot is not None
    database.hosts.release("a:80", slot)
    assert not database.rows("SELECT * FROM host_slots")


HOST: Host = ("a.example", 80)
URL = "http://a.example/"


@pytest.fixture
def databases(database_location: Path | str) -> Iterator[list[Database]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Database(database_location))) for _ in range(2)]


def test_they_keep_one_limit_together(databases: list[Database]) -> None:
    limiters = [SharedRateLimiter(one.hosts, 2, 0.0) for one in databases]
    lock, under_way, most = threading.Lock(), 0, 0

    def request(number: int) -> None:
        nonlocal under_way, most
        with limiters[number % 2].slot(HOST, URL):
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.02)
            with lock:
                under_way -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(request, range(20)))
    assert most == 2


def test_their_requests_start_apart(databases: list[Database]) -> None:
    limiters: list[RateLimiter] = [SharedRateLimiter(one.hosts, 4, 0.2) for one in databases]
    starts: list[float] = []

    def request(number: int) -> None:
        with limiters[number % 2].slot(HOST, URL):
            starts.append(time.monotonic())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(request, range(4)))
    starts.sort()
    assert starts[-1] - starts[0] > 0.5


def test_a_server_that_asks_one_for_a_pause_has_it_from_both(databases: list[Database]) -> None:
    one, other = (SharedRateLimiter(database.hosts, 2, 0.0) for database in databases)
    one.pause(HOST, 5.0)
    waiting = threading.Event()

    def gives_up() -> bool:
        waiting.set()
        return True

    with pytest.raises(FetchError) as raised, other.slot(HOST, URL, gives_up):
        raise AssertionError("it did not wait")
    assert raised.value.code == "cancelled" and waiting.is_set()
