"""How fast a job goes, and how long it may still take."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

WINDOW = 60.0
_FEWEST = 3


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
