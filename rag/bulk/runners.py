"""Runners that import batches in this process, or in several processes of this machine.

A runner yields outcomes as they arrive, with the index of their batch.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from rag.app import App
from rag.bulk.batches import Batch
from rag.bulk.work import Outcome, Target
from rag.types import Notice

Batches = Mapping[int, Batch]
_TRIES = 3


def run_here(target: Target, app: App, batches: Batches) -> Iterator[tuple[int, Outcome]]:
    for place, batch in batches.items():
        yield place, target.import_batch(app, batch)


def run_in_processes(target: Target, batches: Batches, workers: int) -> Iterator[tuple[int, Outcome]]:
    """Run batches in `workers` processes. A batch whose process was killed is tried again, three times in total."""
    remaining = dict(batches)
    tries: Counter[int] = Counter()
    while remaining:
        running: dict[Future[Outcome], int] = {}
        try:
            with _start_pool(target, workers) as pool:
                waiting = iter(list(remaining.items()))
                while True:
                    for place, batch in islice(waiting, workers + 1 - len(running)):
                        running[pool.submit(_take_in, batch)] = place
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcome, place = future.result(), running[future]
                        del running[future], remaining[place]
                        yield place, outcome
        except BrokenProcessPool:
            tries.update(running.values())
            for place in [place for place in running.values() if tries[place] >= _TRIES]:
                del remaining[place]
                yield place, Outcome(error=Notice("bulk_killed"))


def _start_pool(target: Target, workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _open_app, (target,))


_target: Target
_app: App


def _open_app(target: Target) -> None:
    global _target, _app
    _target, _app = target, target.open()


def _take_in(batch: Batch) -> Outcome:
    return _target.import_batch(_app, batch)
