"""The security headers of every HTTP response: the net under the safe renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
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

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


class SecurityHeaders:
    """ASGI middleware that sets `SECURITY_HEADERS` on each response, in place of any the app set.

    Behind TLS, every cookie becomes Secure.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        encrypted = _encrypted(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in SECURITY_HEADERS}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
                kept = [_secured(*header) for header in kept] if encrypted else kept
                message["headers"] = [*kept, *SECURITY_HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _encrypted(scope: Scope) -> bool:
    """Whether the browser came over TLS, here or at a proxy before the app.

    Whoever claims it falsely gets nothing but cookies that their own browser does not send back.
    """
    proxies = Headers(scope=scope).get("x-forwarded-proto", "")
    return "https" in (scope.get("scheme"), proxies.partition(",")[0].strip().lower())


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() != b"set-cookie":
        return name, value
    attributes = {part.strip().lower() for part in value.split(b";")[1:]}
    return name, value if b"secure" in attributes else value + b"; Secure"
