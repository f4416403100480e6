"""Callers that ask at the same time share one piece of work; a caller alone waits for nobody.

Threads for forward passes are parallel by batch, not within each operation. On two cores two threads of one core each
took 0.70 s for what torch's own parallelism does in 0.83 s, and 1.0 s against 4.4 s while other programs used the
cores: nothing waits at a barrier for a thread that is not running.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_MOST_WORKERS = 8


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


class Workers:
    """A few threads, each with its share of the cores. One thread when `serial`, as a GPU wants it."""

    def __init__(self, *, serial: bool = False) -> None:
        import torch

        cores = torch.get_num_threads()
        self.count = 1 if serial else min(cores, _MOST_WORKERS)
        self._share = max(1, cores // self.count)
        self._batches = ThreadPoolExecutor(self.count, "encode", initializer=self._take_share)
        # A thread of its own keeps a query from waiting behind the batches of an import.
        self._single = self._batches if serial else ThreadPoolExecutor(1, "query", initializer=self._take_share)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Begin one piece of work that someone is waiting for."""
        return self._single.submit(work)

    def run(self, work: Callable[[], Result]) -> Result:
        """The result of one piece of work that someone is waiting for."""
        return self.submit(work).result()

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order; few are handed in ahead, so that callers take turns."""
        return ahead(self._batches, work, items, 2 * self.count)

    def _take_share(self) -> None:
        import torch

        torch.set_num_threads(self._share)  # of this thread alone


def ahead(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], depth: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order, while up to `depth` more are worked on in `pool`."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        waiting.append((item, pool.submit(work, item)))
        if len(waiting) > depth:
            done, future = waiting.popleft()
            yield done, future.result()
    for done, future in waiting:
        yield done, future.result()
