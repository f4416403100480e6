"""Requests to web servers, counted for all processes that share the database."""

from __future__ import annotations

from typing import Final

from rag.store.sql.table import CLOCK, Table

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
