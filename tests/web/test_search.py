"""Web search services over real HTTP: correct, empty, slow, broken, hostile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from rag.config import load_settings
from rag.errors import WebSearchError
from rag.web.search import MAX_HITS, MAX_REPLY_BYTES, SearXNG, Tavily, WebHit, WebSearch, web_search

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


@dataclass
class Service:
    """A service that answers with `body` and `status`, a piece every `pause` seconds, and records its requests."""

    body: bytes = json.dumps({"results": PAGES}).encode()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    asked: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def service() -> Iterator[Service]:
    told, over = Service(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            given = self.rfile.read(length).decode()
            told.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, given))
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(told.body)))
            self.end_headers()
            step = 1 if told.pause else len(told.body) or 1
            try:
                for start in range(0, len(told.body), step):
                    self.wfile.write(told.body[start : start + step])
                    if told.pause and over.wait(told.pause):
                        return
            except OSError:
                return

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield told
    over.set()
    server.shutdown()
    server.server_close()


KINDS: list[Callable[[str], WebSearch]] = [
    lambda address: SearXNG(address + "/", seconds=1.0),
    lambda address: Tavily("a-key", address, seconds=1.0),
]
EACH = pytest.mark.parametrize("made", KINDS, ids=["searxng", "tavily"])


@EACH
def test_each_page_is_found_once_and_told_on_a_line(service: Service, made: Callable[[str], WebSearch]) -> None:
    assert made(service.address).find("龙井茶 grows?") == HITS
    assert made(service.address).find("tea", limit=1) == HITS[:1]


def test_searxng_is_asked_in_its_own_words(service: Service) -> None:
    SearXNG(service.address).find("龙井茶 & more")
    method, path, headers, given = service.asked[0]
    assert (method, path) == ("POST", "/search")
    assert parse_qs(given) == {"q": ["龙井茶 & more"], "format": ["json"]}
    assert "authorization" not in headers and "cookie" not in headers


def test_tavily_is_asked_in_its_own_words(service: Service) -> None:
    Tavily("a-key", service.address).find("x" * 1000, limit=99)
    method, path, headers, given = service.asked[0]
    assert (method, path, headers["authorization"]) == ("POST", "/search", "Bearer a-key")
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
    search = made(service.address)
    with pytest.raises(WebSearchError) as caught:
        search.find("tea")
    assert caught.value.code == code
    assert search.name in str(caught.value)


@EACH
def test_no_redirect_is_followed(service: Service, made: Callable[[str], WebSearch]) -> None:
    service.status, service.headers = 302, {"location": f"{service.address}/elsewhere"}
    with pytest.raises(WebSearchError) as caught:
        made(service.address).find("tea")
    assert caught.value.code == "web_search_failed"
    assert len(service.asked) == 1


@EACH
def test_a_service_that_drips_is_not_waited_for(service: Service, made: Callable[[str], WebSearch]) -> None:
    service.pause = 0.05
    began = time.monotonic()
    with pytest.raises(WebSearchError) as caught:
        made(service.address).find("tea")
    assert caught.value.code == "web_search_slow"
    assert time.monotonic() - began < 0.05 * len(service.body) / 2


@EACH
def test_a_service_that_is_not_there_is_said(made: Callable[[str], WebSearch]) -> None:
    with pytest.raises(WebSearchError) as caught:
        made("http://127.0.0.1:9").find("tea")
    assert caught.value.code == "web_search_unreachable"


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
    (hit,) = made(service.address).find("tea")
    assert (hit.url, hit.title[:8], len(hit.title), hit.snippet) == ("https://good.example/", "title[31", 300, "")
    service.body = b'{"results": []}'
    assert made(service.address).find("tea") == []


def test_the_environments_proxy_is_not_asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert SearXNG(service.address).find("tea") == HITS


def test_the_settings_choose_the_service() -> None:
    assert web_search(load_settings(None)) is None
    assert web_search(load_settings(None, tavily_api_key="k")).name == "Tavily"  # type: ignore[union-attr]
    both = load_settings(None, tavily_api_key="k", searxng_url="http://search.lan:8080/")
    assert web_search(both).name == "SearXNG"  # type: ignore[union-attr]
