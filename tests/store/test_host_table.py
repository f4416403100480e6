"""Requests to a host, counted for all processes together."""

from __future__ import annotations

import pytest

from rag.store.sql import host_table
from rag.store.sql.database import Database


def test_a_host_has_as_many_places_as_its_limit(database: Database) -> None:
    hosts = database.hosts
    assert [hosts.take("a:80", 2, 0.0) for _ in range(3)] == [1, 2, None]
    assert hosts.take("b:80", 2, 0.0) == 1
    hosts.free("a:80", 1)
    assert hosts.take("a:80", 2, 0.0) == 1


def test_starts_are_a_delay_apart_but_for_redirects(database: Database) -> None:
    hosts = database.hosts
    assert hosts.take("a:80", 3, 30.0) == 1
    assert hosts.take("a:80", 3, 30.0) is None
    assert hosts.take("a:80", 3, 30.0, at_once=True) == 2
    hosts.pause("b:80", 30.0)
    assert hosts.take("b:80", 1, 0.0) is None


def test_a_place_comes_back_from_a_process_that_died(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_table, "MAX_SECONDS", -1.0)
    assert [database.hosts.take("a:80", 1, 0.0) for _ in range(2)] == [1, 1]


def test_hosts_of_long_ago_are_forgotten(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_table, "_KEEP_SECONDS", -1.0)
    slot = database.hosts.take("a:80", 1, 0.0)
    assert slot is not None
    database.hosts.free("a:80", slot)
    assert not database.rows("SELECT * FROM host_slots")
