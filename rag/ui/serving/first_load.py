"""A faster first load: style, skeleton and script inlined into the page, gzip, and a small icon font.

Streamlit would send style and script after the browser has painted without them, and serves its own scripts
uncompressed, since it would compress them for each request; here each is compressed once. Of the 4,000 icons in
Streamlit's font only those in use are sent (`scripts/icons.py`). The page links to the web app manifest, through which
a phone's share menu passes links to the app.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response

from rag.text import lazy_regex
from rag.ui.kit.browser import PAGE_SCRIPT
from rag.ui.kit.navigation import SHARE_PARAMS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_STYLE = Path(__file__).resolve().parents[1] / "static" / "style.css"
_ICONS = _STYLE.with_name("icons.woff2")
_ICONS_PATH = "/static/media/MaterialSymbols-Rounded."
_SKELETON = (
    '<div id="skeleton" aria-hidden="true"><div><i></i><i></i><i></i></div><div><b></b><i></i><u></u></div></div>'
)
_FIRST_ELEMENTS = ("Html", "Selectbox", "Button", "ButtonGroup", "MenuButton", "TextInput", "ChatInput")
"""Elements of the first page whose scripts Streamlit loads lazily; one that it renames is no longer preloaded."""
_IMPORT = lazy_regex(rb"""(?:\bfrom|\bimport)\s*["']\./([\w.-]+\.js)["']""")
_PRELOAD = b'<link rel="modulepreload" crossorigin href="./static/js/%s">'
_HTML = "text/html"
_PAGE_ROOT = b'<div id="root">'
"""Only in the app's own page: an exported answer is HTML too, and would open as the skeleton."""
_COMPRESSIBLE = (_HTML, "text/css", "text/javascript", "application/javascript")
_CACHE_SIZE = 256
_CACHE_HEADERS = {"cache-control": "public, max-age=3600"}  # short, since new icons keep the file name
_REMOVED_HEADERS = (b"if-none-match", b"if-modified-since", b"accept-encoding")
_APP_ICON = Path(__file__).resolve().parents[1] / "static" / "icon.svg"


class FirstLoad:
    """ASGI middleware that completes the app's page, compresses text with gzip, and serves the icon font."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        if _ICONS_PATH in scope["path"]:
            await _icons()(scope, receive, send)
            return
        accepts_gzip = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        if "/static/" not in scope["path"]:  # a cached page may have an old style, a gzipped one cannot be edited
            scope = {**scope, "headers": [header for header in scope["headers"] if header[0] not in _REMOVED_HEADERS]}
        await self._app(scope, receive, _ResponseRewriter(send, accepts_gzip=accepts_gzip).handle)


class _ResponseRewriter:
    """A wrapper of `send` that buffers and rewrites some responses, and forwards the others."""

    def __init__(self, send: Send, *, accepts_gzip: bool) -> None:
        self._send, self._accepts_gzip = send, accepts_gzip
        self._start: Message | None = None
        self._body = b""

    async def handle(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(scope=message)
            kind = headers.get("content-type", "").partition(";")[0]
            is_plain = message["status"] == 200 and "content-encoding" not in headers
            if is_plain and (kind == _HTML or (self._accepts_gzip and kind in _COMPRESSIBLE)):
                self._start = message
                return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            await self._send_rewritten(MutableHeaders(scope=self._start))

    async def _send_rewritten(self, headers: MutableHeaders) -> None:
        body = self._body
        if _PAGE_ROOT in body and headers["content-type"].startswith(_HTML):
            body = _add_assets(body)
            del headers["etag"], headers["last-modified"]
        if self._accepts_gzip:
            body = await asyncio.to_thread(_compress, body)
            headers["content-encoding"] = "gzip"
        headers.add_vary_header("Accept-Encoding")
        headers["content-length"] = str(len(body))
        await self._send(self._start or {})
        await self._send({"type": "http.response.body", "body": body})


def _add_assets(page: bytes) -> bytes:
    """Add style and scripts to a page; the style comes last, to override Streamlit's rules of equal specificity."""
    preloads = [_PRELOAD % name for name in _scripts() if name not in page]
    head = b"".join((b'<link rel="manifest" href="./manifest.webmanifest">', *preloads, b"</head>"))
    page = page.replace(b"</head>", head)
    return page.replace(b"</body>", _own_markup() + b"</body>")


@cache
def _icons() -> Response:
    return Response(_ICONS.read_bytes(), media_type="font/woff2", headers=_CACHE_HEADERS)


@cache
def _scripts() -> tuple[bytes, ...]:
    """Return the script names of the `_FIRST_ELEMENTS` elements and of all their imports, to preload.

    Otherwise a browser requests an element's script only to draw it, and its imports only after that.
    """
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    names = [file.name.encode() for name in _FIRST_ELEMENTS for file in folder.glob(f"{name}.*.js")]
    for name in names:  # grows during the loop
        imports = dict.fromkeys(_IMPORT.findall((folder / name.decode()).read_bytes()))
        names += [script for script in imports if script not in names]
    return tuple(names)


@cache
def _own_markup() -> bytes:
    return f"<style>{_STYLE.read_text(encoding='utf-8')}</style>{_SKELETON}<script>{PAGE_SCRIPT}</script>".encode()


@lru_cache(_CACHE_SIZE)
def _compress(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


async def manifest(_: Request) -> JSONResponse:
    """Return the web app manifest; sharing a link opens the Add page with the link filled in, but not yet added."""
    icon = base64.b64encode(_APP_ICON.read_bytes()).decode("ascii")
    content = {
        "name": "Pagelight",
        "short_name": "Pagelight",
        "start_url": "./",
        "display": "standalone",
        "background_color": "#FCFBF8",
        "theme_color": "#1F6F5C",
        "icons": [{"src": f"data:image/svg+xml;base64,{icon}", "sizes": "any", "type": "image/svg+xml"}],
        "share_target": {"action": "./", "method": "GET", "params": {"url": SHARE_PARAMS[0], "text": SHARE_PARAMS[1]}},
    }
    return JSONResponse(content, media_type="application/manifest+json")
