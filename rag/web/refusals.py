"""Fetch failures as errors with a message for the user."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import httpcore

from rag.errors import FetchError
from rag.types import because
from rag.web import transport
from rag.web.body import CorruptError, TooLargeError, UnknownEncodingError
from rag.web.guard import CheckedUrl, printable

MEGABYTE = 1024 * 1024


def redirect_refusal(entered: str, target: str, error: FetchError) -> FetchError:
    """Return the error for a blocked redirect target, naming the entered address."""
    reason = error.notice.params["reason"]
    return FetchError("blocked", url=printable(entered), **because("led_to", target=printable(target), reason=reason))


def status_cause(status: int) -> str:
    """Return the code of the cause for an unsuccessful HTTP status."""
    if status in (404, 410):
        return "gone"
    if status in (401, 403, 407, 451):
        return "forbidden"
    if status == 429:
        return "too_many"
    return "server_fault" if status >= 500 else "other_status"


def raise_too_large(url: str, limit: int) -> NoReturn:
    """Raise FetchError for a body of more than `limit` bytes."""
    raise FetchError("too_large", url=printable(url), limit=limit // MEGABYTE)


@contextmanager
def body_errors(url: str, limit: int, encoding: str) -> Iterator[None]:
    """Turn errors in a body of at most `limit` bytes with this Content-Encoding into FetchError."""
    try:
        yield
    except (TooLargeError, transport.WireLimitError):
        raise_too_large(url, limit)
    except UnknownEncodingError:
        raise FetchError(
            "unreadable", url=printable(url), **because("encoding", encoding=printable(encoding, 60))
        ) from None
    except CorruptError as error:
        raise FetchError("unreadable", url=printable(url), **because("corrupt")) from error


@contextmanager
def plain_errors(entered: str, checked: CheckedUrl, budget: transport.Budget) -> Iterator[None]:
    """Turn network errors into FetchError."""
    url = printable(entered)
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchError("timeout", url=url, seconds=round(budget.seconds)) from error
    except transport.NameNotFoundError as error:
        raise FetchError("unresolved", url=url, host=str(error)) from error
    except transport.WireLimitError:
        raise_too_large(entered, MEGABYTE)  # outside a body, only headers are read
    except httpcore.ConnectError as error:
        cause = "tls" if any(isinstance(inner, ssl.SSLError) for inner in error.args) else "refused"
        raise FetchError("unreachable", url=url, **because(cause, host=checked.host)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchError("unreachable", url=url, **because("broken_off", host=checked.host)) from error
