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
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket
from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.version import STREAMLIT_VERSION_STRING

from rag.config import Settings
from rag.errors import ConfigError
from rag.ui.kit.browser import SCRIPTS
from rag.ui.serving.protection import (
    AllowedHosts,
    HideInternals,
    SecurityHeaders,
    check_cookie_secret,
    content_security_policy,
    inline_scripts,
    refusal,
    security_headers,
)

POLICY = dict(security_headers())[b"content-security-policy"]
RULES = dict(rule.split(" ", 1) for rule in POLICY.decode().split("; "))
PYTHON = ".".join(map(str, sys.version_info))
ALONE = Settings.model_construct()
SHARED = Settings.model_construct(database_url=SecretStr("postgresql://db/pagelight"))


def test_each_response_carries_the_policy_once() -> None:
    given = {"content-type": "text/html", "Content-Security-Policy": "default-src *"}
    app = Starlette(routes=[Route("/", lambda request: Response("", headers=given))])
    found = TestClient(SecurityHeaders(app)).get("/").headers
    assert found.get_list("content-security-policy") == [POLICY.decode()]
    assert found.get_list("content-type") == ["text/html"]
    assert found.get_list("x-content-type-options") == ["nosniff"]
    assert found.get_list("referrer-policy") == ["no-referrer"]


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


ALLOWED = frozenset({"pages.lan", "fd00::7"})


async def session(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("a session")
    await websocket.close()


@pytest.fixture
def guarded() -> TestClient:
    routes = [Route("/", lambda request: PlainTextResponse("a page")), WebSocketRoute("/stream", session)]
    app = Starlette(routes=routes, middleware=[Middleware(AllowedHosts, tuple(ALLOWED))])
    return TestClient(app, base_url="http://127.0.0.1:8501")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8501",
        "localhost",
        "LOCALHOST:80",
        "notes.localhost:8501",
        "[::1]:8501",
        "127.9.9.9",
        "pages.lan",
        "Pages.LAN.:8501",
        "[fd00::7]:8501",
    ],
)
def test_names_of_this_machine_and_allowed_ones_are_served(host: str) -> None:
    assert refusal([host], [], ALLOWED) == ""
    assert refusal([host], [f"http://{host}"], ALLOWED) == ""
    assert refusal([host], [f"https://{host}"], ALLOWED) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evilpages.lan",
        "x.pages.lan",
        "0.0.0.0:8501",
        "[::]",
        "[fd00::8]",
        "192.168.1.20",
        "2130706433",
        "localhost:8501@evil.example",
        "localhost/",
        "localhost:",
        "ｌocalhost",
        "",
    ],
)
def test_every_other_name_is_refused(host: str) -> None:
    assert refusal([host], [f"http://{host}"], ALLOWED) == "host"


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_one_name_is_asked_for(hosts: list[str]) -> None:
    assert refusal(hosts, [], ALLOWED) == "host"


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:9999",
        "http://localhost:8501",
        "http://127.0.0.1",
        "https://evil.example",
        "null",
        "",
        "file://",
    ],
)
def test_pages_of_other_sites_and_ports_are_refused(origin: str) -> None:
    assert refusal(["127.0.0.1:8501"], [origin], ALLOWED) == "origin"
    assert refusal(["127.0.0.1:8501"], ["http://127.0.0.1:8501", origin], ALLOWED) == "origin"


def test_a_refusal_names_the_setting_for_pages_and_sockets(guarded: TestClient) -> None:
    evil = {"host": "evil.example", "origin": "http://evil.example"}
    page = guarded.get("/", headers=evil)
    assert page.status_code == 403
    assert "evil.example" in page.text and "ALLOWED_HOSTS" in page.text
    assert "ALLOWED_HOSTS" in guarded.get("/", headers={**evil, "accept-language": "zh-CN"}).text
    with pytest.raises(WebSocketDenialResponse) as refused, guarded.websocket_connect("/stream", headers=evil):
        pass
    assert refused.value.status_code == 403
    assert "ALLOWED_HOSTS" in refused.value.text


def test_a_name_that_is_none_is_not_repeated(guarded: TestClient) -> None:
    assert "<b>" not in guarded.get("/", headers={"host": "<b>evil"}).text


def test_what_is_allowed_is_served(guarded: TestClient) -> None:
    headers = {"host": "127.0.0.1:8501", "origin": "http://127.0.0.1:8501"}
    assert guarded.get("/", headers=headers).text == "a page"
    with guarded.websocket_connect("/stream", headers=headers) as opened:
        assert opened.receive_text() == "a session"


def test_another_program_of_this_machine_gets_no_session(guarded: TestClient) -> None:
    headers = {"host": "127.0.0.1:8501", "origin": "http://127.0.0.1:3000"}
    with pytest.raises(WebSocketDenialResponse) as refused, guarded.websocket_connect("/stream", headers=headers):
        pass
    assert refused.value.status_code == 403
