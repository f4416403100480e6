from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import streamlit
import streamlit as st
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.version import STREAMLIT_VERSION_STRING

from rag.config import Settings
from rag.errors import ConfigError
from rag.ui.kit.browser import SCRIPTS
from rag.ui.serving.protection import (
    HideInternals,
    SecurityHeaders,
    check_cookie_secret,
    content_security_policy,
    inline_scripts,
    security_headers,
)

POLICY = dict(security_headers())[b"content-security-policy"]
RULES = dict(rule.split(" ", 1) for rule in POLICY.decode().split("; "))
PYTHON = ".".join(map(str, sys.version_info))
ALONE = Settings.model_construct()
SHARED = Settings.model_construct(database_url=SecretStr("postgresql://db/pagelight"))


def respond(headers: list[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """Return the headers of a response that an app sent with `headers`, by name."""
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


def opening() -> ForwardMsg:
    """Return Streamlit's first message, in a session of this machine."""
    message = ForwardMsg(hash="1")
    message.new_session.name = "main"
    told = message.new_session.initialize.environment_info
    told.streamlit_version, told.python_version, told.server_os = STREAMLIT_VERSION_STRING, PYTHON, "Linux"
    return message


def markdown() -> ForwardMsg:
    """Return a message of a page that mentions this version of Python."""
    message = ForwardMsg(hash="2")
    message.delta.new_element.markdown.body = PYTHON
    return message


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    for message in (opening(), markdown()):
        await websocket.send_bytes(message.SerializeToString())
    await websocket.close()


@pytest.fixture
def client() -> TestClient:
    everywhere = Route("/{path:path}", lambda request: PlainTextResponse("told"))
    app = Starlette(routes=[WebSocketRoute("/stream", socket), everywhere], middleware=[Middleware(HideInternals)])
    return TestClient(app)


@pytest.mark.parametrize("path", ["metrics", "metrics/", "agent/openapi.json", "agent/mcp", "script-health-check"])
@pytest.mark.parametrize("base", ["", "/app"])
def test_metrics_and_interfaces_are_closed(client: TestClient, base: str, path: str) -> None:
    answer = client.get(f"{base}/_stcore/{path}")
    assert (answer.status_code, answer.text) == (404, "Not Found")


@pytest.mark.parametrize("path", ["_stcore/health", "_stcore/host-config", "metrics", ""])
def test_what_a_page_needs_is_open(client: TestClient, path: str) -> None:
    assert client.get(f"/{path}").text == "told"


def test_a_session_opens_without_versions_and_everything_else_stays(client: TestClient) -> None:
    with client.websocket_connect("/stream") as opened:
        first, second = opened.receive_bytes(), opened.receive_bytes()
    for told in (PYTHON, STREAMLIT_VERSION_STRING, "Linux"):
        assert told.encode() not in first
    session = ForwardMsg.FromString(first).new_session
    assert session.name == "main"
    assert session.initialize.environment_info.streamlit_version  # must change with an upgrade
    assert second == markdown().SerializeToString()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace Streamlit's secrets by an empty dict, without the option."""
    secrets: dict[str, Any] = {}
    monkeypatch.setattr(st, "secrets", secrets)
    monkeypatch.setattr(config, "is_manually_set", lambda option: False)
    return secrets


@pytest.mark.usefixtures("given")
def test_one_app_needs_none() -> None:
    check_cookie_secret(ALONE)


@pytest.mark.usefixtures("given")
def test_apps_that_share_a_database_refuse_to_start_without_one() -> None:
    with pytest.raises(ConfigError, match="STREAMLIT_SERVER_COOKIE_SECRET"):
        check_cookie_secret(SHARED)


def test_that_of_the_server_or_of_sign_in_will_do(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given["auth"] = {"cookie_secret": "x"}
    check_cookie_secret(SHARED)
    given.clear()
    monkeypatch.setattr(config, "is_manually_set", lambda option: option == "server.cookieSecret")
    check_cookie_secret(SHARED)
