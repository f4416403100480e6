"""The one thread with the one event loop in which all runs live, and how fast threads and streams go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 32  # for what blocks: searches that hang must not take all of them

_REST, _LONGEST_REST = 2.0, 0.5  # times as long as the rows took, and seconds at most
_FEW: Final = 10  # texts at once that are handed on piece by piece
_SHARE, _LONGEST_PAUSE = 0.01, 0.5  # seconds between two pieces, for each text: screens look half as often


def paced(rows: Iterable[T], every: int) -> Iterator[T]:
    """The rows, with a pause after each `every` of them in which others get on.

    A thread that works through these takes a third of its time, so that whoever draws a page waits for a few rows.
    """
    began = time.monotonic()
    for number, row in enumerate(rows, 1):
        yield row
        if number % every == 0:
            time.sleep(min(_LONGEST_REST, _REST * (time.monotonic() - began)))
            began = time.monotonic()


class Pace:
    """How long a text that streams may wait to be handed on: not at all while few do. Used in one event loop."""

    def __init__(self) -> None:
        self._texts = 0

    @property
    def pause(self) -> float:
        """Seconds."""
        return min(_LONGEST_PAUSE, _SHARE * self._texts) if self._texts > _FEW else 0.0

    @contextmanager
    def text(self) -> Iterator[None]:
        """While one is streamed."""
        self._texts += 1
        try:
            yield
        finally:
            self._texts -= 1


class Background:
    """Starts its thread when it is first needed, and never stops it.

    There is one for the whole process: chat libraries share their open connections between models,
    and a connection belongs to the loop that opened it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="runs"))
                threading.Thread(target=self._loop.run_forever, name="runs", daemon=True).start()
            return self._loop

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` in the loop, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop()).result()


BACKGROUND: Final = Background()
PACE: Final = Pace()
