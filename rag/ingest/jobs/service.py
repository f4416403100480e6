"""The public interface of background imports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

from rag.errors import StoreError
from rag.ingest.discovery import MAX_DEPTH, MAX_PAGES, SiteKind, SitePlan
from rag.ingest.jobs.steps import OpenIngestor, OpenWalk, make_cancellation, make_result, new_items, open_steps
from rag.ingest.jobs.worker import RENEW_SECONDS, Worker
from rag.ingest.pipeline import result
from rag.ingest.sources import BOUNDS, Limits, RecordBounds, Source
from rag.process import Process
from rag.reading.parser import READING_VERSION
from rag.store.sql.database import Database
from rag.store.sql.job_table import Discovery, Job, JobItem, JobKind, NewItem
from rag.store.sql.table import ALL
from rag.text import to_plain_line
from rag.types import Decision, IngestResult, Notice

_ALWAYS_ALLOWED: frozenset[Decision] = frozenset(["retry", "skip"])


class Jobs:
    """The service for background imports. Jobs are stored, so they resume after a restart.

    It covers all users' jobs; `of` limits it to one user's. Safe to share between threads. Methods raise StoreError,
    "job_unknown" for a job that does not exist or belongs to another user.
    """

    def __init__(
        self,
        database: Database,
        open_ingestor: OpenIngestor,
        open_walk: OpenWalk,
        *,
        limits: Limits | None = None,
        bounds: RecordBounds = BOUNDS,
        per_owner: int = 50,
        chunker: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_ingestor` returns the ingestor of a library by name; it may take long and raise RagError.

        `open_walk` returns the walk for a site's plan and the pages that its job already has. `bounds` apply to JSONL
        files. An `owner` with `per_owner` unfinished jobs gets StoreError("too_many_jobs") for another one.
        `chunker` is that of jobs without one; if empty, the ingestor's.
        """
        self._owner: str | None = None
        self._database = database
        self._jobs = database.jobs
        self._items = database.items
        self._per_owner = per_owner
        self._chunker = chunker
        steps = partial(open_steps, database, open_ingestor, open_walk, bounds)
        self._worker = Worker(database, steps, clock, limits)

    def of(self, owner: str | None) -> Jobs:
        """Return the service for one user, who sees their own jobs and those without an owner."""
        service = copy(self)
        service._owner = owner
        return service

    def start(self) -> None:
        """Resume jobs that an earlier process left unfinished and, from now on, those that another process leaves."""
        self._worker.finish_cancelled_items()
        if self._jobs.has_running():
            self._worker.wake()
        self._worker.start()

    def close(self) -> None:
        """Stop after the current page; unfinished jobs resume at the next start."""
        self._worker.close()

    # New jobs

    def submit(
        self,
        sources: Sequence[Source],
        *,
        library: str,
        owner: str = "",
        force: bool = False,
        title: str = "",
        **options: Any,
    ) -> str:
        """Queue a job for `sources`; return its id. The options `chunker` and `chunk_size` have defaults.

        Of sources with the same URL, only the first is imported. Stored pages are refetched only with `force`.
        """
        title = title or (sources[0].name if sources else "")
        return self._create(library, owner, list(new_items(sources)), title=title, force=force, **options)

    def submit_files(self, files: Sequence[tuple[str, bytes]], *, library: str, owner: str = "", **options: Any) -> str:
        """Queue a job for files (name, content), which the worker opens later; `options` are those of `submit`."""
        title = files[0][0] if files else ""
        return self._create(library, owner, files=files, title=title, force=False, **options)

    def submit_site(
        self,
        start: str,
        kind: SiteKind,
        *,
        library: str,
        owner: str = "",
        prefix: str = "",
        max_pages: int = MAX_PAGES,
        max_depth: int = MAX_DEPTH,
        force: bool = False,
        chunker: str = "",
    ) -> str:
        """Queue a job for the pages of a site, from its sitemap or by following links, or for those of a feed.

        `prefix` is the path that all pages of a site must start with, by default the folder of `start`.
        """
        plan = asdict(SitePlan(start, kind, prefix, max_depth, max_pages))
        return self._create(library, owner, kind=kind, title=start, plan=plan, force=force, chunker=chunker)

    def recheck(
        self,
        library: str,
        url_hashes: Sequence[str] | None = None,
        site: str | None = None,
        *,
        owner: str = "",
        title: str = "",
    ) -> str:
        """Queue a re-check of pages from the web: some of them, those of a site, or all of the library."""
        hashes = None if url_hashes is None else list(dict.fromkeys(url_hashes))
        title = title or site or ""
        return self._create(library, owner, kind="recheck", title=title, url_hashes=hashes, site=site or "")

    # Actions on a job

    def pause(self, job_id: str) -> None:
        """Pause a job; pages in progress are finished."""
        self._find_job(job_id)
        if self._jobs.set_state(job_id, "paused", from_states=["running"]):
            self._worker.wake()

    def pause_all(self, library: str) -> None:
        """Pause all running imports into the library."""
        for job in self._jobs.jobs(library, self._owner, limit=ALL):
            if job.state == "running":
                self.pause(job.id)

    def resume(self, job_id: str) -> None:
        self._find_job(job_id)
        if self._jobs.set_state(job_id, "running", from_states=["paused"]):
            self._worker.wake()

    def cancel(self, job_id: str) -> None:
        """Cancel a job after the current page; stored pages stay, the others are skipped."""
        self._find_job(job_id)
        with self._worker.block_storing(job_id) as being_stored, self._database.transaction():
            self._items.append(job_id, map(_make_cancelled_file, self._database.files.names(job_id)))
            if self._jobs.set_state(job_id, "cancelled", from_states=["running", "paused"]):
                self._items.finish_open(job_id, make_cancellation, being_stored)
                self._database.files.clear(job_id)
        self._worker.wake()

    def retry_failed(self, job_id: str) -> str:
        """Retry the job's failed pages, and a failed search for pages; return the job's id."""
        job = self._find_job(job_id)
        with self._database.transaction():
            has_items = self._items.requeue_failed(job_id)
            if job.discovery == "failed":
                self._jobs.set_discovery(job_id, "waiting")
            if has_items or job.discovery == "failed":
                self._run(job_id)
        return job_id

    def count_unread_files(self, library: str) -> int:
        """Count the uploaded files that failed or await a decision, and were last read by an older READING_VERSION."""
        return self._items.count_stored_files(library, self._owner, READING_VERSION)

    def reread_files(self, library: str) -> list[str]:
        """Queue these files again; return the ids of their jobs."""
        with self._database.transaction():
            job_ids = self._items.requeue_files(library, self._owner, READING_VERSION)
            for job_id in job_ids:
                self._run(job_id)
        return job_ids

    def decide(self, job_id: str, position: int, decision: Decision) -> None:
        """Apply a user's decision about a page that needs review, is a duplicate or failed.

        Raises StoreError: "item_unknown", or "decision_unfit" for a choice that its result does not offer.
        """
        self._find_job(job_id)
        item = self._items.item(job_id, position)
        if item is None:
            raise StoreError("item_unknown")
        choices = {*item.result.choices, *_ALWAYS_ALLOWED} if item.result else set()
        if decision not in choices or self._items.payload(job_id, position) is None:
            raise StoreError("decision_unfit")
        with self._database.transaction():
            if decision == "skip":
                self._items.replace(job_id, position, make_result(item, "skipped", Notice("left_alone")))
                return
            self._items.requeue(job_id, position, "" if decision == "retry" else decision)
            if self._jobs.set_state(job_id, "running", from_states=["running", "done", "cancelled"]):
                self._worker.wake()

    def delete(self, job_id: str) -> None:
        """Delete a job from the history, a running one after its current page; its pages stay in the library."""
        self._find_job(job_id)
        with self._worker.block_storing(job_id):
            self._jobs.delete(job_id)
        self._worker.wake()

    # Progress

    def job(self, job_id: str) -> JobView:
        """Return the current state of a job."""
        return self._view(self._find_job(job_id))

    def jobs(self, library: str, limit: int = 20, offset: int = 0) -> list[JobView]:
        """Return the library's jobs, newest first; cheap, however many items they have."""
        return [self._view(job) for job in self._jobs.jobs(library, self._owner, limit, offset)]

    def items(self, job_id: str, offset: int = 0, limit: int = 100, statuses: Sequence[str] = ()) -> list[JobItem]:
        """Return some of a job's items, in order; only those with one of `statuses`, "" for items without a result."""
        return self._items.items(self._find_job(job_id).id, offset, limit, statuses)

    def _view(self, job: Job) -> JobView:
        values = {column.name: getattr(job, column.name) for column in fields(job)}
        if job.state == "running":
            values["rate"] = rate = self._worker.rate(job.id)
            values["seconds_left"] = 60.0 * job.counts.get("", 0) / rate if rate else None
        if job.state in ("running", "paused"):
            values["current"] = tuple(self._items.current_items(job.id))
        return JobView(**values, load=lambda: self._items.items(job.id))

    def _create(
        self,
        library: str,
        owner: str,
        items: Sequence[NewItem] = (),
        *,
        kind: JobKind = "pages",
        title: str,
        files: Sequence[tuple[str, bytes]] = (),
        chunker: str = "",
        **options: Any,
    ) -> str:
        discovery: Discovery = "" if kind == "pages" and not files else "waiting"
        if kind != "recheck" and (chunker := chunker or self._chunker):
            options["chunker"] = chunker
        with self._database.transaction(lock_name=f"jobs of {owner}" if owner else ""):
            if owner and self._jobs.count_open(owner) >= self._per_owner:
                raise StoreError("too_many_jobs", most=self._per_owner)
            job_id = self._jobs.create(
                library, owner, items, kind=kind, title=to_plain_line(title), options=options, discovery=discovery
            )
            self._database.files.add(job_id, files)
        self._worker.wake()
        return job_id

    def _run(self, job_id: str) -> None:
        self._jobs.set_state(job_id, "running")
        self._worker.wake()

    def _find_job(self, job_id: str) -> Job:
        job = self._jobs.job(job_id)
        if job is None or (self._owner is not None and job.owner not in (self._owner, "")):
            raise StoreError("job_unknown")
        return job


def _make_cancelled_file(name: str) -> NewItem:
    """Return a cancelled item for a file that was not unpacked, or not completely."""
    row = result(Source(name, "", "file"), "", "skipped", Notice("cancelled"))
    return NewItem(row.source, result=row)


@dataclass(frozen=True, slots=True)
class JobView(Job):
    """A job with its speed: `rate` in pages per minute and `seconds_left`, each None while unknown.

    `current` are the items in progress.
    """

    rate: float | None = None
    seconds_left: float | None = None
    current: tuple[JobItem, ...] = ()
    load: Callable[[], list[JobItem]] = field(default=list, repr=False, compare=False)

    @property
    def items(self) -> tuple[JobItem, ...]:
        """All items in order, read from the database each time; for a long job use `Jobs.items`."""
        return tuple(self.load())


_POLL_SECONDS = 1.0


class ExternalJobs:
    """Bulk jobs, run outside the worker. Beginning one with the inputs of an unfinished one resumes that."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, library: str, inputs: Sequence[str], find: Callable[[], Sequence[NewItem]]) -> str:
        """Return the id of the library's unfinished job for `inputs`, or of a new one with the items of `find`."""
        jobs = self._database.jobs
        for job in jobs.unfinished_bulk_jobs(library):
            if job.options.get("inputs") == [*inputs]:
                jobs.set_state(job.id, "running", from_states=["paused"])
                return job.id
        items = find()  # may read large files, so not inside the transaction
        return jobs.create(library, "", items, bulk=True, title=inputs[0], options={"inputs": [*inputs]})

    @contextmanager
    def lease(self, job_id: str) -> Iterator[Lease]:
        """Lease a job to this process. Raises StoreError("bulk_busy") if another one works on it."""
        process, ended = Process(), threading.Event()
        jobs = self._database.jobs
        token = jobs.acquire_leases(process.name, lambda name: process.may_be_alive(name, time.time()), job_id).get(
            job_id
        )
        if token is None:
            raise StoreError("bulk_busy")
        lease = Lease(self._database, job_id, token)

        def renew() -> None:
            while not ended.wait(RENEW_SECONDS):
                with suppress(StoreError):  # retried before the lease expires
                    lease.renew()

        thread = threading.Thread(target=renew, name="lease", daemon=True)
        thread.start()
        try:
            yield lease
        finally:
            ended.set()
            thread.join()
            jobs.release(process.name, job_id)


@dataclass(frozen=True)
class Lease:
    """Operations on a job for the process that holds its lease."""

    _database: Database
    job_id: str
    _token: int

    def renew(self) -> None:
        self._database.jobs.renew_lease(self.job_id, self._token)

    def open_items(self) -> dict[int, Mapping[str, Any]]:
        """Return the payloads of the items without a result, by position."""
        items = self._database.items
        payloads = {item.position: items.payload(self.job_id, item.position) for item in items.open_items(self.job_id)}
        return {position: payload[0] for position, payload in payloads.items() if payload}

    def finish(self, position: int, result: IngestResult, pages: Sequence[IngestResult] = ()) -> None:
        """Store an item's result, with those of some of its pages, in one transaction.

        Raises StoreError("bulk_busy") if another process has taken over the job.
        """
        database = self._database
        with database.transaction(lock_name=self.job_id):
            if database.jobs.state(self.job_id) is None:
                return  # it was deleted
            if not database.jobs.renew_lease(self.job_id, self._token):
                raise StoreError("bulk_busy")
            if database.items.finish(self.job_id, position, result):
                database.items.append(self.job_id, [NewItem(page.source, page.url, result=page) for page in pages])

    def can_continue(self) -> bool:
        """Wait while the job is paused; return whether to continue. Skips the rest of a cancelled job."""
        while (state := self._database.jobs.state(self.job_id)) == "paused":
            time.sleep(_POLL_SECONDS)
        if state == "cancelled":
            self._database.items.finish_open(self.job_id, make_cancellation)
        return state == "running"

    def end(self) -> None:
        self._database.jobs.end_if_done(self.job_id)
