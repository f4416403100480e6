import re

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rag.ui.kit.browser import COOKIE, BrowserCookie
from rag.ui.serving.protection import SecurityHeaders

PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def served(address: str = "http://localhost") -> TestClient:
    """Return a client, without cookies, of a small app behind the middleware in main.py's order."""
    routes = [Route("/", lambda request: HTMLResponse(""))]
    app = Starlette(routes=routes, middleware=[Middleware(SecurityHeaders), Middleware(BrowserCookie)])
    return TestClient(app, base_url=address)


def test_the_browser_id_is_a_cookie_that_scripts_cannot_read() -> None:
    first, second = (served().get("/", headers=PAGE) for _ in range(2))
    cookie = first.headers["set-cookie"]
    assert re.fullmatch(rf"{COOKIE}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Lax", cookie)
    assert "private" in first.headers["cache-control"]
    assert cookie != second.headers["set-cookie"]


def test_a_browser_keeps_its_id() -> None:
    client = served()
    client.get("/", headers=PAGE)
    assert "set-cookie" not in client.get("/", headers=PAGE).headers


@pytest.mark.parametrize("forged", ["", "1", "a" * 44, "a" * 42 + ";"])
def test_an_id_of_another_form_is_replaced(forged: str) -> None:
    assert COOKIE in served().get("/", headers={**PAGE, "cookie": f"{COOKIE}={forged}"}).headers["set-cookie"]


def test_what_a_page_loads_besides_carries_no_id() -> None:
    assert "set-cookie" not in served().get("/", headers={"accept": "*/*"}).headers


@pytest.mark.parametrize(
    ("address", "proxy", "secure"),
    [
        ("http://localhost", {}, False),
        ("https://localhost", {}, True),
        ("http://localhost", {"x-forwarded-proto": "https"}, True),
        ("http://localhost", {"x-forwarded-proto": "http, https"}, False),
    ],
)
def test_cookies_are_secure_behind_tls(address: str, proxy: dict[str, str], secure: bool) -> None:
    cookie = served(address).get("/", headers={**PAGE, **proxy}).headers["set-cookie"]
    assert cookie.endswith("; Secure") is secure
