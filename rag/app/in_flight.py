"""Limit on one person's simultaneous questions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rag.conversations.conversations import Asked
from rag.errors import RagError


class InFlight:
    """Begins answers as long as a person has fewer than `most` under way. Safe to share between threads."""

    def __init__(self, goes_on: Callable[[str], bool], most: int) -> None:
        """`goes_on` tells whether a run, by its id, has not ended."""
        self._goes_on = goes_on
        self._most = most
        self._lock = threading.Lock()
        self._runs: dict[str, set[str]] = {}

    def begin(self, person: str, start: Callable[[], Asked]) -> Asked:
        """Run `start` within the limit; an empty `person` has none. Raises RagError("too_many_answers")."""
        if not person:
            return start()
        with self._lock:
            self._runs = {one: left for one, runs in self._runs.items() if (left := set(filter(self._goes_on, runs)))}
            if len(self._runs.get(person, ())) >= self._most:
                raise RagError("too_many_answers", most=self._most)
            asked = start()
            self._runs.setdefault(person, set()).add(asked.run_id)
            return asked
