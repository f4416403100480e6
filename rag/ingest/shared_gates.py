"""Limits on requests to web servers, shared by several processes with one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rag.errors import FetchError
from rag.store.sql.host_table import HostTable
from rag.web.connections import MAX_PAUSE, Host, HostGates

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
