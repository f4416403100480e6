"""Searching the open web through a service that the operator chose: Tavily by key, SearXNG by address.

The service is asked at exactly that address: no redirect is followed, no proxy of the environment is used, and of its
reply no more than MAX_REPLY_BYTES is read. What it finds are addresses like any that a person types: the pages behind
them are fetched by `rag.web.fetch`, through its guard.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rag.config import Settings
from rag.errors import WebSearchError
from rag.text import without_controls
from rag.web.url_key import browser_url, url_key

if TYPE_CHECKING:
    import httpx2

MAX_REPLY_BYTES: Final = 2_000_000
MAX_HITS: Final = 20
SECONDS: Final = 20.0
_MAX_QUERY: Final = 400
_MAX_TITLE, _MAX_SNIPPET = 300, 1_000
_TAVILY: Final = "https://api.tavily.com"
_HEADERS: Final = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "Pagelight"}


@dataclass(frozen=True, slots=True)
class WebHit:
    """A page that a search service found: its address, and what the service says of it, on one line each."""

    url: str
    title: str
    snippet: str


class WebSearch(Protocol):
    """A search service. Safe to share between threads."""

    name: str

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        """At most `limit` pages (1 to MAX_HITS), best first, each address once; blocks. Raises WebSearchError."""
        ...


def web_search(settings: Settings) -> WebSearch | None:
    """The service that the settings name; None where they name none."""
    if settings.searxng_url:
        return SearXNG(settings.searxng_url)
    key = settings.tavily_api_key.get_secret_value()
    return Tavily(key) if key else None


class SearXNG:
    """A SearXNG instance, whose settings must allow the format `json`."""

    name = "SearXNG"

    def __init__(self, address: str, *, seconds: float = SECONDS) -> None:
        self._address = address.rstrip("/")
        self._seconds = seconds

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        asked = {"q": query[:_MAX_QUERY], "format": "json"}  # in the body, where no log of addresses keeps it
        reply = _reply(self.name, self._seconds, "POST", f"{self._address}/search", data=asked)
        return _hits(reply, limit, self.name)


class Tavily:
    """Tavily's search, by an API key."""

    name = "Tavily"

    def __init__(self, key: str, address: str = _TAVILY, *, seconds: float = SECONDS) -> None:
        self._key = key
        self._address = address.rstrip("/")
        self._seconds = seconds

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        asked = {"query": query[:_MAX_QUERY], "max_results": min(limit, MAX_HITS)}
        key = {"authorization": f"Bearer {self._key}"}
        reply = _reply(self.name, self._seconds, "POST", f"{self._address}/search", json=asked, headers=key)
        return _hits(reply, limit, self.name)


def _reply(name: str, seconds: float, method: str, address: str, **asked: Any) -> Any:
    """The JSON that the service answers with; each step may take so many seconds, and so may the whole reply."""
    import httpx2

    ends = time.monotonic() + seconds
    client = httpx2.Client(trust_env=False, follow_redirects=False, timeout=seconds, headers=_HEADERS)
    try:
        with client, client.stream(method, address, **asked) as response:
            _check_status(name, response.status_code)
            return json.loads(b"".join(_bounded(name, response, ends)))
    except httpx2.TimeoutException as error:
        raise WebSearchError("web_search_slow", name=name) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise WebSearchError("web_search_unreachable", name=name) from error
    except (ValueError, RecursionError) as error:
        raise WebSearchError("web_search_unreadable", name=name) from error


def _bounded(name: str, response: httpx2.Response, ends: float) -> Iterator[bytes]:
    size = 0
    for piece in response.iter_bytes():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise WebSearchError("web_search_unreadable", name=name)
        if time.monotonic() > ends:
            raise WebSearchError("web_search_slow", name=name)
        yield piece


def _check_status(name: str, status: int) -> None:
    if status in (401, 403):
        raise WebSearchError("web_search_refused", name=name)
    if status == 429:
        raise WebSearchError("web_search_busy", name=name)
    if status != 200:
        raise WebSearchError("web_search_failed", name=name, status=status)


def _hits(reply: Any, limit: int, name: str) -> list[WebHit]:
    """The pages of a reply; Tavily and SearXNG name their parts alike. What is no web address is passed over."""
    rows = reply.get("results") if isinstance(reply, Mapping) else None
    if not isinstance(rows, list):
        raise WebSearchError("web_search_unreadable", name=name)
    found: dict[str, WebHit] = {}
    for row in rows:
        if isinstance(row, Mapping) and (address := browser_url(str(row.get("url") or ""))) is not None:
            hit = WebHit(address.href, _line(row.get("title"), _MAX_TITLE), _line(row.get("content"), _MAX_SNIPPET))
            found.setdefault(url_key(hit.url), hit)
    return list(found.values())[: max(1, min(limit, MAX_HITS))]


def _line(said: object, longest: int) -> str:
    return " ".join(without_controls(said if isinstance(said, str) else "").split())[:longest]
