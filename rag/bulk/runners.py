"""Imports of batches into a library: in this process, in several processes of this machine, or on a Ray cluster.

A runner yields outcomes as they arrive, with the index of their batch.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from rag.app import App
from rag.app.imports import record_bounds
from rag.bulk.batches import Batch, sources_of
from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.ingest.batch import ingest_all
from rag.types import Decision, IngestResult, Notice

Batches = Mapping[int, Batch]
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number of pages of a batch by status, the results of those that need attention, or one `error`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    results: tuple[IngestResult, ...] = ()
    error: Notice | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of pages, with all that a process needs. `decision` is as in `ingest_all`."""

    settings: Settings
    library: str
    decision: Decision = ""

    def open(self) -> App:
        return App(self.settings)

    def import_batch(self, app: App, batch: Batch) -> Outcome:
        """Import the pages of a batch; those imported before stay as they are.

        A page that fails is a result, and a batch that can't be read is an outcome with an error.
        """
        try:
            sources = sources_of(batch, record_bounds(self.settings), app.imports.sitemap_pages)
            ingestor = app.imports.ingestor(self.library)
            results = [row for _, row in ingest_all(ingestor, sources, decision=self.decision)]
        except RagError as error:
            return Outcome(error=error.notice)
        to_review = [replace(row, preview="", choices=()) for row in results if row.status in ("failed", "held")]
        return Outcome(Counter(row.status for row in results), tuple(to_review))


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


def run_on_ray(target: Target, batches: Batches, workers: int, gpus: float = 0.0) -> Iterator[tuple[int, Outcome]]:
    """Run batches on a Ray cluster, or in processes of this machine if RAY_ADDRESS names none, by `workers` actors with
    `gpus` GPUs each. Raises ConfigError without Ray.

    Each actor has its own app and writes with it. Only outcomes are returned: batches that a driver, an actor or a
    machine loses are imported again, and their stored pages are recognised.
    """
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError("bulk_ray") from error
    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    class Actor:
        def __init__(self) -> None:
            self._app = target.open()

        def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
            outcomes = [target.import_batch(self._app, pickle.loads(batch)) for batch in rows["batch"]]
            return {"place": rows["place"], "outcome": [pickle.dumps(outcome) for outcome in outcomes]}

    rows = [{"place": place, "batch": pickle.dumps(batch)} for place, batch in batches.items()]
    actors = ray.data.ActorPoolStrategy(size=workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows))
    try:
        for row in dataset.map_batches(Actor, batch_size=1, compute=actors, num_gpus=gpus or None).iter_rows():
            yield row["place"], pickle.loads(row["outcome"])
    finally:
        ray.shutdown()
