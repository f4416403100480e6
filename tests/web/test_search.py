"""Web search services over real HTTP: correct, empty, slow, broken, hostile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from rag.config import load_settings
from rag.errors import WebSearchError
from rag.web.search import MAX_HITS, MAX_REPLY_BYTES, SearXNG, Tavily, WebHit, WebSearch, web_search
from tests.support.loopback import Handler, LoopbackServer

PAGES = [
    {
        "url": "https://tea.example/longjing",
        "title": "Longjing  tea",
        "content": "It grows\nin Hangzhou.",
        "score": 0.9,
    },
    {"url": "https://tea.example/longjing#top", "title": "The same", "content": ""},
    {"url": "https://other.example/", "title": "Other", "content": None},
]
HITS = [
    WebHit("https://tea.example/longjing", "Longjing tea", "It grows in Hangzhou."),
    WebHit("https://other.example/", "Other", ""),
]


class Service(LoopbackServer):
    """A service that answers with `body` and `status`, a byte every `pause` seconds, and records its requests."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.body, self.status, self.pause = json.dumps({"results": PAGES}).encode(), 200, 0.0
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str], str]] = []


class _Handler(Handler):
    def post(self) -> None:
        service = self.server.owner
        service.asked.append((self.path, self.given_headers(), self.read_body().decode()))
        if not service.pause:
            return self.send_whole(service.status, service.body, service.headers)
        self.send_head(service.status, len(service.body), service.headers)
        for byte in service.body:
            self.wfile.write(bytes([byte]))
            if service.closing.wait(service.pause):
                return None
        return None


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


KINDS: list[Callable[[str], WebSearch]] = [
    lambda address: SearXNG(address + "/", seconds=1.0),
    lambda address: Tavily("a-key", address, seconds=1.0),
]
EACH = pytest.mark.parametrize("made", KINDS, ids=["searxng", "tavily"])


def failure(search: WebSearch) -> str:
    """Return the code of a search's error, which names the service."""
    with pytest.raises(WebSearchError) as caught:
        search.find("tea")
    assert search.name in str(caught.value)
    return caught.value.code


@EACH
def test_each_page_is_found_once_and_told_on_a_line(service: Service, made: Callable[[str], WebSearch]) -> None:
    assert made(service.origin).find("龙井茶 grows?") == HITS
    assert made(service.origin).find("tea", limit=1) == HITS[:1]


def test_searxng_is_asked_in_its_own_words(service: Service) -> None:
    SearXNG(service.origin).find("龙井茶 & more")
    path, headers, given = service.asked[0]
    assert path == "/search"
    assert parse_qs(given) == {"q": ["龙井茶 & more"], "format": ["json"]}
    assert "authorization" not in headers and "cookie" not in headers


def test_tavily_is_asked_in_its_own_words(service: Service) -> None:
    Tavily("a-key", service.origin).find("x" * 1000, limit=99)
    path, headers, given = service.asked[0]
    assert (path, headers["authorization"]) == ("/search", "Bearer a-key")
    assert json.loads(given) == {"query": "x" * 400, "max_results": MAX_HITS}


@EACH
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b"{}", "web_search_refused"),
        (403, b"", "web_search_refused"),
        (429, b"", "web_search_busy"),
        (500, b"oops", "web_search_failed"),
        (200, b"<html>", "web_search_unreadable"),
        (200, b"", "web_search_unreadable"),
        (200, b"[]", "web_search_unreadable"),
        (200, b'{"results": "all"}', "web_search_unreadable"),
        (200, b"\xff\xfe{}", "web_search_unreadable"),
        (200, b"[" * 100_000, "web_search_unreadable"),
        (200, b'{"results": [' + b" " * MAX_REPLY_BYTES + b"]}", "web_search_unreadable"),
    ],
)
def test_what_goes_wrong_has_its_sentence(
    service: Service, made: Callable[[str], WebSearch], status: int, body: bytes, code: str
) -> None:
    service.status, service.body = status, body
    assert failure(made(service.origin)) == code


@EACH
def test_no_redirect_is_followed(service: Service, made: Callable[[str], WebSearch]) -> None:
    service.status, service.headers = 302, {"location": f"{service.origin}/elsewhere"}
    assert failure(made(service.origin)) == "web_search_failed"
    assert len(service.asked) == 1


@EACH
def test_a_service_that_drips_is_not_waited_for(service: Service, made: Callable[[str], WebSearch]) -> None:
    service.pause = 0.05
    began = time.monotonic()
    assert failure(made(service.origin)) == "web_search_slow"
    assert time.monotonic() - began < 0.05 * len(service.body) / 2


@EACH
def test_a_service_that_is_not_there_is_said(made: Callable[[str], WebSearch]) -> None:
    assert failure(made("http://127.0.0.1:9")) == "web_search_unreachable"


@EACH
def test_hostile_results_are_no_pages(service: Service, made: Callable[[str], WebSearch]) -> None:
    rows: list[Any] = [
        {"url": "javascript:alert(1)", "title": "a"},
        {"url": "file:///etc/passwd", "title": "b"},
        {"url": "htp://x", "title": "c"},
        {"url": ["https://x.example"], "title": "d"},
        {"title": "no address"},
        "https://bare.example",
        None,
        {"url": "https://good.example/", "title": "ti\u202etle\x1b[31m" + "x" * 5000, "content": {"a": 1}},
    ]
    service.body = json.dumps({"results": rows}).encode()
    (hit,) = made(service.origin).find("tea")
    assert (hit.url, hit.title[:8], len(hit.title), hit.snippet) == ("https://good.example/", "title[31", 300, "")
    service.body = b'{"results": []}'
    assert made(service.origin).find("tea") == []


def test_the_environments_proxy_is_not_asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert SearXNG(service.origin).find("tea") == HITS


def test_the_settings_choose_the_service() -> None:
    assert web_search(load_settings(None)) is None
    assert web_search(load_settings(None, tavily_api_key="k")).name == "Tavily"  # type: ignore[union-attr]
    both = load_settings(None, tavily_api_key="k", searxng_url="http://search.lan:8080/")
    assert web_search(both).name == "SearXNG"  # type: ignore[union-attr]
