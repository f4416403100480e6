"""Imports that outlive the tab that asked for them: one worker thread, its state in the database."""

from __future__ import annotations

import base64
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag.errors import IngestError, RagError, StoreError
from rag.ingest.batch import ingest_all
from rag.ingest.pipeline import Ingestor, result
from rag.ingest.sources import Source
from rag.store.database import Database, Job
from rag.types import Notice, PageSource, Stage

log = logging.getLogger(__name__)

OpenIngestor = Callable[[str], Ingestor]


class Jobs:
    """Runs imports one after another. Sources are kept with the job, so a restart goes on where it was."""

    def __init__(self, database: Database, open_ingestor: OpenIngestor) -> None:
        """`open_ingestor` gives the ingestor of a library by name; it may take long and raise RagError."""
        self._database = database
        self._open = open_ingestor
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._cancelled: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="imports", daemon=True)
        self._started = threading.Lock()

    def resume(self) -> None:
        """Take up the jobs that an earlier process left unfinished."""
        for job in self._database.unfinished_jobs():
            self._enqueue(job.id)

    def submit(
        self, sources: Sequence[Source], *, library: str, owner: str = "", force: bool = False, chunker: str = ""
    ) -> str:
        """Store a job for `sources` and queue it; returns its id. Without `chunker` the ingestor's own is used."""
        options = {"force": force, **({"chunker": chunker} if chunker else {})}
        job_id = self._database.create_job(
            library, owner, [source.name for source in sources], options, [_pack(s) for s in sources]
        )
        self._enqueue(job_id)
        return job_id

    def job(self, job_id: str) -> Job:
        """The job as it stands. Raises StoreError("job_unknown")."""
        job = self._database.job(job_id)
        if job is None:
            raise StoreError("job_unknown")
        return job

    def jobs(self, library: str, limit: int = 20) -> list[Job]:
        return self._database.jobs(library, limit)

    def cancel(self, job_id: str) -> None:
        """Stop after the page in hand; what is stored stays, the rest ends as skipped."""
        self._cancelled.add(job_id)

    def close(self) -> None:
        """Stop after the page in hand; unfinished jobs go on at the next start."""
        self._queue.put(None)

    def _enqueue(self, job_id: str) -> None:
        self._queue.put(job_id)
        with self._started:
            if not self._thread.is_alive() and self._thread.ident is None:
                self._thread.start()

    def _work(self) -> None:
        while (job_id := self._queue.get()) is not None:
            try:
                self._run(self.job(job_id))
            except Exception:  # the thread's edge: one job's fault must not end the others
                log.exception("import %s failed", job_id)
                self._fail_rest(job_id, Notice("unexpected"))

    def _run(self, job: Job) -> None:
        places = [item.position for item in job.items if item.result is None]
        sources = [self._source(job.id, place) for place in places]
        try:
            ingestor = self._open(job.library)
            if chunker := job.options.get("chunker"):
                ingestor = ingestor.with_chunker(chunker)
        except RagError as error:
            self._fail_rest(job.id, error.notice)
            return

        def report(index: int, stage: Stage) -> None:
            self._database.update_item(job.id, places[index], stage=stage)

        rows = ingest_all(
            ingestor,
            sources,
            force=bool(job.options.get("force")),
            on_stage=report,
            stopped=lambda: job.id in self._cancelled,
        )
        for index, row in rows:
            self._database.update_item(job.id, places[index], stage="done", result=row)
        self._database.set_job_state(job.id, "cancelled" if job.id in self._cancelled else "done")

    def _source(self, job_id: str, position: int) -> Source:
        payload = self._database.payload(job_id, position)
        if payload is None:
            raise StoreError("job_unknown")
        return _unpack(payload)

    def _fail_rest(self, job_id: str, notice: Notice) -> None:
        job = self.job(job_id)
        for item in job.items:
            if item.result is None:
                row = result(self._source(job_id, item.position), "", "failed", notice)
                self._database.update_item(job_id, item.position, stage="done", result=row)
        self._database.set_job_state(job_id, "done")


def _pack(source: Source) -> dict[str, Any]:
    packed: dict[str, Any] = {"name": source.name, "url": source.url, "kind": source.kind}
    if source.data is not None:
        packed["data"] = base64.b64encode(source.data).decode()
    if source.record:
        packed["record"] = dict(source.record)
    if source.broken is not None:
        packed["broken"] = {"code": source.broken.code, "params": dict(source.broken.notice.params)}
    return packed


def _unpack(packed: Mapping[str, Any]) -> Source:
    broken = packed.get("broken")
    kind: PageSource = packed["kind"]
    data = packed.get("data")
    return Source(
        packed["name"],
        packed["url"],
        kind,
        base64.b64decode(data) if data is not None else None,
        packed.get("record", {}),
        IngestError(broken["code"], **broken["params"]) if broken else None,
    )
