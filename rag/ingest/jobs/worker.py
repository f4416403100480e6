"""The worker thread of jobs: other threads read and prepare pages ahead, and it stores them in turn.

If several processes share a database, only the one with a job's lease works on it; a second thread renews leases.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from rag.errors import LibraryMovedError, RagError, StoreError, StoreUnavailableError
from rag.ingest.duplicates import MAX_GROUP
from rag.ingest.jobs.steps import Steps, make_cancellation, make_result
from rag.ingest.sources import Limits, LoadedPage, ReadAhead, ReadResult, delay_before
from rag.process import Process
from rag.store.sql.database import Database
from rag.store.sql.job_table import Discovery, ItemTable, Job, JobItem
from rag.store.values import with_unlimited_wait
from rag.types import IngestResult, Notice, because
from rag.web.urls import split_url

log = logging.getLogger(__name__)


SILENT_AFTER = 6
"""Consecutive time-outs of a host after which the rest of its pages fail."""
OFFLINE_AFTER = 20
"""Consecutive time-outs across all hosts of a job after which it pauses, as the network is probably down."""
DISCOVERY = -1
"""The pseudo-position of discovery, the search for a job's pages, which is not an item."""
_WINDOW = 256
WINDOW = 60.0
_MIN_ITEMS = 3


class JobRun:
    """A running job. Positions in `active` are in progress or wait for a retry.

    `token` is that of the lease on the job. `turn` grows with each item that is begun. `tries` counts failed attempts.
    """

    def __init__(self, job_id: str, token: int, steps: Steps, items: ItemTable, speed: JobSpeed) -> None:
        self.job_id = job_id
        self.token = token
        self.speed = speed
        self.turn = 0
        self.owner = steps.job.owner
        self.steps = steps
        self.active: set[int] = set()
        self.tries: Counter[int] = Counter()
        self.store_faults = 0
        self._host_timeouts: Counter[str] = Counter()
        self._job_timeouts = 0
        self._discover_at = 0.0 if steps.job.discovery == "waiting" else None
        self._items = items
        self._depths: dict[int, int] = {}
        self._window: deque[JobItem] = deque()
        self._retries: list[tuple[float, int]] = []

    def claim_discovery(self, now: float) -> bool:
        """Return whether to start discovery now; if so, it becomes active."""
        if self._discover_at is None or self._discover_at > now:
            return False
        self._discover_at = None
        self.active.add(DISCOVERY)
        return True

    def is_idle(self) -> bool:
        """Return whether nothing of the job is in progress or waiting."""
        return not self.active and not self._window and self._discover_at is None

    def reopen_discovery(self, job: Job | None) -> None:
        """Schedule discovery if it was requested after the job seemed finished."""
        if job is not None and job.discovery == "waiting":
            self._discover_at = 0.0

    def next_item(self, now: float, has_capacity: Callable[[str], bool]) -> JobItem | None:
        """Return the first item that is due and whose host has capacity, and make it active; None if there is none."""
        if (item := self._next_retry(now, has_capacity)) is not None:
            return item
        if not self._window:
            waiting = self._items.open_items(self.job_id, _WINDOW + len(self.active))
            self._window.extend(item for item in waiting if item.position not in self.active)
        for _ in range(len(self._window)):
            item = self._window.popleft()
            # A shallower page that is being read might lead to this one by a shorter path.
            has_turn = item.depth <= min(self._depths.values(), default=item.depth)
            if has_turn and has_capacity(host_of(item)):
                return self._activate(item)
            self._window.append(item)
        return None

    def postpone(self, position: int, when: float) -> None:
        """Schedule a retry of an active item at `when`."""
        if position == DISCOVERY:
            self._discover_at = when
            return
        self._depths.pop(position, None)
        heapq.heappush(self._retries, (when, position))

    def next_time(self, now: float) -> float | None:
        """Return the time of the first retry after `now`; None if there is none."""
        times = [when for when, _ in self._retries]
        times += [] if self._discover_at is None else [self._discover_at]
        return min((when for when in times if when > now), default=None)

    def record_response(self, host: str, position: int, *, timed_out: bool) -> None:
        """Record whether a request to `host` timed out.

        Time-outs of retries and of silent hosts are ignored, as they say nothing new about the network.
        """
        if timed_out and (self.tries[position] or self.is_silent(host)):
            return
        self._host_timeouts[host] = self._host_timeouts[host] + 1 if timed_out else 0
        self._job_timeouts = self._job_timeouts + 1 if timed_out else 0

    def is_silent(self, host: str) -> bool:
        return self._host_timeouts[host] >= SILENT_AFTER

    def is_offline(self) -> bool:
        """Return whether no host answers; if so, reset the count."""
        is_offline = self._job_timeouts >= OFFLINE_AFTER
        self._job_timeouts = 0 if is_offline else self._job_timeouts
        return is_offline

    def clear_window(self) -> None:
        """Discard prefetched items, as some of them have a result by now."""
        self._window.clear()

    def release(self, position: int) -> None:
        """Forget an item that has its result or will start from scratch."""
        self.active.discard(position)
        self._depths.pop(position, None)
        self.tries.pop(position, None)

    def forget(self) -> None:
        """Discard prefetched items and scheduled retries; the database still has them."""
        self._window.clear()
        if self._discover_at is not None:
            self.active.discard(DISCOVERY)
        self.active -= {position for _, position in self._retries}
        self._retries.clear()

    def _next_retry(self, now: float, has_capacity: Callable[[str], bool]) -> JobItem | None:
        if not self._retries or self._retries[0][0] > now:
            return None
        when, position = heapq.heappop(self._retries)
        item = self._items.item(self.job_id, position)
        if item is None or item.result is not None:
            self.release(position)
            return None
        if not has_capacity(host_of(item)):
            heapq.heappush(self._retries, (when, position))
            return None
        return self._activate(item)

    def _activate(self, item: JobItem) -> JobItem:
        self.active.add(item.position)
        self._depths[item.position] = item.depth
        return item


def host_of(item: JobItem) -> str:
    """Return the host that the item's page is fetched from; "" if it is not fetched."""
    if item.kind not in ("", "web"):
        return ""
    parts = split_url(item.url)
    return parts.netloc if parts.scheme in ("http", "https") else ""


class JobSpeed:
    """The speed of a job, by the items finished in the last WINDOW seconds. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began = clock()
        self._ends: deque[float] = deque()

    def count_item(self) -> None:
        """Record that one more item of the job is done."""
        with self._lock:
            self._ends.append(self._clock())

    def rate(self) -> float | None:
        """Return the recent number of items per minute; None while too few are done."""
        with self._lock:
            moment = self._clock()
            while self._ends and self._ends[0] < moment - WINDOW:
                self._ends.popleft()
            seconds = min(WINDOW, moment - self._began)
            return 60.0 * len(self._ends) / seconds if len(self._ends) >= _MIN_ITEMS and seconds > 0 else None


Outcome = LoadedPage | IngestResult | int
_CLOSING_SECONDS = 10.0
_FAULT_SECONDS = 5.0
_STORE_FAULTS = 3
RENEW_SECONDS = 5.0


class Worker:
    """A worker for all running jobs without another process's lease, in turns of one page. Its queue is the database.

    Owners take turns, however many jobs each of them has.
    """

    def __init__(
        self,
        database: Database,
        open_steps: Callable[[Job], Steps],
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
    ) -> None:
        """`open_steps` may take long and raise RagError. `clock` measures the speed of jobs."""
        self._database = database
        self._jobs = database.jobs
        self._items = database.items
        self._open_steps = open_steps
        self._clock = clock
        self._ahead: ReadAhead[Outcome] = ReadAhead(limits, _size_of)
        self._process = Process()
        self._runs: dict[str, JobRun] = {}
        self._turns: dict[str, int] = {}  # by owner
        self._storing: tuple[str, set[int]] = "", set()
        self._store_lock = threading.Lock()
        self._start_lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="imports", daemon=True)
        self._lease_thread = threading.Thread(target=self._renew, name="leases", daemon=True)

    def start(self) -> None:
        """Start to check every few seconds for jobs that another process left."""
        with self._start_lock:
            if self._lease_thread.ident is None and not self._closed.is_set():
                self._lease_thread.start()

    def wake(self) -> None:
        """Check the database for a new job or a changed state. Starts the threads if necessary."""
        self.start()
        with self._start_lock:
            if self._thread.ident is None and not self._closed.is_set():
                self._thread.start()
        self._ahead.wake()

    def close(self) -> None:
        """Stop after the current page, and release the jobs."""
        self._closed.set()
        self._ahead.close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_CLOSING_SECONDS)
        if self._lease_thread.is_alive():
            self._lease_thread.join(_CLOSING_SECONDS)
            with suppress(StoreError):
                self._jobs.release(self._process.name)

    def rate(self, job_id: str) -> float | None:
        """Return the recent number of the job's items per minute; None while unknown."""
        run = self._runs.get(job_id)
        return run.speed.rate() if run else None

    @contextmanager
    def block_storing(self, job_id: str) -> Iterator[set[int]]:
        """Block further storing; yield the positions of the job's pages being stored, or in progress elsewhere."""
        with self._store_lock:
            storing_job, positions = self._storing
            if job_id not in self._runs:
                yield {item.position for item in self._items.current_items(job_id)}
            else:
                yield positions if storing_job == job_id else set()

    def finish_cancelled_items(self) -> None:
        """Record a result for items that were in progress when their job was cancelled, once no worker has it."""
        for job_id in self._jobs.cancelled_with_open_items():
            self._items.finish_open(job_id, make_cancellation)

    def _work(self) -> None:
        while not self._closed.is_set():
            try:
                with_unlimited_wait(self._step, self._closed.is_set)()
            except LibraryMovedError:
                self._start_over()
            except Exception:  # the thread's outermost handler: database failures end up here, and may pass
                if not self._closed.is_set():
                    log.exception("Imports were interrupted by an error; retrying")
                    self._closed.wait(_FAULT_SECONDS)
                    self._start_over()

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_SECONDS):
            try:
                self._jobs.renew_leases(self._process.name)
                self.finish_cancelled_items()
                if self._jobs.has_running():
                    self.wake()  # for a job that another process left or changed
            except StoreError as error:
                log.info("leases: %s", error)

    def _lease(self) -> dict[str, int]:
        return self._jobs.acquire_leases(self._process.name, lambda name: self._process.may_be_alive(name, time.time()))

    def _step(self) -> None:
        for job_id, token in self._lease().items():
            if job_id not in self._runs:
                self._open(job_id, token)
        running = self._lease()  # opening a job may have taken long
        for job_id, run in [*self._runs.items()]:
            self._retire(job_id, running.get(job_id) == run.token)
        now = time.monotonic()
        self._begin(running, now)
        by_job: dict[str, list[ReadResult[Outcome]]] = {}
        # Items that were due by `now` but did not begin are waiting for capacity, not for a time.
        retries = [when for run in self._runs.values() if (when := run.next_time(now)) is not None]
        timeout = max(0.0, min(retries) - time.monotonic()) if retries else None
        for item in self._ahead.take(MAX_GROUP, timeout):
            by_job.setdefault(item.group, []).append(item)
        for job_id, results in by_job.items() if not self._closed.is_set() else ():
            self._finish(job_id, results)

    # Beginning and end of jobs

    def _open(self, job_id: str, token: int) -> None:
        job = self._jobs.job(job_id)
        if job is None:
            return
        self._items.requeue_running(job_id)
        try:
            steps = self._open_steps(job)
        except StoreUnavailableError:
            return  # shutting down; otherwise the next step tries again
        except RagError as error:
            self._fail(job_id, token, error.notice)
        except Exception:  # an internal error ends this job, not the others
            log.exception("import %s could not start", job_id)
            self._fail(job_id, token, Notice("unexpected"))
        else:
            self._runs[job_id] = JobRun(job_id, token, steps, self._items, JobSpeed(self._clock))

    def _fail(self, job_id: str, token: int, notice: Notice) -> None:
        """End a job that cannot begin: each item fails for the same reason."""
        with self._store_lock, self._database.transaction(lock_name=job_id):
            if not self._jobs.renew_lease(job_id, token) or not self._jobs.set_state(
                job_id, "done", notice, from_states=["running"]
            ):
                return
            self._items.finish_open(job_id, lambda item: make_result(item, "failed", notice))
            job = self._jobs.job(job_id)
            if job is not None and job.discovery == "waiting":
                self._jobs.set_discovery(job_id, "failed", notice)

    def _retire(self, job_id: str, is_running: bool) -> None:
        """Drop a job that is done, paused, cancelled, deleted or leased elsewhere, once none of it is in progress."""
        run = self._runs[job_id]
        if is_running:
            if not run.is_idle():
                return
            if not self._jobs.end_if_done(job_id):
                run.reopen_discovery(self._jobs.job(job_id))
                return
        run.forget()
        if not is_running and self._jobs.state(job_id) != "paused":
            for position in self._ahead.drop(job_id):
                run.release(position)
        if not run.active:
            del self._runs[job_id]
            self._jobs.release(self._process.name, job_id)

    def _start_over(self) -> None:
        """Forget everything in progress: the database knows what remains to be done."""
        for job_id in self._runs:
            self._ahead.drop(job_id)
        self._runs.clear()

    # Reading

    def _begin(self, running: Mapping[str, int], now: float) -> None:
        """Begin to read pages, one from each owner's jobs in turn, up to the limits."""
        while self._ahead.has_capacity():
            runs = sorted(self._runs.values(), key=lambda run: (self._turns.get(run.owner, 0), run.turn))
            for run in runs:
                if running.get(run.job_id) == run.token and self._begin_one(run, now):
                    run.turn = self._turns[run.owner] = 1 + max(self._turns.values(), default=0)
                    break
            else:
                return

    def _begin_one(self, run: JobRun, now: float) -> bool:
        if run.claim_discovery(now):
            find = partial(run.steps.find, self._closed.is_set)
            self._ahead.begin(run.job_id, DISCOVERY, "", with_unlimited_wait(find, self._closed.is_set))
            return True
        item = run.next_item(now, self._ahead.has_capacity)
        if item is None:
            return False
        self._items.start_attempt(run.job_id, item.position)
        read = with_unlimited_wait(partial(run.steps.read, item), self._closed.is_set)
        self._ahead.begin(run.job_id, item.position, host_of(item), read)
        return True

    # Storing

    def _finish(self, job_id: str, results: Sequence[ReadResult[Outcome]]) -> None:
        """Store the results of reading some items of one job."""
        run = self._runs.get(job_id)
        if run is None:
            return
        items = []
        with self._store_lock:
            for result in results:
                if result.position == DISCOVERY:
                    continue
                if (item := self._items.find_open(job_id, result.position)) is None:
                    run.release(result.position)
                else:
                    items.append((item, result))
            self._storing = job_id, {item.position for item, _ in items}
        try:
            rows = self._collect_rows(run, items)
            with self._database.transaction():
                is_ours = self._jobs.renew_lease(job_id, run.token)
                for position, row in rows.items() if is_ours else ():
                    self._items.finish(job_id, position, row)
            for position in rows:
                run.speed.count_item()
                run.release(position)
        finally:
            self._storing = "", set()
        for result in results:
            if result.position == DISCOVERY:
                self._finish_discovery(run, result)

    def _collect_rows(
        self, run: JobRun, items: Sequence[tuple[JobItem, ReadResult[Outcome]]]
    ) -> dict[int, IngestResult]:
        """Return the results of items by position, except those to be tried again later."""
        rows: dict[int, IngestResult] = {}
        loaded_pages: list[tuple[JobItem, LoadedPage, float]] = []
        for item, result in items:
            self._record_timeout(run, host_of(item), result)
            error = result.error or (result.value.error if isinstance(result.value, LoadedPage) else None)
            if isinstance(error, RagError) and self._postpone(run, item.position, error, host_of(item)):
                continue
            if result.error is not None:
                rows[item.position] = self._report_fault(run, item, result.error, result.began)
            elif isinstance(result.value, LoadedPage):
                loaded_pages.append((item, result.value, result.began))
            else:
                assert isinstance(result.value, IngestResult)
                rows[item.position] = result.value
        return rows | self._store(run, loaded_pages)

    def _store(self, run: JobRun, loaded_pages: Sequence[tuple[JobItem, LoadedPage, float]]) -> dict[int, IngestResult]:
        rows: dict[int, IngestResult] = {}
        is_paused = self._jobs.state(run.job_id) == "paused"  # perhaps because of database errors on earlier pages
        try:
            outcomes: Sequence[IngestResult | Exception] = run.steps.store_all(loaded_pages) if loaded_pages else []
        except LibraryMovedError:
            raise
        except Exception as error:
            if len(loaded_pages) > 1:
                log.exception("Could not store %d pages together; storing them one by one", len(loaded_pages))
                for loaded in loaded_pages:
                    rows |= self._store(run, [loaded])
                return rows
            outcomes = [error]
        for outcome in outcomes:
            if isinstance(outcome, LibraryMovedError):
                raise outcome  # everything is read again, and encoded by the new model
        for (item, _, began), outcome in zip(loaded_pages, outcomes, strict=True):
            if isinstance(outcome, IngestResult):
                run.store_faults = 0
                rows[item.position] = outcome
            elif isinstance(outcome, StoreUnavailableError):
                self._postpone(run, item.position, outcome)
            elif isinstance(outcome, StoreError) and is_paused:
                self._items.set_stage(run.job_id, item.position, "waiting")
                run.release(item.position)
            else:
                rows[item.position] = self._report_fault(run, item, outcome, began)
                is_paused = isinstance(outcome, StoreError) and not run.store_faults
        return rows

    def _report_fault(self, run: JobRun, item: JobItem, error: Exception, began: float) -> IngestResult:
        """Return the result of an item that failed for good."""
        if not isinstance(error, RagError):  # an internal error costs one page, not the job
            log.error("Could not import %s", item.source[:200], exc_info=error)
            return make_result(item, "failed", Notice("unexpected"))
        log.info("%s: %s", item.source[:200], error, exc_info=error.__cause__)
        if isinstance(error, StoreError):
            # Pause the job before a database that is down or full fails all its pages.
            run.store_faults += 1
            if run.store_faults >= _STORE_FAULTS:
                self._pause(run, Notice("store_stopped_job", because(error.code, **error.notice.params)))
                run.store_faults = 0
        return run.steps.fail(item, error, began)

    def _postpone(self, run: JobRun, position: int, error: RagError, host: str = "") -> bool:
        """Postpone an item after a temporary failure; return False if it should not be retried."""
        if self._closed.is_set():
            return True  # interrupted by shutdown; the item waits for the next start
        if error.code == "timeout" and run.is_silent(host):
            return False
        run.tries[position] += 1
        delay = delay_before(error, run.tries[position])
        if delay is None:
            return False
        if position != DISCOVERY:
            self._items.set_stage(run.job_id, position, "waiting")
        run.postpone(position, time.monotonic() + delay)
        return True

    def _record_timeout(self, run: JobRun, host: str, result: ReadResult[Outcome]) -> None:
        """Record time-outs, and give up on a host with too many in a row: it would delay the job for hours."""
        if not host or isinstance(result.value, IngestResult):
            return
        error = result.error or (result.value.error if isinstance(result.value, LoadedPage) else None)
        run.record_response(host, result.position, timed_out=isinstance(error, RagError) and error.code == "timeout")
        if run.is_silent(host):
            notice = Notice("host_silent", {"host": host, "count": SILENT_AFTER})
            with self._database.transaction(lock_name=run.job_id):
                if self._jobs.renew_lease(run.job_id, run.token):
                    others = {item.position for item in self._items.open_items(run.job_id) if host_of(item) != host}
                    self._items.finish_open(
                        run.job_id, lambda item: make_result(item, "failed", notice), others | run.active
                    )
            run.clear_window()
        if run.is_offline():
            self._pause(run, Notice("timeouts_stopped_job", {"count": OFFLINE_AFTER}))

    def _pause(self, run: JobRun, notice: Notice) -> None:
        with self._database.transaction():
            if self._jobs.renew_lease(run.job_id, run.token):
                self._jobs.set_state(run.job_id, "paused", notice, from_states=["running"])

    def _finish_discovery(self, run: JobRun, result: ReadResult[Outcome]) -> None:
        discovery: Discovery = "failed"
        try:
            count = result.result()
            discovery = "done"
            notice = Notice("nothing_to_recheck") if count == 0 and run.steps.job.kind == "recheck" else None
        except RagError as error:
            if self._postpone(run, DISCOVERY, error):
                return
            notice = error.notice
        except Exception:  # an internal error: the job reports it
            log.exception("import %s: could not find its pages", run.job_id)
            notice = Notice("unexpected")
        with self._database.transaction():
            if self._jobs.renew_lease(run.job_id, run.token):
                self._jobs.set_discovery(run.job_id, discovery, notice)
        run.release(DISCOVERY)


def _size_of(outcome: Outcome) -> int:
    """Return the approximate size of an outcome in bytes."""
    if not isinstance(outcome, LoadedPage):
        return 0
    return 4 * len(outcome.page.text) + (outcome.prepared.size if outcome.prepared else 0)
