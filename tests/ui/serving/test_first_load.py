from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import streamlit
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.material_icon_names import ALL_MATERIAL_ICONS

from rag.conversations.export import export
from rag.store.sql.conversation_table import Conversation
from rag.ui.kit.browser import PAGE_SCRIPT
from rag.ui.kit.navigation import SHARE_PARAMS
from rag.ui.serving.first_load import _FIRST_ELEMENTS, FirstLoad, manifest
from scripts import icons

PAGE = b'<html><head><link rel=stylesheet></head><body><div id="root"></div></body></html>'


def asked(body: bytes, kind: str, path: str = "/", accepts: bytes = b"gzip", status: int = 200) -> Any:
    """Return a browser's view of a response in two parts, and the headers that the app got."""
    sent: list[Any] = []
    asked_with: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked_with.extend(scope["headers"])
        given = [(b"content-type", kind.encode()), (b"etag", b'"1"'), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": body[:9], "more_body": True})
        await send({"type": "http.response.body", "body": body[9:]})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"accept-encoding", accepts), (b"if-none-match", b'"1"')]
    scope: Any = {"type": "http", "method": "GET", "path": path, "headers": headers}
    asyncio.run(FirstLoad(app)(scope, None, send))  # type: ignore[arg-type]
    return dict(sent[0]["headers"]), b"".join(one["body"] for one in sent[1:]), dict(asked_with)


def test_a_page_contains_style_and_script_and_has_no_etag() -> None:
    headers, body, asked_with = asked(PAGE, "text/html; charset=utf-8", "/search", accepts=b"")
    assert b'<link rel="manifest" href="./manifest.webmanifest"><link rel="modulepreload"' in body
    assert body.partition(b"</head>")[2].startswith(b'<body><div id="root"></div><style>/* Frame */')
    assert b'</style><div id="skeleton" aria-hidden="true">' in body
    assert body.endswith(f"</div><script>{PAGE_SCRIPT}</script></body></html>".encode())
    assert b"etag" not in headers and not asked_with  # the app is asked for neither a 304 nor compression
    assert headers[b"content-length"] == str(len(body)).encode()


def test_a_downloaded_answer_is_sent_as_it_is() -> None:
    made, _ = export(Conversation("c", "main", "", '<div id="root">', "2026", "2026", 1), [], "html")
    headers, body, _ = asked(str(made).encode(), "text/html", "/media/1.html", accepts=b"")
    assert body.decode() == made and b"etag" in headers
    headers, body, _ = asked(str(made).encode(), "text/html", "/media/1.html")
    assert gzip.decompress(body).decode() == made


def test_the_page_of_this_streamlit_is_recognised() -> None:
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_bytes()
    assert b'id="skeleton"' in asked(page, "text/html", accepts=b"")[1]


def test_a_page_preloads_its_scripts_and_requests_nothing_twice() -> None:
    names = re.findall(
        rb'rel="modulepreload" crossorigin href="./static/js/([^"]+)"', asked(PAGE, "text/html", accepts=b"")[1]
    )
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    assert len(names) == len(set(names)) > len(_FIRST_ELEMENTS)
    assert all((folder / name.decode()).is_file() for name in names)
    # Streamlit renamed none of them.
    assert {name.partition(b".")[0].decode() for name in names} >= set(_FIRST_ELEMENTS)
    given = PAGE.replace(b"<head>", b'<head><link rel="modulepreload" href="./static/js/' + names[0] + b'">')
    assert asked(given, "text/html", accepts=b"")[1].count(names[0]) == 1


def test_scripts_are_compressed_for_clients_that_accept_it() -> None:
    script = b"const a = 1;" * 200
    headers, body, asked_with = asked(script, "text/javascript; charset=utf-8", "/static/js/a.js")
    assert gzip.decompress(body) == script
    assert (headers[b"content-encoding"], headers[b"vary"]) == (b"gzip", b"Accept-Encoding")
    assert headers[b"content-length"] == str(len(body)).encode()
    assert b"if-none-match" in asked_with
    assert asked(script, "text/javascript", "/static/js/a.js", accepts=b"identity")[1] == script


def test_fonts_answers_in_parts_and_failures_pass_as_they_are() -> None:
    assert asked(b"packed already", "font/woff2", "/static/media/a.woff2")[1] == b"packed already"
    assert asked(PAGE, "text/html", status=206)[1] == PAGE


def test_icons_are_sent_from_a_font_of_those_that_are_used() -> None:
    headers, body, asked_with = asked(b"all of them", "font/woff2", "/static/media/MaterialSymbols-Rounded.abc.woff2")
    assert body[:4] == b"wOF2" and len(body) < 40_000
    assert headers[b"content-type"] == b"font/woff2" and not asked_with


def test_the_font_has_every_icon_that_is_used() -> None:
    names = set((icons.STATIC / "icons.txt").read_text(encoding="utf-8").split())
    assert icons.used_names() & ALL_MATERIAL_ICONS <= names, "run scripts/icons.py"
    assert {"keyboard_arrow_down", "travel_explore", "close"} <= names


def test_what_a_phone_shares_reaches_the_page_that_adds_links() -> None:
    app = Starlette(routes=[Route("/manifest.webmanifest", manifest)])
    answer = TestClient(app).get("/manifest.webmanifest")
    assert answer.headers["content-type"] == "application/manifest+json"
    shares = json.loads(answer.text)["share_target"]
    assert shares["method"] == "GET"  # it opens a page, and changes nothing
    assert set(shares["params"].values()) == set(SHARE_PARAMS)
