"""Which failures pass by themselves, and how long to wait before another try."""

from __future__ import annotations

from rag.errors import RagError, StoreAwayError

RETRIES = 2
RETRIES_AFTER_TIMEOUT = 1
"""A time-out has cost its whole deadline already."""
_DELAYS = (1.0, 4.0)
_AWAY = 5.0
MAX_DELAY = 60.0
_PASSING_STATUS = frozenset([408, 425, 429])


def is_temporary(error: RagError) -> bool:
    """Whether the same request may well succeed a little later: time-outs, 429, 5xx, broken connections."""
    params = error.notice.params
    if error.code == "http_error":
        status = int(params.get("status", 0))
        return status in _PASSING_STATUS or status >= 500
    return error.code == "timeout" or (error.code == "unreachable" and error.notice.cause == "broken_off")


def delay_before(error: RagError, tries: int) -> float | None:
    """Seconds to wait after the failed try number `tries` (from 1); None when there is to be no other.

    What the server asks for with Retry-After counts, up to MAX_DELAY. For a database there is always another.
    """
    if isinstance(error, StoreAwayError):
        return _AWAY
    retries = RETRIES_AFTER_TIMEOUT if error.code == "timeout" else RETRIES
    if tries > retries or not is_temporary(error):
        return None
    asked = float(error.notice.params.get("retry_after") or 0.0)
    return min(max(_DELAYS[tries - 1], asked), MAX_DELAY)
