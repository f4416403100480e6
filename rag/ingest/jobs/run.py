"""The state of one running job in its worker: next items, retries, speed and time remaining."""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from rag.ingest.jobs.steps import Steps
from rag.store.sql.job_table import ItemTable, Job, JobItem
from rag.web.url_key import split_url

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

    `token` is that of the lease on the job. `turn` grows with each item that is begun.
    """

    def __init__(self, job_id: str, token: int, steps: Steps, items: ItemTable) -> None:
        self.job_id = job_id
        self.token = token
        self.turn = 0
        self.owner = steps.job.owner
        self.steps = steps
        self.active: set[int] = set()
        self.store_faults = 0
        self._host_timeouts: Counter[str] = Counter()
        self._job_timeouts = 0
        self._discover_at = 0.0 if steps.job.discovery == "waiting" else None
        self._items = items
        self._depths: dict[int, int] = {}
        self._window: deque[JobItem] = deque()
        self._retries: list[tuple[float, int]] = []
        self._tries: Counter[int] = Counter()

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
            self._fill()
        for _ in range(len(self._window)):
            item = self._window.popleft()
            if has_capacity(host_of(item)) and self._has_turn(item):
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

    def count_failure(self, position: int) -> int:
        """Count a failed attempt at the item; return the number of failures."""
        self._tries[position] += 1
        return self._tries[position]

    def record_response(self, host: str, position: int, *, timed_out: bool) -> None:
        """Record whether a request to `host` timed out.

        Time-outs of retries and of silent hosts are ignored, as they say nothing new about the network.
        """
        if timed_out and (self._tries[position] or self.is_silent(host)):
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
        self._tries.pop(position, None)

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

    def _has_turn(self, item: JobItem) -> bool:
        """Return whether no shallower page is being read, which might lead to this one by a shorter path."""
        return item.depth <= min(self._depths.values(), default=item.depth)

    def _activate(self, item: JobItem) -> JobItem:
        self.active.add(item.position)
        self._depths[item.position] = item.depth
        return item

    def _fill(self) -> None:
        waiting = self._items.open_items(self.job_id, _WINDOW + len(self.active))
        self._window.extend(item for item in waiting if item.position not in self.active)


def host_of(item: JobItem) -> str:
    """Return the host that the item's page is fetched from; "" if it is not fetched."""
    if item.kind not in ("", "web"):
        return ""
    parts = split_url(item.url)
    return parts.netloc if parts.scheme in ("http", "https") else ""


class JobSpeed:
    """The speed of jobs, by the items finished in the last WINDOW seconds. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[str, float] = {}
        self._ends: dict[str, deque[float]] = {}

    def begin(self, job_id: str) -> None:
        """Record that work on the job begins or resumes."""
        with self._lock:
            self._began[job_id] = self._clock()
            self._ends[job_id] = deque()

    def count_item(self, job_id: str) -> None:
        """Record that one more item of the job is done."""
        with self._lock:
            self._ends.setdefault(job_id, deque()).append(self._clock())

    def forget(self, job_id: str) -> None:
        with self._lock:
            self._began.pop(job_id, None)
            self._ends.pop(job_id, None)

    def rate(self, job_id: str) -> float | None:
        """Return the recent number of items per minute; None while too few are done."""
        with self._lock:
            began, ends = self._began.get(job_id), self._ends.get(job_id)
            if began is None or not ends:
                return None
            moment = self._clock()
            while ends and ends[0] < moment - WINDOW:
                ends.popleft()
            seconds = min(WINDOW, moment - began)
            return 60.0 * len(ends) / seconds if len(ends) >= _MIN_ITEMS and seconds > 0 else None

    def seconds_left(self, job_id: str, waiting: int) -> float | None:
        """Return how many seconds `waiting` items will take at this rate; None while unknown."""
        rate = self.rate(job_id)
        return None if not rate else 60.0 * waiting / rate
