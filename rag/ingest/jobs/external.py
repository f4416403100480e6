"""Imports whose items are processed by others, under a lease of the process that distributes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rag.errors import StoreError
from rag.ingest.jobs.steps import make_cancellation
from rag.ingest.jobs.worker import RENEW_SECONDS
from rag.process import Process
from rag.store.sql.database import Database
from rag.store.sql.job_table import NewItem
from rag.types import IngestResult

_POLL_SECONDS = 1.0


class ExternalJobs:
    """Bulk jobs: an unfinished one resumes when it is begun again with the same inputs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, library: str, inputs: Sequence[str], find: Callable[[], Sequence[NewItem]]) -> str:
        """Return the id of the library's unfinished job for `inputs`, or of a new one with the items of `find`."""
        jobs = self._database.jobs
        for job in jobs.unfinished_bulk_jobs(library):
            if job.options.get("inputs") == [*inputs]:
                jobs.set_state(job.id, "running", of=["paused"])
                return job.id
        items = find()  # takes long to read files, so before the transaction
        return jobs.create(library, "", items, bulk=True, title=inputs[0], options={"inputs": [*inputs]})

    @contextmanager
    def lease(self, job_id: str) -> Iterator[Lease]:
        """Reserve a job for this process. Raises StoreError("bulk_busy") if another one works on it."""
        process, ended = Process(), threading.Event()
        jobs = self._database.jobs
        token = jobs.lease(process.name, lambda name: process.may_be_alive(name, time.time()), job_id).get(job_id)
        if token is None:
            raise StoreError("bulk_busy")
        lease = Lease(self._database, job_id, token)

        def renew() -> None:
            while not ended.wait(RENEW_SECONDS):
                with suppress(StoreError):  # a failure is retried before the lease ends
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
    """Operations on a job for the process that has it."""

    _database: Database
    job_id: str
    _token: int

    def renew(self) -> None:
        self._database.jobs.holds(self.job_id, self._token)

    def open_items(self) -> dict[int, Mapping[str, Any]]:
        """Return the payloads of the items without a result, by position."""
        items = self._database.items
        payloads = {item.position: items.payload(self.job_id, item.position) for item in items.open(self.job_id)}
        return {position: payload[0] for position, payload in payloads.items() if payload}

    def finish(self, position: int, result: IngestResult, pages: Sequence[IngestResult] = ()) -> None:
        """Store an item's result, with those of some of its pages, in one transaction.

        Raises StoreError("bulk_busy") if another process has taken over the job.
        """
        database = self._database
        with database.transaction(alone=self.job_id):
            if database.jobs.state(self.job_id) is None:
                return  # it was deleted
            if not database.jobs.holds(self.job_id, self._token):
                raise StoreError("bulk_busy")
            if database.items.finish(self.job_id, position, result):
                database.items.append(self.job_id, [NewItem(page.source, page.url, result=page) for page in pages])

    def can_continue(self) -> bool:
        """Return whether to continue, after waiting while the job is paused; end a cancelled one."""
        while (state := self._database.jobs.state(self.job_id)) == "paused":
            time.sleep(_POLL_SECONDS)
        if state == "cancelled":
            self._database.items.skip_open(self.job_id, make_cancellation)
        return state == "running"

    def end(self) -> None:
        self._database.jobs.end_if_done(self.job_id)
