"""Periodic maintenance while the app runs, in a background thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rag.errors import StoreAwayError

log = logging.getLogger(__name__)

_SECONDS = 300.0


class Maintenance:
    """Calls `tidy` at its start and every five minutes. Failures are logged, and retried the next time."""

    def __init__(self, tidy: Callable[[], None]) -> None:
        self._tidy = tidy
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Start nothing more, and wait for work in progress."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._tidy()
            except StoreAwayError as error:
                log.info("upkeep waits: %s", error)
            except Exception:  # ends the thread otherwise, and nothing would be tidied until the next start
                log.exception("upkeep failed")
            self._closed.wait(_SECONDS)
