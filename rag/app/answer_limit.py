"""Limit on one person's simultaneous questions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rag.conversations.conversations import TurnHandle
from rag.errors import RagError


class AnswerLimit:
    """Starts answers while a person has fewer than `most` running. Safe to share between threads."""

    def __init__(self, is_running: Callable[[str], bool], most: int) -> None:
        """`is_running` returns whether the run with an id has not ended."""
        self._is_running = is_running
        self._most = most
        self._lock = threading.Lock()
        self._runs: dict[str, set[str]] = {}

    def begin(self, person: str, start: Callable[[], TurnHandle]) -> TurnHandle:
        """Run `start` within the limit; an empty `person` has none. Raises RagError("too_many_answers")."""
        if not person:
            return start()
        with self._lock:
            self._runs = {
                key: live for key, runs in self._runs.items() if (live := set(filter(self._is_running, runs)))
            }
            if len(self._runs.get(person, ())) >= self._most:
                raise RagError("too_many_answers", most=self._most)
            turn = start()
            self._runs.setdefault(person, set()).add(turn.run_id)
            return turn
