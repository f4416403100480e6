import asyncio
from typing import Any

from rag.ui.headers import CONTENT_SECURITY_POLICY, SecurityHeaders


def respond(headers: list[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """The headers of a response that an app sent with `headers`, by name."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(SecurityHeaders(app)({"type": "http", "headers": []}, None, send))  # type: ignore[arg-type]
    found: dict[bytes, list[bytes]] = {}
    for name, value in sent[0]["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def test_each_response_carries_the_policy_once() -> None:
    found = respond([(b"content-type", b"text/html"), (b"Content-Security-Policy", b"default-src *")])
    assert found[b"content-security-policy"] == [CONTENT_SECURITY_POLICY.encode()]
    assert found[b"content-type"] == [b"text/html"]
    assert found[b"x-content-type-options"] == [b"nosniff"]
    assert found[b"referrer-policy"] == [b"no-referrer"]


def test_images_frames_and_connections_stay_at_home() -> None:
    rules = dict(rule.split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["img-src"] == "'self' data: blob:"
    assert rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert all("http" not in rule and "*" not in rule for rule in rules.values())


def test_sockets_pass_untouched() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((receive, send))

    asyncio.run(SecurityHeaders(app)({"type": "websocket"}, "receive", "send"))  # type: ignore[arg-type]
    assert seen == [("receive", "send")]
