"""Web search through the configured service: Tavily, by API key, or SearXNG, by URL.

Requests go only to that service: redirects and proxies from the environment are not used, and replies are limited to
MAX_REPLY_BYTES. Results are treated like links that a user enters: `rag.web.fetch` fetches them through its guard.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rag.config import Settings
from rag.errors import WebSearchError
from rag.text import strip_controls
from rag.web.urls import browser_url, url_key

MAX_REPLY_BYTES: Final = 2_000_000
MAX_HITS: Final = 20
SECONDS: Final = 20.0
_MAX_QUERY: Final = 400
_MAX_TITLE, _MAX_SNIPPET = 300, 1_000
_TAVILY: Final = "https://api.tavily.com"
_FAILURES: Final = {401: "web_search_refused", 403: "web_search_refused", 429: "web_search_busy"}
_HEADERS: Final = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "Pagelight"}


@dataclass(frozen=True, slots=True)
class WebHit:
    """A result of a search service: the page's URL, title and snippet, on one line each."""

    url: str
    title: str
    snippet: str


class WebSearch(Protocol):
    """A search service. Safe to share between threads."""

    name: str

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        """Return up to `limit` pages (1 to MAX_HITS), best first, each URL once; blocks. Raises WebSearchError."""
        ...


def web_search(settings: Settings) -> WebSearch | None:
    """Return the configured service; None if there is none."""
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
        parameters = {"q": query[:_MAX_QUERY], "format": "json"}  # in the body, to keep it out of access logs
        reply = _request(self.name, self._seconds, f"{self._address}/search", data=parameters)
        return _hits(reply, limit, self.name)


class Tavily:
    """Tavily's search API."""

    name = "Tavily"

    def __init__(self, key: str, address: str = _TAVILY, *, seconds: float = SECONDS) -> None:
        self._key = key
        self._address = address.rstrip("/")
        self._seconds = seconds

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        parameters = {"query": query[:_MAX_QUERY], "max_results": min(limit, MAX_HITS)}
        headers = {"authorization": f"Bearer {self._key}"}
        reply = _request(self.name, self._seconds, f"{self._address}/search", json=parameters, headers=headers)
        return _hits(reply, limit, self.name)


def _request(name: str, seconds: float, address: str, **options: Any) -> Any:
    """Return the service's JSON reply; `seconds` limits each network operation and the whole reply."""
    import httpx2

    deadline = time.monotonic() + seconds
    client = httpx2.Client(trust_env=False, follow_redirects=False, timeout=seconds, headers=_HEADERS)
    try:
        with client, client.stream("POST", address, **options) as response:
            status = response.status_code
            if status != 200:
                code = _FAILURES.get(status, "web_search_failed")
                raise WebSearchError(code, name=name, **({} if status in _FAILURES else {"status": status}))
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise WebSearchError("web_search_unreadable", name=name)
                if time.monotonic() > deadline:
                    raise WebSearchError("web_search_slow", name=name)
            return json.loads(body)
    except httpx2.TimeoutException as error:
        raise WebSearchError("web_search_slow", name=name) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise WebSearchError("web_search_unreachable", name=name) from error
    except (ValueError, RecursionError) as error:
        raise WebSearchError("web_search_unreadable", name=name) from error


def _hits(reply: Any, limit: int, name: str) -> list[WebHit]:
    """Return the results in a reply, without invalid URLs. Tavily and SearXNG use the same field names."""
    rows = reply.get("results") if isinstance(reply, Mapping) else None
    if not isinstance(rows, list):
        raise WebSearchError("web_search_unreadable", name=name)
    hits: dict[str, WebHit] = {}
    for row in rows:
        if isinstance(row, Mapping) and (address := browser_url(str(row.get("url") or ""))) is not None:
            hit = WebHit(address.href, _line(row.get("title"), _MAX_TITLE), _line(row.get("content"), _MAX_SNIPPET))
            hits.setdefault(url_key(hit.url), hit)
    return list(hits.values())[: max(1, min(limit, MAX_HITS))]


def _line(value: object, limit: int) -> str:
    return " ".join(strip_controls(value if isinstance(value, str) else "").split())[:limit]
