import sys

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.version import STREAMLIT_VERSION_STRING

from rag.ui.serving.protection import NoDisclosure

PYTHON = ".".join(map(str, sys.version_info))


def opening() -> ForwardMsg:
    """What Streamlit sends first, in a session of this machine."""
    message = ForwardMsg(hash="1")
    message.new_session.name = "main"
    told = message.new_session.initialize.environment_info
    told.streamlit_version, told.python_version, told.server_os = STREAMLIT_VERSION_STRING, PYTHON, "Linux"
    return message


def markdown() -> ForwardMsg:
    """A page that speaks of this very version of Python."""
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
    app = Starlette(routes=[WebSocketRoute("/stream", socket), everywhere], middleware=[Middleware(NoDisclosure)])
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
    assert session.initialize.environment_info.streamlit_version  # an upgrade must change it
    assert second == markdown().SerializeToString()
