"""Writers over one database that take turns call by call, in an order that a test chooses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from qdrant_client import QdrantClient

from rag.errors import StoreError

_WRITES = frozenset(["upsert", "set_payload", "delete", "batch_update_points"])
_SECONDS = 30.0


class SimulatedCrash(BaseException):
    """The simulated end of a process before a call, which never happens."""


class SteppedClient:
    """A client of a database that others also write; `before` is called before each call.

    `log` has the writes so far, to be repeated: a network may deliver one late, or twice.
    """

    def __init__(self, client: QdrantClient) -> None:
        self.real = client
        self.before: Callable[[], None] = lambda: None
        self.log: list[Callable[[], Any]] = []
        self._client = self  # so that `is_shared` is true of it

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.before()
            if name in _WRITES:
                self.log.append(lambda: value(*args, **kwargs))
            try:
                return value(*args, **kwargs)
            except ValueError as error:
                if "already exists" in str(error):  # as a server refuses it
                    raise StoreError("collection_exists", name=args[0]) from error
                raise

        return call


class Writer:
    """A thread that runs `work` and waits before each call of `client` for `step` or `finish`."""

    def __init__(self, client: SteppedClient, work: Callable[[], Any]) -> None:
        client.before = self._wait
        self.error: BaseException | None = None
        self.done = False
        self._work = work
        self._go = threading.Semaphore(0)
        self._there = threading.Semaphore(0)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._there.acquire(timeout=_SECONDS)

    def step(self, count: int = 1) -> int:
        """Let it make `count` calls; return how many it made."""
        for made in range(count):
            if self.done:
                return made
            self._go.release()
            assert self._there.acquire(timeout=_SECONDS), "the writer made no call"
        return count

    def finish(self) -> int:
        """Let it end; return the number of its remaining calls. Raises its error."""
        made = 0
        while not self.done:
            made += self.step()
        if self.error is not None and not isinstance(self.error, SimulatedCrash):
            raise self.error
        return made

    def stop(self) -> None:
        """End it before its next call."""
        self._stopped = True
        self.step()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - the thread's edge: `finish` raises it
            self.error = error
        self.done = True
        self._there.release()

    def _wait(self) -> None:
        if threading.current_thread() is not self._thread:
            return
        self._there.release()
        self._go.acquire()
        if self._stopped:
            raise SimulatedCrash
