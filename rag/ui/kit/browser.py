"""Identification of browsers by an opaque random id in a session cookie."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "pagelight_browser"

_ID = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def browser_id() -> str:
    """Return the id of the browser session behind this tab: 43 random characters, empty if cookies are off.

    It distinguishes browsers and cannot be guessed; it does not identify a person.
    """
    return _valid(st.context.cookies.get(COOKIE, ""))


class BrowserCookie:
    """ASGI middleware that gives each browser its id with the page, before the page opens its socket.

    Only pages carry it: scripts and styles may be in caches that several people share. `SecurityHeaders`, which runs
    before it, adds Secure behind TLS.
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
