"""Imports whose items other processes work on, under a lease of the process that hands them out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rag.errors import StoreError
from rag.ingest.jobs.steps import cancelled
from rag.ingest.jobs.worker import RENEW_SECONDS
from rag.process import Process
from rag.store.sql.database import Database
from rag.store.sql.job_table import NewItem
from rag.types import IngestResult

_LOOK_AGAIN = 1.0  # seconds


class ExternalJobs:
    """Bulk jobs: what is left of one goes on when it is begun again with the same inputs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, library: str, inputs: Sequence[str], find: Callable[[], Sequence[NewItem]]) -> str:
        """The id of the library's unfinished job for `inputs`, or else of a new one with the items of `find`."""
        jobs = self._database.jobs
        for job in jobs.unfinished_bulk(library):
            if job.options.get("inputs") == [*inputs]:
                jobs.set_state(job.id, "running", of=["paused"])
                return job.id
        items = find()  # which reads files for long, and so before there is a transaction
        return jobs.create(library, "", items, bulk=True, title=inputs[0], options={"inputs": [*inputs]})

    @contextmanager
    def lease(self, job_id: str) -> Iterator[Lease]:
        """Work on a job alone. Raises StoreError("bulk_busy") where another process does."""
        process, ended = Process(), threading.Event()
        jobs = self._database.jobs
        token = jobs.lease(process.name, lambda name: process.may_be_alive(name, time.time()), job_id).get(job_id)
        if token is None:
            raise StoreError("bulk_busy")
        lease = Lease(self._database, job_id, token)

        def renew() -> None:
            while not ended.wait(RENEW_SECONDS):
                with suppress(StoreError):  # what fails now is tried again before the lease ends
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
    """What the process that has a job may do with it."""

    _database: Database
    job_id: str
    _token: int

    def renew(self) -> None:
        self._database.jobs.holds(self.job_id, self._token)

    def open_items(self) -> dict[int, Mapping[str, Any]]:
        """The payloads of the items without a result, by position."""
        items = self._database.items
        found = {item.position: items.payload(self.job_id, item.position) for item in items.open(self.job_id)}
        return {position: packed[0] for position, packed in found.items() if packed}

    def finish(self, position: int, result: IngestResult, pages: Sequence[IngestResult] = ()) -> None:
        """Store an item's result, with those of some of its pages, all or nothing.

        Raises StoreError("bulk_busy") if another process has the job by now.
        """
        database = self._database
        with database.transaction(alone=self.job_id):
            if database.jobs.state(self.job_id) is None:
                return  # somebody deleted it
            if not database.jobs.holds(self.job_id, self._token):
                raise StoreError("bulk_busy")
            if database.items.finish(self.job_id, position, result):
                database.items.append(self.job_id, [NewItem(page.source, page.url, result=page) for page in pages])

    def goes_on(self) -> bool:
        """Return whether to go on, after waiting while the job is paused; end a cancelled one."""
        while (state := self._database.jobs.state(self.job_id)) == "paused":
            time.sleep(_LOOK_AGAIN)
        if state == "cancelled":
            self._database.items.skip_open(self.job_id, cancelled)
        return state == "running"

    def end(self) -> None:
        self._database.jobs.end_if_done(self.job_id)
