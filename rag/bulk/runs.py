"""A bulk import, from splitting dumps into batches to the results of batches and failed pages.

Batches are imported in this process, in several local processes, or on a Ray cluster. A runner yields outcomes as they
arrive, each with the position of its batch.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from multiprocessing import get_context
from typing import Any, Literal

from rag.app import App
from rag.app.imports import record_bounds
from rag.bulk.batches import Batch, find_batches, sources_of
from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.ingest.batch import ingest_all
from rag.ingest.pipeline import result
from rag.ingest.sources import Source
from rag.store.sql.job_table import NewItem
from rag.types import Decision, IngestResult, IngestStatus, Notice

Batches = Mapping[int, Batch]
RunnerName = Literal["here", "processes", "ray"]
_TRIES = 3
_STATUSES: tuple[IngestStatus, ...] = ("added", "unchanged", "held", "failed")
"""Statuses by precedence: a batch has the first one that any of its pages has."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A batch's page counts by status, with the results of pages that need attention; or its `error`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    results: tuple[IngestResult, ...] = ()
    error: Notice | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of pages, with everything a worker process needs. `decision` is as in `ingest_all`."""

    settings: Settings
    library: str
    decision: Decision = ""

    def import_batch(self, app: App, batch: Batch) -> Outcome:
        """Import the pages of a batch; stored pages with the same text stay as they are.

        A failed page is reported as a result, an unreadable batch as an outcome with an error.
        """
        try:
            sources = sources_of(batch, record_bounds(self.settings), app.imports.sitemap_pages)
            ingestor = app.imports.ingestor(self.library)
            results = [row for _, row in ingest_all(ingestor, sources, decision=self.decision)]
        except RagError as error:
            return Outcome(error=error.notice)
        to_review = [replace(row, preview="", choices=()) for row in results if row.status in ("failed", "held")]
        return Outcome(Counter(row.status for row in results), tuple(to_review))


Runner = Callable[[Batches], Iterator[tuple[int, Outcome]]]


def choose_runner(app: App, library: str, decision: Decision, name: RunnerName, workers: int, gpus: float) -> Runner:
    """Return the runner with this name. Raises ConfigError if it needs a database server and there is none."""
    target = Target(app.settings, library, decision)
    if name == "here":
        return lambda batches: ((position, target.import_batch(app, batch)) for position, batch in batches.items())
    if not app.settings.qdrant_url:
        raise ConfigError("bulk_server", runner=name)
    if name == "ray":
        return lambda batches: _run_on_ray(target, batches, workers, gpus)
    return lambda batches: _run_in_processes(target, batches, workers)


def run_bulk(app: App, library: str, inputs: Sequence[str], size: int, runner: Runner) -> Iterator[IngestResult]:
    """Yield the result of each batch, after those of its pages that failed or need review.

    Called again with the same inputs, it resumes an unfinished import. Raises ConfigError for unreadable inputs, and
    StoreError("bulk_busy") while another process works on them.
    """
    jobs = app.imports.external
    app.imports.ingestor(library)  # creates the library, and loads the model before other processes need its files
    job_id = jobs.begin(library, inputs, lambda: _new_items(inputs, size))
    with jobs.lease(job_id) as lease:
        batches = {position: Batch(**payload) for position, payload in lease.open_items().items()}
        for position, outcome in runner(batches) if batches else ():
            row = _batch_result(batches[position], outcome)
            lease.finish(position, row, outcome.results)
            yield from (*outcome.results, row)
            if not lease.can_continue():
                return
        lease.end()


def _new_items(inputs: Sequence[str], size: int) -> list[NewItem]:
    items = [NewItem(batch.name, payload=asdict(batch)) for batch in find_batches(inputs, size)]
    if not items:
        raise ConfigError("bulk_empty", name=", ".join(inputs))
    return items


def _batch_result(batch: Batch, outcome: Outcome) -> IngestResult:
    source = Source(batch.name, batch.place, "import")
    if outcome.error is not None:
        return result(source, "", "failed", outcome.error)
    counts = outcome.counts
    numbers = {
        "added": counts.get("added", 0) + counts.get("updated", 0),
        "unchanged": counts.get("unchanged", 0) + counts.get("duplicate", 0),
        "held": counts.get("held", 0),
        "failed": counts.get("failed", 0),
    }
    status: IngestStatus = next((one for one in _STATUSES if numbers[one]), "unchanged")
    return result(source, "", status, Notice("bulk_batch", numbers))


def _run_in_processes(target: Target, batches: Batches, workers: int) -> Iterator[tuple[int, Outcome]]:
    """Run batches in `workers` processes; those running when one is killed are retried, up to _TRIES attempts each."""
    remaining = dict(batches)
    tries: Counter[int] = Counter()
    while remaining:
        running: dict[Future[Outcome], int] = {}
        try:
            with ProcessPoolExecutor(workers, get_context("spawn"), _open_app, (target,)) as pool:
                waiting = iter(list(remaining.items()))
                while True:
                    for position, batch in islice(waiting, workers + 1 - len(running)):
                        running[pool.submit(_import_in_process, batch)] = position
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcome, position = future.result(), running[future]
                        del running[future], remaining[position]
                        yield position, outcome
        except BrokenProcessPool:
            tries.update(running.values())
            for position in [position for position in running.values() if tries[position] >= _TRIES]:
                del remaining[position]
                yield position, Outcome(error=Notice("bulk_killed"))


_target: Target
_app: App


def _open_app(target: Target) -> None:
    global _target, _app
    _target, _app = target, App(target.settings)


def _import_in_process(batch: Batch) -> Outcome:
    return _target.import_batch(_app, batch)


def _run_on_ray(target: Target, batches: Batches, workers: int, gpus: float) -> Iterator[tuple[int, Outcome]]:
    """Run batches on Ray, by `workers` actors with `gpus` GPUs each. Raises ConfigError if Ray is not installed.

    Without RAY_ADDRESS, Ray runs on this machine. Each actor writes through its own app and returns only outcomes.
    Batches lost with a driver, an actor or a machine are imported again; their stored pages are recognised.
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
            self._app = App(target.settings)

        def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
            outcomes = [target.import_batch(self._app, pickle.loads(batch)) for batch in rows["batch"]]
            return {"position": rows["position"], "outcome": [pickle.dumps(outcome) for outcome in outcomes]}

    rows = [{"position": position, "batch": pickle.dumps(batch)} for position, batch in batches.items()]
    actors = ray.data.ActorPoolStrategy(size=workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows))
    try:
        for row in dataset.map_batches(Actor, batch_size=1, compute=actors, num_gpus=gpus or None).iter_rows():
            yield row["position"], pickle.loads(row["outcome"])
    finally:
        ray.shutdown()
