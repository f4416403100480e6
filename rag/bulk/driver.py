"""One import of dumps, from splitting them into batches to the result of each batch and of pages that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Literal

from rag.app import App
from rag.bulk.batches import Batch, find_batches
from rag.bulk.runners import Batches, Outcome, Target, run_here, run_in_processes, run_on_ray
from rag.errors import ConfigError
from rag.ingest.results import result
from rag.ingest.sources import Source
from rag.store.sql.job_table import NewItem
from rag.types import Decision, IngestResult, IngestStatus, Notice

_STATUSES: tuple[IngestStatus, ...] = ("added", "unchanged", "held", "failed")
"""Statuses of a batch: the first that any of its pages has."""
RunnerName = Literal["here", "processes", "ray"]
Run = Callable[[Batches], Iterator[tuple[int, Outcome]]]


def choose_runner(app: App, library: str, decision: Decision, name: RunnerName, workers: int, gpus: float) -> Run:
    """Return the runner of that name. Raises ConfigError if several processes can't write to the database."""
    target = Target(app.settings, library, decision)
    if name == "here":
        return lambda batches: run_here(target, app, batches)
    if not app.settings.qdrant_url:
        raise ConfigError("bulk_server", runner=name)
    if name == "ray":
        return lambda batches: run_on_ray(target, batches, workers, gpus)
    return lambda batches: run_in_processes(target, batches, workers)


def run_bulk(app: App, library: str, inputs: Sequence[str], size: int, run: Run) -> Iterator[IngestResult]:
    """Yield the result of each batch, after those of its pages that failed or need review.

    A call with the inputs of an unfinished one resumes it. Raises ConfigError for inputs that can't be read and
    StoreError("bulk_busy") while another process works on them.
    """
    jobs = app.imports.external
    app.imports.ingestor(library)  # creates the library, and loads the model before other processes need its files
    job_id = jobs.begin(library, inputs, lambda: _new_items(inputs, size))
    with jobs.lease(job_id) as lease:
        batches = {place: Batch(**payload) for place, payload in lease.open_items().items()}
        for place, outcome in run(batches) if batches else ():
            row = _batch_result(batches[place], outcome)
            lease.finish(place, row, outcome.results)
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
