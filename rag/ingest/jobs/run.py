"""One running job as its worker holds it: what comes next, what must wait, how fast it goes, how long it takes."""

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
"""Pages in a row that a host lets run out of time before its other pages are given up."""
UNREACHED_AFTER = 20
"""The same of all hosts of a job, after which it pauses: then it is the network."""
FINDING = -1
"""The position under which the search for a job's addresses goes."""
_WINDOW = 256
WINDOW = 60.0
_FEWEST = 3


class Run:
    """`held` are the positions that are begun or wait for another try; they are not begun again.

    `token` is that of the lease on the job. `turn` grows with each item that is begun.
    """

    def __init__(self, job_id: str, token: int, steps: Steps, items: ItemTable) -> None:
        self.job_id = job_id
        self.token = token
        self.turn = 0
        self.owner = steps.job.owner
        self.steps = steps
        self.held: set[int] = set()
        self.store_faults = 0
        self._silences: Counter[str] = Counter()
        self._unreached = 0
        self._find_at = 0.0 if steps.job.discovery == "waiting" else None
        self._items = items
        self._depths: dict[int, int] = {}
        self._window: deque[JobItem] = deque()
        self._later: list[tuple[float, int]] = []
        self._tries: Counter[int] = Counter()

    def takes_finding(self, now: float) -> bool:
        """Whether the job's addresses are to be looked for now; that is held from then on."""
        if self._find_at is None or self._find_at > now:
            return False
        self._find_at = None
        self.held.add(FINDING)
        return True

    def is_idle(self) -> bool:
        """Whether nothing of the job is under way or known to wait."""
        return not self.held and not self._window and self._find_at is None

    def look_again(self, job: Job | None) -> None:
        """Somebody gave the job something to do after it seemed to be at its end."""
        if job is not None and job.discovery == "waiting":
            self._find_at = 0.0

    def next_item(self, now: float, has_room: Callable[[str], bool]) -> JobItem | None:
        """The first item that may be begun: its time has come, and its host has room. It is held from then on."""
        if (item := self._due(now, has_room)) is not None:
            return item
        if not self._window:
            self._fill()
        for _ in range(len(self._window)):
            item = self._window.popleft()
            if has_room(host_of(item)) and self._has_turn(item):
                return self._hold(item)
            self._window.append(item)
        return None

    def later(self, position: int, when: float) -> None:
        """Let a held item wait for another try at `when`."""
        if position == FINDING:
            self._find_at = when
            return
        self._depths.pop(position, None)
        heapq.heappush(self._later, (when, position))

    def next_time(self, now: float) -> float | None:
        """When the first of those that wait for another try after `now` may be begun."""
        times = [when for when, _ in self._later]
        times += [] if self._find_at is None else [self._find_at]
        return min((when for when in times if when > now), default=None)

    def failed_tries(self, position: int) -> int:
        """Count a failed try of the item; returns how many there were."""
        self._tries[position] += 1
        return self._tries[position]

    def note(self, host: str, position: int, *, timed_out: bool) -> None:
        """A request to `host` ran out of time, or ended otherwise.

        A second try, or one at a host known to be silent, tells nothing new about the network by running out too.
        """
        if timed_out and (self._tries[position] or self.is_silent(host)):
            return
        self._silences[host] = self._silences[host] + 1 if timed_out else 0
        self._unreached = self._unreached + 1 if timed_out else 0

    def is_silent(self, host: str) -> bool:
        return self._silences[host] >= SILENT_AFTER

    def is_cut_off(self) -> bool:
        """Whether nothing answers, whatever the host; tells it once."""
        cut_off = self._unreached >= UNREACHED_AFTER
        self._unreached = 0 if cut_off else self._unreached
        return cut_off

    def look_anew(self) -> None:
        """Some of the items that were looked up have a result by now."""
        self._window.clear()

    def release(self, position: int) -> None:
        """The item has its result, or is to be begun from new."""
        self.held.discard(position)
        self._depths.pop(position, None)
        self._tries.pop(position, None)

    def forget(self) -> None:
        """Begin nothing more of what was looked up; what waits for another try will be looked up again."""
        self._window.clear()
        if self._find_at is not None:
            self.held.discard(FINDING)
        self.held -= {position for _, position in self._later}
        self._later.clear()

    def _due(self, now: float, has_room: Callable[[str], bool]) -> JobItem | None:
        if not self._later or self._later[0][0] > now:
            return None
        when, position = heapq.heappop(self._later)
        item = self._items.item(self.job_id, position)
        if item is None or item.result is not None:
            self.release(position)
            return None
        if not has_room(host_of(item)):
            heapq.heappush(self._later, (when, position))
            return None
        return self._hold(item)

    def _has_turn(self, item: JobItem) -> bool:
        """A page that is deeper in its site than one being read waits: that one may lead to it by a shorter way."""
        return item.depth <= min(self._depths.values(), default=item.depth)

    def _hold(self, item: JobItem) -> JobItem:
        self.held.add(item.position)
        self._depths[item.position] = item.depth
        return item

    def _fill(self) -> None:
        waiting = self._items.open(self.job_id, _WINDOW + len(self.held))
        self._window.extend(item for item in waiting if item.position not in self.held)


def host_of(item: JobItem) -> str:
    """The host that the item's page comes from, empty for one that comes from none."""
    if item.kind not in ("", "web"):
        return ""
    parts = split_url(item.url)
    return parts.netloc if parts.scheme in ("http", "https") else ""


class Pace:
    """The items that jobs finished within the last WINDOW seconds. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[str, float] = {}
        self._ends: dict[str, deque[float]] = {}

    def begin(self, job_id: str) -> None:
        """The job is being worked on from now on, for the first time or again."""
        with self._lock:
            self._began[job_id] = self._clock()
            self._ends[job_id] = deque()

    def note(self, job_id: str) -> None:
        """One more item of the job is done."""
        with self._lock:
            self._ends.setdefault(job_id, deque()).append(self._clock())

    def forget(self, job_id: str) -> None:
        with self._lock:
            self._began.pop(job_id, None)
            self._ends.pop(job_id, None)

    def rate(self, job_id: str) -> float | None:
        """Items a minute of late; None while too few were done to tell."""
        with self._lock:
            began, ends = self._began.get(job_id), self._ends.get(job_id)
            if began is None or not ends:
                return None
            moment = self._clock()
            while ends and ends[0] < moment - WINDOW:
                ends.popleft()
            spent = min(WINDOW, moment - began)
            return 60.0 * len(ends) / spent if len(ends) >= _FEWEST and spent > 0 else None

    def seconds_left(self, job_id: str, waiting: int) -> float | None:
        """How long `waiting` items will take at this rate; None while that cannot be told."""
        rate = self.rate(job_id)
        return None if not rate else 60.0 * waiting / rate
