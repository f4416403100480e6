"""The security headers of every HTTP response: the safety net below the safe renderer."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from lxml import html
from starlette.datastructures import Headers

from rag.ui.kit.scripts import SCRIPTS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FIXED: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


def content_security_policy(scripts: Sequence[str]) -> str:
    """Return the policy: everything from the app itself, and inline only these scripts.

    WebAssembly may be compiled, since Streamlit reads its messages with it; text cannot become a script.
    """
    return "; ".join(
        (
            "default-src 'self'",
            " ".join(("script-src 'self' 'wasm-unsafe-eval'", *map(_digest, scripts))),
            "img-src 'self' data: blob:",
            "style-src 'self' 'unsafe-inline'",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


def _digest(script: str) -> str:
    """Return the policy source of an inline script (CSP 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def inline_scripts(page: str) -> list[str]:
    """Return the scripts inside an HTML page."""
    return [script.text or "" for script in html.fromstring(page).iter("script") if "src" not in script.attrib]


@cache
def security_headers() -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers. The scripts that Streamlit needs are read from the one page that it serves."""
    page = Path(st.__file__).with_name("static") / "index.html"
    scripts = (*inline_scripts(page.read_text(encoding="utf-8")), *SCRIPTS)
    return ((b"content-security-policy", content_security_policy(scripts).encode("ascii")), *_FIXED)


class SecurityHeaders:
    """ASGI middleware that sets `security_headers` on each response, replacing any the app set.

    Behind TLS, every cookie becomes Secure.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_encrypted, ours = _is_encrypted(scope), security_headers()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in ours}
                headers = [(name, value) for name, value in message["headers"] if name.lower() not in names]
                headers = [_add_secure(*header) for header in headers] if is_encrypted else headers
                message["headers"] = [*headers, *ours]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _is_encrypted(scope: Scope) -> bool:
    """Return whether the browser uses TLS, here or at a proxy in front of the app.

    A false claim gains nothing but cookies that the client's own browser does not send back.
    """
    proxies = Headers(scope=scope).get("x-forwarded-proto", "")
    return "https" in (scope.get("scheme"), proxies.partition(",")[0].strip().lower())


def _add_secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() != b"set-cookie":
        return name, value
    attributes = {part.strip().lower() for part in value.split(b";")[1:]}
    return name, value if b"secure" in attributes else value + b"; Secure"
