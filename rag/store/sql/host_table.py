"""Requests to web servers, counted and limited for all processes that share the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rag.errors import FetchError
from rag.store.sql.table import CLOCK, Table
from rag.web.connections import MAX_PAUSE, Host, HostGates

MAX_SECONDS: Final = 120.0
"""Seconds after which a request counts as finished, as its process may be dead."""
_START_SLOT: Final = 0
"""The slot with the time of the next start."""
_KEEP_SECONDS: Final = 3600.0


class HostTable(Table):
    """Slots of each host, from 1: a request takes one and frees it when done. Times are the database's."""

    def take(self, host: str, limit: int, delay: float, *, at_once: bool = False) -> int | None:
        """Take one of `limit` slots; return None while all are taken, or until `delay` seconds after the last start.

        A request that starts `at_once` only waits for a slot.
        """
        with self._file.transaction(alone=f"host {host}") as db:
            statement = f"SELECT slot, free_at > {CLOCK} AS taken FROM host_slots WHERE host = ?"
            occupied = {row["slot"] for row in db.execute(statement, (host,)).fetchall() if row["taken"]}
            slot = next((number for number in range(1, limit + 1) if number not in occupied), None)
            if slot is None or (_START_SLOT in occupied and not at_once):
                return None
            self._set(host, slot, MAX_SECONDS)
            self._set(host, _START_SLOT, delay)
            return slot

    def free(self, host: str, slot: int) -> None:
        with self._file.transaction() as db:
            db.execute("DELETE FROM host_slots WHERE host = ? AND slot = ?", (host, slot))
            db.execute(f"DELETE FROM host_slots WHERE free_at < {CLOCK} - ?", (_KEEP_SECONDS,))

    def pause(self, host: str, seconds: float) -> None:
        """Start no request to `host` for this many seconds."""
        self._set(host, _START_SLOT, seconds)

    def _set(self, host: str, slot: int, seconds: float) -> None:
        self._file.write(
            f"INSERT INTO host_slots (host, slot, free_at) VALUES (?, ?, {CLOCK} + ?) ON CONFLICT (host, slot)"
            " DO UPDATE SET free_at = excluded.free_at WHERE excluded.free_at > host_slots.free_at",
            *(host, slot, seconds),
        )


_POLL_SECONDS: Final = 0.05


class SharedHostGates(HostGates):
    """Gates in which a request waits its turn in this process first, and then among all: limits and delays are shared.

    Raises StoreError when the database fails.
    """

    def __init__(self, hosts: HostTable, limit: int, delay: float) -> None:
        super().__init__(limit, delay)
        self._hosts = hosts

    @contextmanager
    def enter(
        self, host: Host, url: str, stopped: Callable[[], bool] = lambda: False, *, redirected: bool = False
    ) -> Iterator[float]:
        with super().enter(host, url, stopped, redirected=redirected) as waited:
            began, name, delay = time.monotonic(), _name(host), self.delay_of(host)
            while (slot := self._hosts.take(name, self.limit, delay, at_once=redirected)) is None:
                if self.is_closed or stopped():
                    raise FetchError("cancelled", url=url)
                time.sleep(_POLL_SECONDS)
            try:
                yield waited + time.monotonic() - began
            finally:
                self._hosts.free(name, slot)

    def pause(self, host: Host, seconds: float) -> None:
        super().pause(host, seconds)
        self._hosts.pause(_name(host), min(seconds, MAX_PAUSE))


def _name(host: Host) -> str:
    return f"{host[0]}:{host[1]}"
