"""The browser behind a tab: its opaque random id in a session cookie, and the scripts that it runs.

Scripts are constants: the Content-Security-Policy has their digests, and the browser runs no others. All code is sent
once, with the page; it reads its input from the data attributes of a script element.
"""

from __future__ import annotations

import html
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

from rag.text import lazy_regex

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "pagelight_browser"
LANGUAGE_COOKIE = "pagelight_language"
"""Set by page.js when the language is switched."""
_ID = lazy_regex(r"[A-Za-z0-9_-]{43}", re.ASCII)
PAGE_SCRIPT = (Path(__file__).resolve().parents[1] / "static" / "page.js").read_text(encoding="utf-8").strip()
_RECEIVE = "receive(document.currentScript.dataset)"
SCRIPTS: tuple[str, ...] = (PAGE_SCRIPT, _RECEIVE)


def browser_id() -> str:
    """Return the id of the browser session behind this tab: 43 random characters, empty if cookies are off.

    It distinguishes browsers and cannot be guessed; it does not identify a person.
    """
    return _valid(st.context.cookies.get(COOKIE, ""))


class BrowserCookie:
    """ASGI middleware that sets a browser's id cookie with the page, before the page opens its WebSocket.

    Only pages set it, since scripts and styles may be in shared caches. `SecurityHeaders`, the outer middleware, adds
    Secure behind TLS.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _opens_page(scope):
            await self._app(scope, receive, send)
            return
        cookie = f"{COOKIE}={secrets.token_urlsafe(32)}; Path=/; HttpOnly; SameSite=Lax"

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("set-cookie", cookie)
                headers["cache-control"] = "private, no-cache"
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _opens_page(scope: Scope) -> bool:
    """Return whether a browser without an id requests a whole page."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    headers = Headers(scope=scope)
    current = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    return "text/html" in headers.get("accept", "") and not _valid(current)


def _valid(value: str) -> str:
    return value if _ID.fullmatch(value) else ""


def send_to_browser(key: str, **values: str) -> None:
    """Send the app's labels and ids to the browser; sending the same values again has no effect.

    `language` is the document's language; `skip` labels the link past the sidebar to the newest answer, `upload` the
    button that selects files; `copied` is the message after an answer was copied, `keys` the list of shortcuts.
    `offline` and `page_unknown` replace dialogs of Streamlit. `scroll_to` is the class of the element to scroll to, or
    `end`; it stays in view while the page grows, until the user scrolls or types. `source` is the id of the open
    source, or empty, and `name` the label of its panel.
    """
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in values.items())
    with st.container(key=f"browser-message-{key}"):
        st.html(f"<script {data}>{_RECEIVE}</script>", unsafe_allow_javascript=True)
