import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from rag.ui.serving.protection import AllowedHosts, refusal

ALLOWED = frozenset({"pages.lan", "fd00::7"})


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("a session")
    await websocket.close()


@pytest.fixture
def client() -> TestClient:
    routes = [Route("/", lambda request: PlainTextResponse("a page")), WebSocketRoute("/stream", socket)]
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


def test_a_refusal_names_the_setting_for_pages_and_sockets(client: TestClient) -> None:
    evil = {"host": "evil.example", "origin": "http://evil.example"}
    page = client.get("/", headers=evil)
    assert page.status_code == 403
    assert "evil.example" in page.text and "ALLOWED_HOSTS" in page.text
    assert "ALLOWED_HOSTS" in client.get("/", headers={**evil, "accept-language": "zh-CN"}).text
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/stream", headers=evil):
        pass
    assert refused.value.status_code == 403
    assert "ALLOWED_HOSTS" in refused.value.text


def test_a_name_that_is_none_is_not_repeated(client: TestClient) -> None:
    assert "<b>" not in client.get("/", headers={"host": "<b>evil"}).text


def test_what_is_allowed_is_served(client: TestClient) -> None:
    headers = {"host": "127.0.0.1:8501", "origin": "http://127.0.0.1:8501"}
    assert client.get("/", headers=headers).text == "a page"
    with client.websocket_connect("/stream", headers=headers) as opened:
        assert opened.receive_text() == "a session"


def test_another_program_of_this_machine_gets_no_session(client: TestClient) -> None:
    headers = {"host": "127.0.0.1:8501", "origin": "http://127.0.0.1:3000"}
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/stream", headers=headers):
        pass
    assert refused.value.status_code == 403
