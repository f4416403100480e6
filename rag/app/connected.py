"""The chat models that people connected: in memory only, each for one browser, and not for long."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag.app.chat_models import ChatOptions

KEPT_SECONDS: Final = 12 * 3600.0
MOST_KEPT: Final = 1000


class Connected:
    """Safe to share between threads. Nothing of it is ever written down.

    `browser` is the secret id of a browser session, `owner` whoever is signed in there, or empty: a browser whose
    person changes has connected nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, str, ChatOptions]] = OrderedDict()  # oldest first

    def keep(self, browser: str, owner: str, options: ChatOptions) -> None:
        """From now on for KEPT_SECONDS, in the place of what was connected before; the oldest of too many goes."""
        with self._lock:
            self._kept.pop(browser, None)
            self._kept[browser] = (self._clock() + KEPT_SECONDS, owner, options)
            self._sweep()

    def of(self, browser: str, owner: str) -> ChatOptions | None:
        with self._lock:
            self._sweep()
            _, person, options = self._kept.get(browser, (0.0, "", None))
            if options is not None and person != owner:
                del self._kept[browser]
                return None
            return options

    def forget(self, browser: str) -> None:
        with self._lock:
            self._kept.pop(browser, None)

    def _sweep(self) -> None:
        now = self._clock()
        while self._kept:
            oldest, (until, _, _) = next(iter(self._kept.items()))
            if until > now and len(self._kept) <= MOST_KEPT:
                return
            del self._kept[oldest]
