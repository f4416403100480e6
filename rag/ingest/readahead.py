"""Read-ahead: threads read items while the caller works on earlier ones. Also the delay before a retry.

Groups take turns in reading and in returning results, so that a long one does not delay the others.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rag.errors import RagError, StoreUnavailableError
from rag.web.media import MEGABYTE

T = TypeVar("T")
V = TypeVar("V")

READERS = 12
AHEAD = 24
PER_HOST = 4
MEGABYTES = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on read-ahead: `readers` threads, and `ahead` items begun and not returned yet.

    Of these, up to `per_host` wait for one host, and no more begin while ready items take `megabytes` or more.
    """

    readers: int = READERS
    ahead: int = AHEAD
    per_host: int = PER_HOST
    megabytes: int = MEGABYTES


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[V]):
    """An item read for `group`, or the error raised instead; `began` is a value of time.monotonic."""

    group: str
    position: int
    began: float
    value: V | None
    error: Exception | None

    def result(self) -> V:
        """Return the value. Raises the error if there is one."""
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


@dataclass(frozen=True, slots=True)
class _Task(Generic[V]):
    group: str
    position: int
    host: str
    read: Callable[[], V]


class FairQueue(Generic[T]):
    """Queues by group, served round-robin."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, group: str, item: T) -> None:
        self._queues.setdefault(group, deque()).append(item)

    def pop(self) -> T:
        """Return the next item of the group whose turn it is. Raises StopIteration if all queues are empty."""
        group = next(iter(self._queues))
        queue = self._queues.pop(group)
        item = queue.popleft()
        if queue:  # the group is last now
            self._queues[group] = queue
        return item

    def drop(self, group: str) -> list[T]:
        return list(self._queues.pop(group, ()))


class ReadAhead(Generic[V]):
    """A pool of threads that run tasks and return their results. Only one caller may take results at a time."""

    def __init__(self, limits: Limits | None = None, size: Callable[[V], int] = lambda value: 0) -> None:
        """`size` returns the number of bytes of a value."""
        self._limits = limits or Limits()
        self._size = size
        self._changed = threading.Condition()
        self._waiting: FairQueue[_Task[V]] = FairQueue()
        self._ready: FairQueue[tuple[ReadResult[V], int]] = FairQueue()
        self._bytes = 0
        self._reading = 0
        self._idle = 0
        self._threads = 0
        self._hosts: Counter[str] = Counter()
        self._woken = False
        self._closed = False

    def has_capacity(self, host: str = "") -> bool:
        """Return whether another item may begin, from `host` if it is fetched."""
        with self._changed:
            count = len(self._waiting) + self._reading + len(self._ready)
            is_full = count >= self._limits.ahead or self._bytes >= self._limits.megabytes * MEGABYTE
            return not is_full and not (host and self._hosts[host] >= self._limits.per_host)

    def begin(self, group: str, position: int, host: str, read: Callable[[], V]) -> None:
        """Call `read` in a thread; `take` returns its value or error."""
        with self._changed:
            self._waiting.put(group, _Task(group, position, host, read))
            self._hosts[host] += 1
            if len(self._waiting) > self._idle and self._threads < self._limits.readers:
                self._threads += 1
                threading.Thread(target=self._work, name=f"read-{self._threads}", daemon=True).start()
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> ReadResult[V] | None:
        """Return a result as soon as one is ready; None after `timeout` seconds, `wake` or `close`."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not len(self._ready) and not self._woken and not self._closed:
                remaining = None if end is None else end - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return None
                self._changed.wait(remaining)
            self._woken = False
            if self._closed or not len(self._ready):
                return None
            result, size = self._ready.pop()
            self._bytes -= size
            return result

    def take_ready(self, limit: int) -> list[ReadResult[V]]:
        """Return up to `limit` further results that are ready now."""
        results: list[ReadResult[V]] = []
        with self._changed:
            while len(results) < limit and len(self._ready) and not self._closed:
                result, size = self._ready.pop()
                self._bytes -= size
                results.append(result)
        return results

    def wake(self) -> None:
        """Make a waiting `take` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def drop(self, group: str) -> list[int]:
        """Discard the items of `group` that are not being read right now; return their positions."""
        with self._changed:
            waiting, ready = self._waiting.drop(group), self._ready.drop(group)
            for task in waiting:
                self._hosts[task.host] -= 1
            self._bytes -= sum(size for _, size in ready)
            return [task.position for task in waiting] + [result.position for result, _ in ready]

    def close(self) -> None:
        """Begin no more items; those being read finish, but nobody waits for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            began = time.monotonic()
            value, fault = None, None
            try:
                value = task.read()
            except Exception as error:  # noqa: BLE001 - returned with the result, for the caller to raise
                fault = error
            result = ReadResult(task.group, task.position, began, value, fault)
            size = self._size(value) if value is not None else 0
            with self._changed:
                self._reading -= 1
                self._hosts[task.host] -= 1
                self._bytes += size
                self._ready.put(task.group, (result, size))
                self._changed.notify_all()

    def _next(self) -> _Task[V] | None:
        with self._changed:
            self._idle += 1
            while not len(self._waiting) and not self._closed:
                self._changed.wait()
            self._idle -= 1
            if self._closed:
                return None
            self._reading += 1
            return self._waiting.pop()


RETRIES = 2
RETRIES_AFTER_TIMEOUT = 1
"""Fewer than for other failures, since a time-out has already used its whole deadline."""
_DELAYS = (1.0, 4.0)
_STORE_DELAY = 5.0
MAX_DELAY = 60.0
_TEMPORARY_STATUS = frozenset([408, 425, 429])


def is_temporary(error: RagError) -> bool:
    """Return whether the same request may succeed a little later: time-outs, 408, 425, 429, 5xx, broken connections."""
    params = error.notice.params
    if error.code == "http_error":
        status = int(params.get("status", 0))
        return status in _TEMPORARY_STATUS or status >= 500
    return error.code == "timeout" or (error.code == "unreachable" and error.notice.cause == "broken_off")


def delay_before(error: RagError, tries: int) -> float | None:
    """Return the seconds to wait after failed attempt number `tries` (from 1); None for no further attempt.

    Respects the server's Retry-After, up to MAX_DELAY. An unavailable database is always retried.
    """
    if isinstance(error, StoreUnavailableError):
        return _STORE_DELAY
    retries = RETRIES_AFTER_TIMEOUT if error.code == "timeout" else RETRIES
    if tries > retries or not is_temporary(error):
        return None
    retry_after = float(error.notice.params.get("retry_after") or 0.0)
    return min(max(_DELAYS[tries - 1], retry_after), MAX_DELAY)
