"""Two apps over one Postgres and one Qdrant server, with sign-in, behind the shipped proxy; one is killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from rag.locales import say
from rag.types import Notice
from tests.e2e.conftest import LOCALES, ROOT, browser_path, send, serve_with_process
from tests.e2e.test_pages import add
from tests.support.chat_protocol import Reply
from tests.support.chat_server import ChatServer
from tests.support.identity_provider import IdentityProvider
from tests.support.qdrant_server import QdrantServer

SECRET = "0123456789abcdef0123456789abcdef"
ANN = {"sub": "1", "name": "Ann", "email": "ann@example.com", "email_verified": True}
WORDS = ["The ferry to Sark takes fifty minutes [1]. ", *(f"Pier {number} is open. " for number in range(200))]
PAGE = "# Ferries\n\nThe ferry to Sark takes fifty minutes. It leaves from the White Rock at nine.\n"


class Team(NamedTuple):
    address: str
    apps: dict[str, subprocess.Popen[bytes]]


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@contextmanager
def proxy(bind: str, first: str, second: str) -> Iterator[str]:
    """Run HAProxy in front of two apps, with the shipped configuration; yield its address."""
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("no haproxy: install Debian's package")
    places = {"PROXY_BIND": bind, "APP_1": first.removeprefix("http://"), "APP_2": second.removeprefix("http://")}
    process = subprocess.Popen([program, "-f", ROOT / "deploy" / "haproxy.cfg"], env=os.environ | places)
    try:
        _wait(f"http://{bind}")
        yield f"http://{bind}"
    finally:
        process.terminate()
        process.wait(10)


def _wait(address: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError("no app answers behind the proxy")


@pytest.fixture
def team(tmp_path: Path, postgres_url: str) -> Iterator[Team]:
    browser_path()
    with ExitStack() as stack:
        server = stack.enter_context(QdrantServer(tmp_path / "qdrant"))
        model = stack.enter_context(ChatServer(lambda _: Reply(parts=WORDS, pause=0.2)))
        provider = stack.enter_context(IdentityProvider(ANN))
        bind = free_address()
        settings = {
            "AUTH_ALLOW": "@example.com",
            "DATABASE_URL": postgres_url,
            "QDRANT_URL": server.url,
            "LLM_BASE_URL": model.base_url,
            "LLM_MODEL": "test",
            "STREAMLIT_SERVER_COOKIE_SECRET": SECRET,
        }
        apps, addresses = {}, []
        for name in "12":
            secrets = tmp_path / name / ".streamlit" / "secrets.toml"
            secrets.parent.mkdir(parents=True)
            secrets.write_text(provider.secrets(f"http://{bind}", SECRET))
            address, apps[name] = stack.enter_context(serve_with_process(tmp_path / name, **settings))
            addresses.append(address)
        yield Team(stack.enter_context(proxy(bind, *addresses)), apps)


def app_of(page: Page) -> str:
    """Return the app to which the proxy sends this browser."""
    return next(str(one["value"]) for one in page.context.cookies() if one["name"] == "pagelight_app")


def test_another_app_takes_over_after_a_kill(team: Team, browser: Browser) -> None:
    page = browser.new_context(locale=LOCALES["en"]).new_page()
    page.goto(team.address)
    page.locator(".st-key-sign-in- button").click()
    expect(page.get_by_test_id("stChatInputTextArea")).to_be_visible(timeout=30_000)
    page.goto(f"{team.address}/add")
    add(page, "en", {"name": "ferries.md", "mimeType": "text/markdown", "buffer": PAGE.encode()})
    page.goto(team.address)
    send(page, "How long does the ferry to Sark take?")
    answer = page.locator("[class*='st-key-answer-']")
    expect(page.get_by_text("Pier 12 is open.")).to_be_visible()
    first = app_of(page)
    team.apps[first].kill()
    team.apps[first].wait()
    interrupted = page.get_by_text(say(Notice("turn_interrupted"), "en"))
    for _ in range(3):  # the proxy may not have noticed yet
        page.reload()
        with suppress(AssertionError):
            expect(interrupted).to_be_visible(timeout=20_000)
            break
    expect(interrupted).to_be_visible()
    assert app_of(page) != first
    expect(page.get_by_text("How long does the ferry to Sark take?").first).to_be_visible()
    expect(answer).to_contain_text("fifty minutes")
    page.context.close()
