"""Callers that ask at the same time share one piece of work; a caller alone waits for nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Group(Generic[Item, Result]):
    """What has come in since the last piece of work began."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.results: Future[Sequence[Result]]


class Together(Generic[Item, Result]):
    """Turns many calls with one item each into few calls of `work` with a list.

    No clock is involved: what comes in while the thread is busy goes together once it is free. `submit`
    begins a piece of work in a thread, one after the other.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result]],
        submit: Callable[[Callable[[], Sequence[Result]]], Future[Sequence[Result]]],
        *,
        most: int,
    ) -> None:
        self._work = work
        self._submit = submit
        self._most = most
        self._lock = threading.Lock()
        self._open: _Group[Item, Result] | None = None

    def ask(self, item: Item) -> Result:
        """The result for `item`. Raises what `work` raises."""
        with self._lock:
            group = self._open
            if group is None or len(group.items) >= self._most:
                group = self._open = _Group()
                group.results = self._submit(lambda: self._run(group))
            place = len(group.items)
            group.items.append(item)
        return group.results.result()[place]

    def _run(self, group: _Group[Item, Result]) -> Sequence[Result]:
        with self._lock:  # from here on the next caller begins a new group
            if self._open is group:
                self._open = None
        return self._work(group.items)
