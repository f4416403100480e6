"""The background event loop that runs all questions, and throttling of threads and streams."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 32  # for blocking calls; hanging searches must not exhaust the pool

_PAUSE_FACTOR, _MAX_ROW_PAUSE = 2.0, 0.5  # times the duration of the rows, and max. seconds
_UNPACED_TEXTS: Final = 10  # concurrent texts that stream without a pause
_PAUSE_PER_TEXT, _MAX_TEXT_PAUSE = 0.01, 0.5  # seconds between pieces, per text, and max.: screens poll half as often


def throttle(rows: Iterable[T], every: int) -> Iterator[T]:
    """Yield the rows, pausing after every `every` rows so that other threads can run.

    Pauses take two thirds of the time, so page rendering waits for only a few rows.
    """
    began = time.monotonic()
    for number, row in enumerate(rows, 1):
        yield row
        if number % every == 0:
            time.sleep(min(_MAX_ROW_PAUSE, _PAUSE_FACTOR * (time.monotonic() - began)))
            began = time.monotonic()


class StreamPacer:
    """The pause between pieces of streamed texts, zero while few texts stream. For use in a single event loop."""

    def __init__(self) -> None:
        self._texts = 0

    @property
    def pause(self) -> float:
        """The pause between pieces, in seconds."""
        return min(_MAX_TEXT_PAUSE, _PAUSE_PER_TEXT * self._texts) if self._texts > _UNPACED_TEXTS else 0.0

    @contextmanager
    def text(self) -> Iterator[None]:
        """Count a text as streaming during the block."""
        self._texts += 1
        try:
            yield
        finally:
            self._texts -= 1


class Background:
    """An event loop in its own thread, started on first use and never stopped.

    The process has a single one, because chat libraries share open connections between models, and a connection is
    bound to the loop that opened it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="runs"))
                threading.Thread(target=self._loop.run_forever, name="runs", daemon=True).start()
            return self._loop

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop()).result()


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop
    except ImportError:  # there is no build for Windows
        return asyncio.new_event_loop()
    return new_event_loop()


BACKGROUND: Final = Background()
STREAM_PACER: Final = StreamPacer()
