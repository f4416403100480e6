"""Temporary failures, and the delay before another try."""

from __future__ import annotations

from rag.errors import RagError, StoreAwayError

RETRIES = 2
RETRIES_AFTER_TIMEOUT = 1
"""Fewer than for other failures: a time-out has already taken its whole deadline."""
_DELAYS = (1.0, 4.0)
_STORE_DELAY = 5.0
MAX_DELAY = 60.0
_TEMPORARY_STATUS = frozenset([408, 425, 429])


def is_temporary(error: RagError) -> bool:
    """True if the same request may succeed a little later: time-outs, 429, 5xx, broken connections."""
    params = error.notice.params
    if error.code == "http_error":
        status = int(params.get("status", 0))
        return status in _TEMPORARY_STATUS or status >= 500
    return error.code == "timeout" or (error.code == "unreachable" and error.notice.cause == "broken_off")


def delay_before(error: RagError, tries: int) -> float | None:
    """Return the seconds to wait after failed try number `tries` (from 1); None if there is to be no other.

    The server's Retry-After counts, up to MAX_DELAY. A database that is away is always tried again.
    """
    if isinstance(error, StoreAwayError):
        return _STORE_DELAY
    retries = RETRIES_AFTER_TIMEOUT if error.code == "timeout" else RETRIES
    if tries > retries or not is_temporary(error):
        return None
    retry_after = float(error.notice.params.get("retry_after") or 0.0)
    return min(max(_DELAYS[tries - 1], retry_after), MAX_DELAY)
