"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rag.conversations.conversations import Conversations, TurnView
from rag.runs.runs import Runs


def until(happens: Callable[[], Any]) -> Any:
    """Call `happens` until it returns something true, which is returned."""
    end = time.monotonic() + 120
    while not (found := happens()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def until_event(runs: Runs, run_id: str, kind: str) -> None:
    """Wait for the run's first event of this kind."""
    until(lambda: any(event.kind == kind for event in runs.events(run_id)))


def until_waiting(conversations: Conversations, turn_id: str, owner: str = "") -> TurnView:
    """Return the turn once it waits for the user."""
    turn: TurnView = until(lambda: (one := conversations.turn(turn_id, owner)).waits and one)
    return turn
