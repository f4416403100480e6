"""The proxy variables and SSL_CERT_FILE with the settings' chat model, with real servers."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from rag.app import App
from rag.config import load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models import http_clients
from rag.models.chat import build_chat_model, check_chat_model
from rag.runs.run import Question
from rag.types import Notice
from tests.support.chat_server import ChatServer
from tests.test_cli import PAGES, lines, main

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "openai_proxy", "ssl_cert_file")
FAR = "http://chat.example/v1"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def check(address: str) -> str:
    """Return the error code of the model check; empty if the model answers."""
    try:
        asyncio.run(check_chat_model(build_chat_model(load_settings(None, llm_model="m", llm_base_url=address))))
    except ModelError as error:
        assert "{" not in say(error.notice, "en") + say(error.notice, "zh")
        return error.code
    return ""


def test_a_service_far_away_is_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "OPENAI_PROXY"):
        with ChatServer(["ready"]) as proxy, pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, f"127.0.0.1:{proxy.port}" if name.isupper() else f"http://127.0.0.1:{proxy.port}")
            assert check(FAR) == ""
            assert proxy.requests[0].path == f"{FAR}/chat/completions"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0"])
def test_this_machine_is_asked_directly(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "socks://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with ChatServer(["ready"]) as server:
        assert check(f"http://{host}:{server.port}/v1") == ""


@pytest.mark.parametrize(
    ("address", "near"),
    [
        *((near, True) for near in ("10.1.2.3", "172.31.0.1", "192.168.1.9", "169.254.0.7", "100.64.0.1")),
        *((near, True) for near in ("::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1")),
        *((far, False) for far in ("172.32.0.1", "8.8.8.8", "198.18.0.1", "2606:4700::1", "::ffff:8.8.8.8")),
    ],
)
def test_a_name_counts_by_its_addresses(monkeypatch: pytest.MonkeyPatch, address: str, near: bool) -> None:
    """Some proxies resolve every name to 198.18.0.1."""

    async def resolved(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, 80))]

    async def direct() -> bool:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        return await http_clients._bypasses_proxy(http_clients.httpx2.URL("http://ollama:11434/v1"))

    assert asyncio.run(direct()) is near


@pytest.mark.parametrize(
    ("entries", "excepted"),
    [
        *((yes, True) for yes in ("*", "chat.example", "EXAMPLE", ".example", "*.example", "a, chat.example:80")),
        *((no, False) for no in ("", "at.example", "chat.example:8080", "x.chat.example", "*.", "10.0.0.0/8")),
    ],
)
def test_no_proxy(monkeypatch: pytest.MonkeyPatch, entries: str, excepted: bool) -> None:
    monkeypatch.setenv("HTTP_PROXY", "::bad::")
    monkeypatch.setenv("NO_PROXY", entries)
    assert check(FAR) == ("chat_unreachable" if excepted else "chat_proxy_invalid")


@pytest.mark.parametrize("entry", ["203.0.113.0/24", "203.0.113.7", "203.0.113.7:80", "::1, fe80::/10,203.0.113.7"])
def test_no_proxy_takes_addresses_and_networks(entry: str) -> None:
    assert http_clients._is_in_no_proxy("203.0.113.7", 80, entry)
    assert not http_clients._is_in_no_proxy("203.0.114.7", 80, entry)
    assert http_clients._is_in_no_proxy("2001:db8::7", 443, "[2001:db8::7]:443,2001:db9::/32")
    assert not http_clients._is_in_no_proxy("2001:db8::7", 80, "[2001:db8::7]:443,2001:db9::/32")


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("HTTPS_PROXY", "::bad::", "chat_proxy_invalid"),
        ("HTTPS_PROXY", "http://127.0.0.1:78x0", "chat_proxy_invalid"),
        ("ALL_PROXY", "socks://127.0.0.1:7890", "chat_proxy_invalid"),
        ("all_proxy", "socks5h://127.0.0.1:7890", "chat_proxy_package"),
        ("HTTPS_PROXY", "http://127.0.0.1:1", "chat_proxy_unreachable"),
        ("HTTPS_PROXY", "http://127.0.0.1:99999", "chat_proxy_invalid"),
        ("HTTPS_PROXY", "http://", "chat_proxy_invalid"),
        ("SSL_CERT_FILE", "/nowhere.pem", "chat_certificates_missing"),
        ("SSL_CERT_FILE", __file__, "chat_certificates_missing"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_answers_are_quoted(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    variable: str,
    value: str,
    code: str,
) -> None:
    assert main(["--data-dir", str(tmp_path), "import", str(lines(tmp_path / "pages.jsonl", PAGES))]) == 0
    for name, setting in {variable: value, "LLM_BASE_URL": "https://chat.example/v1", "LLM_MODEL": "m"}.items():
        monkeypatch.setenv(name, setting)
    app = App(load_settings(None, rag_data_dir=tmp_path))
    try:
        answer = app.wait(app.ask(Question("When was the bridge opened?", ("main",))))
    finally:
        app.close()
    assert answer.text.startswith("The bridge was opened in 1932.")
    assert answer.notice and answer.notice.cause == code
    assert answer.usage.calls == 0
    capsys.readouterr()
    assert main(["--data-dir", str(tmp_path), "doctor", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = (row for row in rows if row["part"] == "chat model")
    named = {"variable": variable.upper(), "name": value}
    assert (row["works"], row["text"]) == (False, say(Notice(code, named), "en"))


def test_another_providers_package_is_not_handed_a_broken_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "::bad::")
    with pytest.raises(ModelError) as caught:
        build_chat_model(load_settings(None, llm_model="azure_openai:m"))
    assert caught.value.code == "chat_proxy_invalid"


def test_a_name_that_nobody_knows_goes_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("chat.example", 80)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert check(FAR) == "chat_proxy_unreachable"
