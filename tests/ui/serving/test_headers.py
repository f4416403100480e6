import asyncio
from pathlib import Path
from typing import Any

import streamlit

from rag.ui.kit.browser import SCRIPTS
from rag.ui.serving.protection import SecurityHeaders, content_security_policy, inline_scripts, security_headers

POLICY = dict(security_headers())[b"content-security-policy"]
RULES = dict(rule.split(" ", 1) for rule in POLICY.decode().split("; "))


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
    assert found[b"content-security-policy"] == [POLICY]
    assert found[b"content-type"] == [b"text/html"]
    assert found[b"x-content-type-options"] == [b"nosniff"]
    assert found[b"referrer-policy"] == [b"no-referrer"]


def test_images_frames_and_connections_stay_at_home() -> None:
    assert RULES["img-src"] == "'self' data: blob:"
    assert RULES["connect-src"] == "'self'"
    assert RULES["frame-ancestors"] == "'none'"
    assert all("http" not in rule and "*" not in rule for rule in RULES.values())


def test_scripts_are_files_of_the_app_or_those_that_the_policy_names() -> None:
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    known, *digests = RULES["script-src"].removeprefix("'self' ").split(" ")
    assert known == "'wasm-unsafe-eval'"
    assert len(digests) == len(inline_scripts(page)) + len(SCRIPTS)
    assert all(digest.startswith("'sha256-") for digest in digests)


def test_a_script_inside_a_page_is_named_by_its_digest() -> None:
    # The example of CSP 3, section 2.3.1.
    page = """<!-- <script>no</script> --><script src="a.js"></script><script>doSomething();</script>"""
    policy = content_security_policy(inline_scripts(page))
    assert "script-src 'self' 'wasm-unsafe-eval' 'sha256-RFWPLDbv2BY+rCkDzsE+0fr8ylGr2R2faWMhq4lfEQc='; " in policy


def test_sockets_pass_untouched() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((receive, send))

    asyncio.run(SecurityHeaders(app)({"type": "websocket"}, "receive", "send"))  # type: ignore[arg-type]
    assert seen == [("receive", "send")]
