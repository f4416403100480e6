"""Threads for forward passes: parallel by batch, not within each operation.

On two cores two threads of one core each took 0.70 s for what torch's own parallelism does in 0.83 s,
and 1.0 s against 4.4 s while other programs used the cores: nothing waits at a barrier for a thread
that is not running.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_WORKERS = 8


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
