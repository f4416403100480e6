"""The thread that works on the jobs: it has pages read and prepared ahead, and takes them in one after another.

Of several processes with one database, each job has one that works on it, by a lease that a second thread renews.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from rag.errors import LibraryMovedError, RagError, StoreAwayError, StoreError
from rag.ingest.duplicates import MOST
from rag.ingest.jobs.run import FINDING, SILENT_AFTER, UNREACHED_AFTER, Pace, Run, host_of
from rag.ingest.jobs.steps import Steps, cancelled, told
from rag.ingest.loader import Read
from rag.ingest.readahead import Limits, ReadAhead, Taken
from rag.ingest.retry_policy import delay_before
from rag.process import Process
from rag.store.sql.database import Database
from rag.store.sql.job_table import Discovery, Job, JobItem
from rag.store.values import patiently
from rag.types import IngestResult, Notice, because

log = logging.getLogger(__name__)

Outcome = Read | IngestResult | int
_CLOSING_SECONDS = 10.0
_AFTER_A_FAULT = 5.0
_STORE_FAULTS = 3
RENEW_SECONDS = 5.0


class Worker:
    """Works on every running job that no other process has, in turns of one page; the database is its only list.

    Of the people whose jobs these are, each has a turn, however many jobs they have.
    """

    def __init__(
        self, database: Database, open_steps: Callable[[Job], Steps], pace: Pace, limits: Limits | None = None
    ) -> None:
        """`open_steps` may take long and raise RagError."""
        self._database = database
        self._jobs = database.jobs
        self._items = database.items
        self._open_steps = open_steps
        self._pace = pace
        self._ahead: ReadAhead[Outcome] = ReadAhead(limits, _size)
        self._process = Process()
        self._runs: dict[str, Run] = {}
        self._turns: dict[str, int] = {}  # of each person
        self._in_hand: tuple[str, set[int]] = "", set()
        self._turn = threading.Lock()
        self._starting = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="imports", daemon=True)
        self._renewing = threading.Thread(target=self._renew, name="leases", daemon=True)

    def start(self) -> None:
        """Look every few seconds for jobs that another process left."""
        with self._starting:
            if self._renewing.ident is None and not self._closed.is_set():
                self._renewing.start()

    def wake(self) -> None:
        """Look at the database: there is a new job, or another state of one. Starts the threads if need be."""
        self.start()
        with self._starting:
            if self._thread.ident is None and not self._closed.is_set():
                self._thread.start()
        self._ahead.wake()

    def close(self) -> None:
        """Stop after the page in hand, and leave the jobs to others."""
        self._closed.set()
        self._ahead.close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_CLOSING_SECONDS)
        if self._renewing.is_alive():
            self._renewing.join(_CLOSING_SECONDS)
            with suppress(StoreError):
                self._jobs.release(self._process.name)

    @contextmanager
    def between_pages(self, job_id: str) -> Iterator[set[int]]:
        """Hold off the next pages; yields the positions of the job's pages in hand, in another process those begun."""
        with self._turn:
            in_hand, positions = self._in_hand
            if job_id not in self._runs:
                yield {item.position for item in self._items.current(job_id)}
            else:
                yield positions if in_hand == job_id else set()

    def end_cancelled(self) -> None:
        """Give what was under way when its job was cancelled a result, once nobody works on it."""
        for job_id in self._jobs.cut_off():
            self._items.skip_open(job_id, cancelled)

    def _work(self) -> None:
        while not self._closed.is_set():
            try:
                patiently(self._step, self._closed.is_set)()
            except LibraryMovedError:
                self._start_over()
            except Exception:  # the thread's edge: what fails here is the database, and that may pass
                if not self._closed.is_set():
                    log.exception("The imports could not go on; another try follows")
                    self._closed.wait(_AFTER_A_FAULT)
                    self._start_over()

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_SECONDS):
            try:
                self._jobs.renew(self._process.name)
                self.end_cancelled()
                if self._jobs.any_running():
                    self.wake()  # one that was left, or whose state another process changed
            except StoreError as error:
                log.info("leases: %s", error)

    def _leased(self) -> dict[str, int]:
        return self._jobs.lease(self._process.name, lambda name: self._process.may_be_alive(name, time.time()))

    def _step(self) -> None:
        for job_id, token in self._leased().items():
            if job_id not in self._runs:
                self._open(job_id, token)
        running = self._leased()  # to open one may have taken long
        for job_id, run in [*self._runs.items()]:
            self._retire(job_id, running.get(job_id) == run.token)
        now = time.monotonic()
        self._begin(running, now)
        taken = self._ahead.take(self._patience(now))
        if taken is not None and not self._closed.is_set():
            by_job: dict[str, list[Taken[Outcome]]] = {}
            for one in (taken, *self._ahead.ready(MOST - 1)):
                by_job.setdefault(one.group, []).append(one)
            for job_id, some in by_job.items():
                self._finish(job_id, some)

    # Jobs begin and end

    def _open(self, job_id: str, token: int) -> None:
        job = self._jobs.job(job_id)
        if job is None:
            return
        self._items.all_wait(job_id)
        try:
            steps = self._open_steps(job)
        except StoreAwayError:
            return  # the program ends; else it is opened with the next look
        except RagError as error:
            self._fail(job_id, token, error.notice)
        except Exception:  # a fault of ours ends this job, not the others
            log.exception("import %s cannot begin", job_id)
            self._fail(job_id, token, Notice("unexpected"))
        else:
            self._runs[job_id] = Run(job_id, token, steps, self._items)
            self._pace.begin(job_id)

    def _fail(self, job_id: str, token: int, notice: Notice) -> None:
        """End a job that cannot begin: each item fails with the reason."""
        with self._turn, self._database.transaction(alone=job_id):
            if not self._jobs.holds(job_id, token) or not self._jobs.set_state(job_id, "done", notice, of=["running"]):
                return
            self._items.skip_open(job_id, partial(told, notice=notice))
            job = self._jobs.job(job_id)
            if job is not None and job.discovery == "waiting":
                self._jobs.set_discovery(job_id, "failed", notice)

    def _retire(self, job_id: str, is_running: bool) -> None:
        """Let go of a job that is done, paused, cancelled, deleted or another's, once nothing of it is under way."""
        run = self._runs[job_id]
        if is_running:
            if not run.is_idle():
                return
            if not self._jobs.end_if_done(job_id):
                run.look_again(self._jobs.job(job_id))
                return
        run.forget()
        if not is_running and self._jobs.state(job_id) != "paused":
            for position in self._ahead.drop(job_id):
                run.release(position)
        if not run.held:
            del self._runs[job_id]
            self._pace.forget(job_id)
            self._jobs.release(self._process.name, job_id)

    def _start_over(self) -> None:
        """Forget what was under way: the database knows what is left to do."""
        for job_id in self._runs:
            self._ahead.drop(job_id)
        self._runs.clear()

    # Reading

    def _begin(self, running: Mapping[str, int], now: float) -> None:
        """Begin to read, one page of each person's jobs in turn, while there is room."""
        while self._ahead.has_room():
            runs = sorted(self._runs.values(), key=lambda run: (self._turns.get(run.owner, 0), run.turn))
            for run in runs:
                if running.get(run.job_id) == run.token and self._begin_one(run, now):
                    run.turn = self._turns[run.owner] = 1 + max(self._turns.values(), default=0)
                    break
            else:
                return

    def _begin_one(self, run: Run, now: float) -> bool:
        if run.takes_finding(now):
            find = partial(run.steps.find, self._closed.is_set)
            self._ahead.begin(run.job_id, FINDING, "", patiently(find, self._closed.is_set))
            return True
        item = run.next_item(now, self._ahead.has_room)
        if item is None:
            return False
        self._items.begin(run.job_id, item.position)
        read = patiently(partial(run.steps.read, item), self._closed.is_set)
        self._ahead.begin(run.job_id, item.position, host_of(item), read)
        return True

    def _patience(self, now: float) -> float | None:
        """Seconds until something is to be tried again; None when nothing waits for a time.

        What could have begun by `now` and did not waits for room, not for a time.
        """
        times = [when for run in self._runs.values() if (when := run.next_time(now)) is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    # Taking in

    def _finish(self, job_id: str, taken: Sequence[Taken[Outcome]]) -> None:
        """Take in what was read for some items of one job."""
        run = self._runs.get(job_id)
        if run is None:
            return
        items = []
        with self._turn:
            for one in taken:
                if one.position == FINDING:
                    continue
                if (item := self._items.wanted(job_id, one.position)) is None:
                    run.release(one.position)
                else:
                    items.append((item, one))
            self._in_hand = job_id, {item.position for item, _ in items}
        try:
            rows = self._results(run, items)
            with self._database.transaction():
                is_ours = self._jobs.holds(job_id, run.token)
                for position, row in rows.items() if is_ours else ():
                    self._items.finish(job_id, position, row)
            for position in rows:
                self._pace.note(job_id)
                run.release(position)
        finally:
            self._in_hand = "", set()
        for one in taken:
            if one.position == FINDING:
                self._found(run, one)

    def _results(self, run: Run, items: Sequence[tuple[JobItem, Taken[Outcome]]]) -> dict[int, IngestResult]:
        """What became of items, by position; not of those that are to be tried again later."""
        rows: dict[int, IngestResult] = {}
        reads: list[tuple[JobItem, Read, float]] = []
        for item, taken in items:
            self._note_silence(run, host_of(item), taken)
            error = taken.error or (taken.value.error if isinstance(taken.value, Read) else None)
            if isinstance(error, RagError) and self._later(run, item.position, error, host_of(item)):
                continue
            if taken.error is not None:
                rows[item.position] = self._fault(run, item, taken.error, taken.began)
            elif isinstance(taken.value, Read):
                reads.append((item, taken.value, taken.began))
            else:
                assert isinstance(taken.value, IngestResult)
                rows[item.position] = taken.value
        return rows | self._settled(run, reads)

    def _settled(self, run: Run, reads: Sequence[tuple[JobItem, Read, float]]) -> dict[int, IngestResult]:
        rows: dict[int, IngestResult] = {}
        is_paused = self._jobs.state(run.job_id) == "paused"  # perhaps by what the database said to pages before
        try:
            outcomes: Sequence[IngestResult | Exception] = run.steps.settle_all(reads) if reads else []
        except LibraryMovedError:
            raise
        except Exception as error:
            if len(reads) > 1:
                log.exception("%d pages could not be taken in together", len(reads))
                for one in reads:
                    rows |= self._settled(run, [one])
                return rows
            outcomes = [error]
        for moved in outcomes:
            if isinstance(moved, LibraryMovedError):
                raise moved  # all of it is read again, and encoded by the other model
        for (item, _, began), outcome in zip(reads, outcomes, strict=True):
            if isinstance(outcome, IngestResult):
                run.store_faults = 0
                rows[item.position] = outcome
            elif isinstance(outcome, StoreAwayError):
                self._later(run, item.position, outcome)
            elif isinstance(outcome, StoreError) and is_paused:
                self._items.move(run.job_id, item.position, "waiting")
                run.release(item.position)
            else:
                rows[item.position] = self._fault(run, item, outcome, began)
                is_paused = isinstance(outcome, StoreError) and not run.store_faults
        return rows

    def _fault(self, run: Run, item: JobItem, error: Exception, began: float) -> IngestResult:
        """The result of an item that failed for good."""
        if not isinstance(error, RagError):  # a fault of ours costs one page, not the job
            log.error("%s could not be taken in", item.source[:200], exc_info=error)
            return told(item, Notice("unexpected"))
        log.info("%s: %s", item.source[:200], error, exc_info=error.__cause__)
        if isinstance(error, StoreError):
            self._note_store_fault(run, error)
        return run.steps.failed(item, error, began)

    def _later(self, run: Run, position: int, error: RagError, host: str = "") -> bool:
        """Put an item off whose failure may pass; False when that was done often enough."""
        if self._closed.is_set():
            return True  # it was cut off by the end of the program, and waits for the next start
        if error.code == "timeout" and run.is_silent(host):
            return False
        delay = delay_before(error, run.failed_tries(position))
        if delay is None:
            return False
        if position != FINDING:
            self._items.move(run.job_id, position, "waiting")
        run.later(position, time.monotonic() + delay)
        return True

    def _note_silence(self, run: Run, host: str, taken: Taken[Outcome]) -> None:
        """A host that lets page after page run out of time would hold the job for hours: leave it alone."""
        if not host or isinstance(taken.value, IngestResult):
            return
        error = taken.error or (taken.value.error if isinstance(taken.value, Read) else None)
        run.note(host, taken.position, timed_out=isinstance(error, RagError) and error.code == "timeout")
        if run.is_silent(host):
            notice = Notice("host_silent", {"host": host, "count": SILENT_AFTER})
            with self._database.transaction(alone=run.job_id):
                if self._jobs.holds(run.job_id, run.token):
                    others = {one.position for one in self._items.open(run.job_id) if host_of(one) != host}
                    self._items.skip_open(run.job_id, partial(told, notice=notice), others | run.held)
            run.look_anew()
        if run.is_cut_off():
            self._pause(run, Notice("timeouts_stopped_job", {"count": UNREACHED_AFTER}))

    def _note_store_fault(self, run: Run, error: StoreError) -> None:
        """A database that is down or full would fail page after page: stop before the rest is lost to it."""
        run.store_faults += 1
        if run.store_faults >= _STORE_FAULTS:
            self._pause(run, Notice("store_stopped_job", because(error.code, **error.notice.params)))
            run.store_faults = 0

    def _pause(self, run: Run, notice: Notice) -> None:
        with self._database.transaction():
            if self._jobs.holds(run.job_id, run.token):
                self._jobs.set_state(run.job_id, "paused", notice, of=["running"])

    def _found(self, run: Run, taken: Taken[Outcome]) -> None:
        discovery: Discovery = "failed"
        try:
            found = taken.result()
            discovery = "done"
            notice = Notice("nothing_to_recheck") if found == 0 and run.steps.job.kind == "recheck" else None
        except RagError as error:
            if self._later(run, FINDING, error):
                return
            notice = error.notice
        except Exception:  # a fault of ours: the job says so
            log.exception("import %s: its addresses could not be found", run.job_id)
            notice = Notice("unexpected")
        with self._database.transaction():
            if self._jobs.holds(run.job_id, run.token):
                self._jobs.set_discovery(run.job_id, discovery, notice)
        run.release(FINDING)


def _size(outcome: Outcome) -> int:
    """Roughly the bytes that something which was read holds."""
    if not isinstance(outcome, Read):
        return 0
    return 4 * len(outcome.page.text) + (outcome.prepared.size if outcome.prepared else 0)
