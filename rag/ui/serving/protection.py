"""Protection of the server: security headers, allowed hosts, blocked endpoints, and a check of the cookie secret.

The headers are a second line of defence behind the safe renderer. A browser sends the host name that it opened (Host)
and the origin of the requesting page (Origin). A Host that is not allowed indicates DNS rebinding; an Origin that
differs from Host is another site, or another program on this machine. Starlette's TrustedHostMiddleware supports
neither IPv6 nor Origin, and its error does not name the setting.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import streamlit as st
from lxml import html
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.errors import StreamlitSecretNotFoundError
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from rag.config import Settings
from rag.errors import ConfigError
from rag.locales import choose_language, label
from rag.text import lazy_regex
from rag.ui.kit.browser import SCRIPTS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FIXED_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
Refusal = Literal["", "host", "origin"]
_HOST = lazy_regex(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]{1,253}))(?::[0-9]{1,5})?", re.ASCII)
_CLOSED_PATHS = lazy_regex(r"/_stcore/(?:metrics|agent|script-health-check)(?:/|$)")
_PYTHON_VERSION = ".".join(map(str, sys.version_info)).encode()
_SECRET_OPTION = "server.cookieSecret"


def content_security_policy(scripts: Sequence[str]) -> str:
    """Return the policy: resources only from this origin, and no inline scripts except `scripts`.

    WebAssembly is allowed, since Streamlit decodes its messages with it; `eval` stays blocked.
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
    """Return the inline scripts of an HTML page."""
    return [script.text or "" for script in html.fromstring(page).iter("script") if "src" not in script.attrib]


@cache
def security_headers() -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers; Streamlit's inline scripts are read from its index.html."""
    page = Path(st.__file__).with_name("static") / "index.html"
    scripts = (*inline_scripts(page.read_text(encoding="utf-8")), *SCRIPTS)
    return ((b"content-security-policy", content_security_policy(scripts).encode("ascii")), *_FIXED_HEADERS)


class SecurityHeaders:
    """ASGI middleware that sets `security_headers` on each response, replacing the app's.

    Behind TLS it marks every cookie as Secure.
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

    A forged header only makes the client's own cookies Secure, so that its browser does not send them back.
    """
    proxies = Headers(scope=scope).get("x-forwarded-proto", "")
    return "https" in (scope.get("scheme"), proxies.partition(",")[0].strip().lower())


def _add_secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() != b"set-cookie":
        return name, value
    attributes = {part.strip().lower() for part in value.split(b";")[1:]}
    return name, value if b"secure" in attributes else value + b"; Secure"


class AllowedHosts:
    """ASGI middleware that accepts requests and WebSockets only to local names and to `allowed` hosts (ALLOWED_HOSTS).

    `allowed` has names and IP addresses in lower case, without ports and brackets. Other requests get status 403 and
    one sentence.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reason = refusal(headers.getlist("host"), headers.getlist("origin"), self._allowed)
        answer: ASGIApp = PlainTextResponse(_sentence(reason, headers), status_code=403) if reason else self._app
        await answer(scope, receive, send)


def refusal(hosts: Sequence[str], origins: Sequence[str], allowed: frozenset[str]) -> Refusal:
    """Return why a request with these Host and Origin headers is refused; empty if it is allowed.

    Browsers send no Origin when they open a page, and other programs rarely do; if present, it must match Host.
    """
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return "host"
    name = (match["name"] or match["six"]).lower().rstrip(".")
    if name not in allowed and not _is_local(name):
        return "host"
    ours = {f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")}
    return "" if all(origin.lower() in ours for origin in origins) else "origin"


def _is_local(name: str) -> bool:
    """Return whether `name` is a loopback name or address, whatever DNS says (RFC 6761, section 6.3)."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _sentence(reason: Refusal, headers: Headers) -> str:
    language = choose_language(headers.get("accept-language", ""))
    name = headers.get("host", "")
    return label(f"refused_{reason}", language, name=name if _HOST.fullmatch(name) else "?")


class HideInternals:
    """ASGI middleware that blocks Streamlit's diagnostic endpoints and removes versions from its new-session message.

    That message precedes sign-in, since the sign-in page itself runs in a session.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _CLOSED_PATHS.search(scope["path"]):
            await PlainTextResponse("Not Found", status_code=404)(scope, receive, send)
            return

        async def send_without_versions(message: Message) -> None:
            # Few messages contain a version, and most are large: search before parsing.
            if message["type"] == "websocket.send" and _PYTHON_VERSION in (message.get("bytes") or b""):
                message["bytes"] = _remove_versions(message["bytes"])
            await send(message)

        await self._app(scope, receive, send_without_versions if scope["type"] == "websocket" else send)


def _remove_versions(data: bytes) -> bytes:
    """Return a Streamlit message without the Python version and the operating system.

    Streamlit's version becomes a digest, so that a tab left open across an upgrade still sees the change and reloads.
    """
    message = ForwardMsg.FromString(data)
    if message.WhichOneof("type") != "new_session":
        return data
    environment = message.new_session.initialize.environment_info
    digest = hashlib.sha256(environment.streamlit_version.encode()).hexdigest()[:16]
    environment.Clear()
    environment.streamlit_version = digest
    result: bytes = message.SerializeToString()
    return result


def check_cookie_secret(settings: Settings) -> None:
    """Raise ConfigError if replicas may share a database but no cookie secret is set.

    Each replica would generate its own, and a user signed in on one would be unknown to the others.
    """
    if settings.database_url.get_secret_value() and not (config.is_manually_set(_SECRET_OPTION) or _has_auth_secret()):
        raise ConfigError("cookie_secret_missing")


def _has_auth_secret() -> bool:
    try:
        return bool(st.secrets.get("auth", {}).get("cookie_secret"))
    except StreamlitSecretNotFoundError:
        return False
