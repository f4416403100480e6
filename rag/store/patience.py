"""How long a call of the store goes on while the database is away: less for a screen than for a question or a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

AWAY = frozenset({"store_away", "store_unreachable", "store_server_full"})
"""What a StoreAwayError may be called."""
QUESTION = 10.0  # seconds for which a call is made again before whoever waits is told
SCREEN = 3.0  # the same while a page is drawn


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one call goes on, and who may end that before."""

    seconds: float = QUESTION
    stopped: Callable[[], bool] = lambda: False


_ANYBODY = Patience()
current_patience: ContextVar[Patience] = ContextVar("patience", default=_ANYBODY)


@contextmanager
def patience(seconds: float, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Let the calls inside, on this thread, go on for so long before StoreAwayError; inf waits until `stopped`."""
    token = current_patience.set(Patience(seconds, stopped))
    try:
        yield
    finally:
        current_patience.reset(token)


def patiently(task: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> Callable[[], T]:
    """The task, part of a job: its calls wait for the server until `stopped`, on whichever thread it is done."""

    def waiting() -> T:
        with patience(math.inf, stopped):
            return task()

    return waiting
