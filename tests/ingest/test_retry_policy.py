"""Which failures pass, and how long is waited."""

from __future__ import annotations

from typing import Any

import pytest

from rag.errors import FetchError, IngestError, RagError, StoreError
from rag.ingest.retry_policy import MAX_DELAY, delay_before
from rag.types import because


def http_error(status: int, **more: Any) -> FetchError:
    return FetchError("http_error", url="u", status=status, **because("server_fault", status=status), **more)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (FetchError("timeout", url="u", seconds=30), True),
        (FetchError("unreachable", url="u", **because("broken_off", host="h")), True),
        (FetchError("unreachable", url="u", **because("refused", host="h")), False),
        (FetchError("unresolved", url="u", host="h"), False),
        *[(http_error(status), True) for status in (408, 429, 500, 502, 503, 504)],
        *[(http_error(status), False) for status in (400, 401, 403, 404, 410, 451)],
        (IngestError("no_text", url="u"), False),
        (StoreError("job_unknown"), False),
    ],
    ids=str,
)
def test_time_outs_and_busy_servers_pass(error: RagError, passes: bool) -> None:
    assert (delay_before(error, 1) is not None) == passes


def test_the_third_failure_counts() -> None:
    delays = [delay_before(http_error(500), tries) for tries in (1, 2, 3)]
    assert delays == [1.0, 4.0, None]


@pytest.mark.parametrize(("asked", "waited"), [(0, 1.0), (7, 7.0), (86_400, MAX_DELAY), (None, 1.0)])
def test_what_the_server_asks_for_counts_within_bounds(asked: int | None, waited: float) -> None:
    assert delay_before(http_error(503, retry_after=asked), 1) == waited
