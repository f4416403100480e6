"""What went wrong with a fetch, as the error that a person is told."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import httpcore

from rag.errors import FetchError
from rag.messages.ingest import because
from rag.web import transport
from rag.web.guard import CheckedUrl, shown

MEGABYTE = 1024 * 1024


def led_to_refusal(given: str, target: str, error: FetchError) -> FetchError:
    """The refusal `error` of a redirect's target, told about the address that was typed."""
    params = dict(error.notice.params)
    told = because("led_to", target=shown(target), why_en=params["why_en"], why_zh=params["why_zh"])
    return FetchError("blocked", **{**params, **told, "cause": params["cause"], "url": shown(given)})


def status_cause(status: int) -> str:
    """The code of the cause that an HTTP status other than success tells."""
    if status in (404, 410):
        return "gone"
    if status in (401, 403, 407, 451):
        return "forbidden"
    if status == 429:
        return "too_many"
    return "server_fault" if status >= 500 else "other_status"


def too_large(url: str, limit: int) -> NoReturn:
    """Raise FetchError for a body of more than `limit` bytes."""
    raise FetchError("too_large", url=shown(url), limit=limit // MEGABYTE)


@contextmanager
def plain_errors(given: str, first: CheckedUrl, budget: transport.Budget) -> Iterator[None]:
    """Turn what the network throws into a FetchError."""
    url = shown(given)
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchError("timeout", url=url, seconds=round(budget.seconds)) from error
    except transport.NameNotFoundError as error:
        raise FetchError("unresolved", url=url, host=str(error)) from error
    except transport.WireLimitError:
        too_large(given, MEGABYTE)  # nothing but headers is read outside of a body
    except httpcore.ConnectError as error:
        cause = "tls" if any(isinstance(inner, ssl.SSLError) for inner in error.args) else "refused"
        raise FetchError("unreachable", url=url, **because(cause, host=first.host)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchError("unreachable", url=url, **because("broken_off", host=first.host)) from error
