"""Imports as the rest of the program asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any

from rag.errors import StoreError
from rag.ingest.discovery import SiteKind, SitePlan
from rag.ingest.jobs.run import Pace
from rag.ingest.jobs.steps import OpenIngestor, OpenSites, StepsOf, cancelled, left_out, new_items
from rag.ingest.jobs.worker import Worker
from rag.ingest.readahead import Limits
from rag.ingest.results import result
from rag.ingest.sources import BOUNDS, RecordBounds, Source
from rag.reading.parser import READING
from rag.store.sql.database import Database
from rag.store.sql.job_table import Discovery, Job, JobItem, JobKind, NewItem
from rag.store.sql.table import ALL
from rag.text import plain
from rag.types import Decision, Notice
from rag.web.site_scope import MAX_DEPTH, MAX_PAGES

_ALWAYS: frozenset[Decision] = frozenset(["retry", "skip"])


class Jobs:
    """Imports in the background. What they are to do is kept, so a restart goes on where they were.

    Of everybody; `of` is one person's. Safe to share between threads. Methods raise StoreError, "job_unknown" for a
    job that is not there or somebody else's.
    """

    def __init__(
        self,
        database: Database,
        open_ingestor: OpenIngestor,
        open_sites: OpenSites | None = None,
        *,
        limits: Limits | None = None,
        bounds: RecordBounds = BOUNDS,
        per_person: int = 50,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_ingestor` gives the ingestor of a library by name; it may take long and raise RagError.

        `open_sites` gives what finds the pages of sites; without it such jobs fail. `bounds` are those of JSONL files.
        An `owner` who has `per_person` jobs that have not ended gets StoreError("too_many_jobs") for another one.
        """
        self._owner: str | None = None
        self._database = database
        self._jobs = database.jobs
        self._items = database.items
        self._per_person = per_person
        self._pace = Pace(clock)
        self._worker = Worker(database, StepsOf(database, open_ingestor, open_sites, bounds), self._pace, limits)

    def of(self, owner: str | None) -> Jobs:
        """The same for one person, who sees their own and those that nobody in particular began."""
        theirs = copy(self)
        theirs._owner = owner
        return theirs

    def start(self) -> None:
        """Take up what an earlier process left unfinished, and from now on what another leaves."""
        self._worker.end_cancelled()
        if self._jobs.any_running():
            self._worker.wake()
        self._worker.start()

    def close(self) -> None:
        """Stop after the page in hand; unfinished jobs go on at the next start."""
        self._worker.close()

    # New jobs

    def submit(
        self,
        sources: Sequence[Source],
        *,
        library: str,
        owner: str = "",
        force: bool = False,
        chunker: str = "",
        title: str = "",
        **options: Any,
    ) -> str:
        """Queue a job for `sources`; returns its id. Without `chunker` the ingestor's own is used, and its size unless
        `chunk_size` is among the `options`.

        Of sources with the same address the first is taken in. Pages that the library has are fetched
        again only by `force`.
        """
        name = title or (sources[0].name if sources else "")
        kept = {"force": force, **({"chunker": chunker} if chunker else {}), **options}
        return self._create(library, owner, list(new_items(sources)), title=name, options=kept)

    def submit_files(
        self, files: Sequence[tuple[str, bytes]], *, library: str, owner: str = "", chunker: str = "", **options: Any
    ) -> str:
        """Queue a job for what files (name, content) hold; returns its id at once: the worker looks into them."""
        kept = {"force": False, **({"chunker": chunker} if chunker else {}), **options}
        name = files[0][0] if files else ""
        return self._create(library, owner, [], title=name, options=kept, files=files)

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
        """Queue a job for the pages of a site, by its sitemap, by following links, or those of a feed.

        `prefix` is the path that all of them begin with; without it a crawl stays in the folder of `start`.
        """
        plan = SitePlan(start, kind, prefix, max_depth, max_pages)
        options = {"plan": plan.as_options(), "force": force, **({"chunker": chunker} if chunker else {})}
        return self._create(library, owner, [], kind=kind, title=start, options=options)

    def recheck(
        self,
        library: str,
        url_hashes: Sequence[str] | None = None,
        site: str | None = None,
        *,
        owner: str = "",
        title: str = "",
    ) -> str:
        """Queue another look at pages from the web: chosen ones, those of a site, or all of the library."""
        chosen = None if url_hashes is None else list(dict.fromkeys(url_hashes))
        options = {"url_hashes": chosen, "site": site or ""}
        return self._create(library, owner, [], kind="recheck", title=title or site or "", options=options)

    # What a person does with a job

    def pause(self, job_id: str) -> None:
        """Begin no more of its pages; those that are under way are finished."""
        self._known(job_id)
        if self._jobs.set_state(job_id, "paused", of=["running"]):
            self._worker.wake()

    def pause_all(self, library: str) -> None:
        """Pause what runs into the library."""
        for job in self._jobs.jobs(library, self._owner, limit=ALL):
            if job.state == "running":
                self.pause(job.id)

    def resume(self, job_id: str | None = None) -> None:
        """Go on with a paused job; without `job_id`, take up what an earlier process left (`start`)."""
        if job_id is None:
            self.start()
            return
        self._known(job_id)
        if self._jobs.set_state(job_id, "running", of=["paused"]):
            self._worker.wake()

    def cancel(self, job_id: str) -> None:
        """Stop after the page in hand; what is stored stays, the rest ends as skipped."""
        self._known(job_id)
        with self._worker.between_pages(job_id) as in_hand, self._database.transaction():
            self._items.append(job_id, map(_stopped_before, self._database.files.names(job_id)))
            if self._jobs.set_state(job_id, "cancelled", of=["running", "paused"]):
                self._items.skip_open(job_id, cancelled, in_hand)
                self._database.files.clear(job_id)
        self._worker.wake()

    def retry_failed(self, job_id: str) -> str:
        """Try the job's failed pages again, and a search for pages that failed; returns the job's id."""
        job = self._known(job_id)
        with self._database.transaction():
            again = self._items.requeue_failed(job_id)
            if job.discovery == "failed":
                self._jobs.set_discovery(job_id, "waiting")
            if again or job.discovery == "failed":
                self._run(job_id)
        return job_id

    def kept_files(self, library: str) -> int:
        """How many uploaded files are kept, since nothing came of them, and would be read otherwise than they were."""
        return self._items.kept_files(library, self._owner, READING)

    def reread_files(self, library: str) -> list[str]:
        """Read these files again; returns the ids of their jobs."""
        with self._database.transaction():
            found = self._items.requeue_files(library, self._owner, READING)
            for job_id in found:
                self._run(job_id)
        return found

    def decide(self, job_id: str, position: int, decision: Decision) -> None:
        """Do with a page that was held back, is a duplicate or failed, what the person chose.

        Raises StoreError: "item_unknown", or "decision_unfit" for a choice that its result does not offer.
        """
        self._known(job_id)
        item = self._items.item(job_id, position)
        if item is None:
            raise StoreError("item_unknown")
        offered = {*item.result.choices, *_ALWAYS} if item.result else set()
        if decision not in offered or self._items.payload(job_id, position) is None:
            raise StoreError("decision_unfit")
        with self._database.transaction():
            if decision == "skip":
                self._items.replace(job_id, position, left_out(item))
                return
            self._items.requeue(job_id, position, "" if decision == "retry" else decision)
            if self._jobs.set_state(job_id, "running", of=["running", "done", "cancelled"]):
                self._worker.wake()

    def delete(self, job_id: str) -> None:
        """Remove a job from the history, a running one after its page in hand; its pages stay in the library."""
        self._known(job_id)
        with self._worker.between_pages(job_id):
            self._jobs.delete(job_id)
        self._worker.wake()

    # How it goes

    def job(self, job_id: str) -> JobView:
        """The job as it stands."""
        return self._view(self._known(job_id))

    def jobs(self, library: str, limit: int = 20, offset: int = 0) -> list[JobView]:
        """The library's jobs, newest first; cheap, however many items they have."""
        return [self._view(job) for job in self._jobs.jobs(library, self._owner, limit, offset)]

    def items(self, job_id: str, offset: int = 0, limit: int = 100, statuses: Sequence[str] = ()) -> list[JobItem]:
        """Some of a job's items, in order; of these `statuses` only, "" for those without a result."""
        return self._items.items(self._known(job_id).id, offset, limit, statuses)

    def _view(self, job: Job) -> JobView:
        kept = {one.name: getattr(job, one.name) for one in fields(job)}
        if job.state == "running":
            kept["rate"] = self._pace.rate(job.id)
            kept["seconds_left"] = self._pace.seconds_left(job.id, job.counts.get("", 0))
        if job.state in ("running", "paused"):
            kept["current"] = tuple(self._items.current(job.id))
        return JobView(**kept, load=lambda: self._items.items(job.id))

    def _create(
        self,
        library: str,
        owner: str,
        items: Sequence[NewItem],
        *,
        kind: JobKind = "pages",
        title: str,
        options: dict[str, Any],
        files: Sequence[tuple[str, bytes]] = (),
    ) -> str:
        finding: Discovery = "" if kind == "pages" and not files else "waiting"
        given: dict[str, Any] = {"kind": kind, "title": plain(title), "options": options, "discovery": finding}
        with self._database.transaction(alone=f"jobs of {owner}" if owner else ""):
            if owner and self._jobs.open_of(owner) >= self._per_person:
                raise StoreError("too_many_jobs", most=self._per_person)
            job_id = self._jobs.create(library, owner, items, **given)
            self._database.files.add(job_id, files)
        self._worker.wake()
        return job_id

    def _run(self, job_id: str) -> None:
        self._jobs.set_state(job_id, "running")
        self._worker.wake()

    def _known(self, job_id: str) -> Job:
        job = self._jobs.job(job_id)
        if job is None or (self._owner is not None and job.owner not in (self._owner, "")):
            raise StoreError("job_unknown")
        return job


def _stopped_before(name: str) -> NewItem:
    """The row of a file that was not, or not wholly, looked into."""
    row = result(Source(name, "", "file"), "", "skipped", Notice("cancelled"))
    return NewItem(row.source, result=row)


@dataclass(frozen=True, slots=True)
class JobView(Job):
    """A job with its speed: `rate` in pages a minute, `seconds_left`, each None while unknown.

    `current` are the items that are under way.
    """

    rate: float | None = None
    seconds_left: float | None = None
    current: tuple[JobItem, ...] = ()
    load: Callable[[], list[JobItem]] = field(default=list, repr=False, compare=False)

    @property
    def items(self) -> tuple[JobItem, ...]:
        """All items in order, read anew with each call: of a long job ask `Jobs.items` for some of them."""
        return tuple(self.load())
