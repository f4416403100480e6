"""Reading ahead: threads read what is asked for while the caller works on what was read before.

Groups take turns, for being read and for being handed out, so that one long list holds up no other.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")

READERS = 12
AHEAD = 24
PER_HOST = 4
MEGABYTES = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read ahead of its turn: `readers` threads, `ahead` things begun and not handed out yet.

    Of these at most `per_host` wait for one host, and nothing more is begun while what is ready
    takes `megabytes`.
    """

    readers: int = READERS
    ahead: int = AHEAD
    per_host: int = PER_HOST
    megabytes: int = MEGABYTES


@dataclass(frozen=True, slots=True)
class Taken(Generic[V]):
    """Something read for `group`, or the error that came instead; `began` as time.monotonic tells it."""

    group: str
    position: int
    began: float
    value: V | None
    error: Exception | None

    def result(self) -> V:
        """The value. Raises the error if there is one."""
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


class Turns(Generic[T]):
    """Queues by group that are emptied one from each in turn."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, group: str, one: T) -> None:
        self._queues.setdefault(group, deque()).append(one)

    def pop(self) -> T:
        """The next of the group whose turn it is. Raises StopIteration when nothing waits."""
        group = next(iter(self._queues))
        queue = self._queues.pop(group)
        one = queue.popleft()
        if queue:  # back to the end of the line
            self._queues[group] = queue
        return one

    def drop(self, group: str) -> list[T]:
        return list(self._queues.pop(group, ()))


class ReadAhead(Generic[V]):
    """Runs tasks in threads of its own and hands out what they return. One caller at a time takes."""

    def __init__(self, limits: Limits | None = None, size: Callable[[V], int] = lambda value: 0) -> None:
        """`size` tells how many bytes a value holds."""
        self._limits = limits or Limits()
        self._size = size
        self._changed = threading.Condition()
        self._waiting: Turns[_Task[V]] = Turns()
        self._ready: Turns[tuple[Taken[V], int]] = Turns()
        self._bytes = 0
        self._reading = 0
        self._idle = 0
        self._threads = 0
        self._hosts: Counter[str] = Counter()
        self._woken = False
        self._closed = False

    def has_room(self, host: str = "") -> bool:
        """Whether another thing may be begun, from `host` if it comes from one."""
        with self._changed:
            begun = len(self._waiting) + self._reading + len(self._ready)
            full = begun >= self._limits.ahead or self._bytes >= self._limits.megabytes * 1_000_000
            return not full and not (host and self._hosts[host] >= self._limits.per_host)

    def begin(self, group: str, position: int, host: str, read: Callable[[], V]) -> None:
        """Have `read` called in a thread; what it returns or raises comes out of `take`."""
        with self._changed:
            self._waiting.put(group, _Task(group, position, host, read))
            self._hosts[host] += 1
            if len(self._waiting) > self._idle and self._threads < self._limits.readers:
                self._threads += 1
                threading.Thread(target=self._work, name=f"read-{self._threads}", daemon=True).start()
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> Taken[V] | None:
        """What is ready, as soon as something is; None after `timeout` seconds, `wake` or `close`."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not len(self._ready) and not self._woken and not self._closed:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)
            self._woken = False
            if self._closed or not len(self._ready):
                return None
            taken, size = self._ready.pop()
            self._bytes -= size
            return taken

    def ready(self, most: int) -> list[Taken[V]]:
        """What more is ready now, at most so much."""
        found: list[Taken[V]] = []
        with self._changed:
            while len(found) < most and len(self._ready) and not self._closed:
                taken, size = self._ready.pop()
                self._bytes -= size
                found.append(taken)
        return found

    def wake(self) -> None:
        """Let `take` return: there is other news."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def drop(self, group: str) -> list[int]:
        """Forget what of `group` is not being read at this moment; returns its positions."""
        with self._changed:
            waiting, ready = self._waiting.drop(group), self._ready.drop(group)
            for task in waiting:
                self._hosts[task.host] -= 1
            self._bytes -= sum(size for _, size in ready)
            return [task.position for task in waiting] + [taken.position for taken, _ in ready]

    def close(self) -> None:
        """Begin nothing more; what is being read ends by itself, and nobody waits for it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            began = time.monotonic()
            value, fault = None, None
            try:
                value = task.read()
            except Exception as error:  # noqa: BLE001 - the thread's edge: whoever takes it gets it raised
                fault = error
            taken = Taken(task.group, task.position, began, value, fault)
            size = self._size(value) if value is not None else 0
            with self._changed:
                self._reading -= 1
                self._hosts[task.host] -= 1
                self._bytes += size
                self._ready.put(task.group, (taken, size))
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
