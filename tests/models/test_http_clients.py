"""HTTP clients of chat models: what a connected model sends, and to whom; proxy variables and SSL_CERT_FILE."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.app import App
from rag.config import load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models import chat, http_clients
from rag.models.chat import build_chat_model, build_user_model, check_chat_model, list_models
from rag.runs.run import Question
from rag.types import Notice
from tests.support.chat_server import ChatServer, Reply
from tests.test_cli import PAGES, lines, main

OPERATORS = {
    "OPENAI_API_KEY": "operators",
    "OPENAI_ORG_ID": "org-operators",
    "OPENAI_ORGANIZATION": "org-operators",
    "OPENAI_PROJECT_ID": "proj-operators",
    "OPENAI_CUSTOM_HEADERS": "X-Operator: 1\nAuthorization: Bearer operators",
}
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_PROXY")


def model(address: str, key: str = "", **how: Any) -> Any:
    return build_user_model("m", address, key, temperature=0.0, **how)


def reason(address: str, **how: Any) -> str:
    """Return why the model's test fails."""
    with pytest.raises(ModelError) as caught:
        asyncio.run(check_chat_model(model(address, **how)))
    return caught.value.code


@pytest.mark.parametrize("key", ["", "own"])
def test_nothing_of_the_operators_goes_out(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    for name, value in OPERATORS.items():
        monkeypatch.setenv(name, value)
    with ChatServer(["ready"]) as server:
        asyncio.run(check_chat_model(model(server.base_url, key)))
        sent = server.requests[0].headers
    assert "operators" not in str(sent)
    assert sent.get("authorization") == (f"Bearer {key}" if key else None)
    needed = {"host", "accept", "accept-encoding", "user-agent", "content-type", "content-length"}
    assert set(sent) - {"authorization", "connection"} == needed


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(["ready"]) as server, ChatServer(["ready"]) as proxy:
        for name in PROXIES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "")
        asyncio.run(check_chat_model(model(server.base_url)))
        assert (len(server.requests), len(proxy.requests)) == (1, 0)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with ChatServer(["ready"]) as inside:
        to = {"location": f"{inside.base_url}/chat/completions"}
        with ChatServer([Reply("moved", status=status, headers=to)] * 3) as server:
            assert reason(server.base_url) == "chat_redirected"
            assert len(server.requests) == 1
        assert not inside.requests


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply("Incorrect API key provided.", status=401), "chat_wrong_key"),
        (Reply("The model `m` does not exist.", status=404), "chat_unknown_model"),
        (Reply("Model Not Exist", status=400), "chat_unknown_model"),
        (Reply("404 page not found", status=404), "chat_wrong_address"),
        (Reply(fault="html"), "chat_unusable"),
        (Reply(fault="garbled"), "chat_unusable"),
        (Reply(fault="nested"), "chat_unusable"),
        (Reply(fault="flood"), "chat_broken_off"),
        (Reply(fault="drip"), "chat_timeout"),
        (Reply(fault="hang"), "chat_timeout"),
    ],
)
def test_what_is_no_chat_service_is_told(monkeypatch: pytest.MonkeyPatch, reply: Reply, code: str) -> None:
    monkeypatch.setattr(chat, "TIMEOUT_SECONDS", 1.0 if code == "chat_timeout" else 20.0)
    with ChatServer(lambda _: reply) as server:
        assert reason(server.base_url) == code


def test_a_reply_is_not_unpacked_beyond_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_clients, "MAX_REPLY_BYTES", 100)
    with ChatServer(["word " * 100] * 3) as server:
        assert reason(server.base_url) == "chat_broken_off"


def test_a_reply_that_says_it_is_packed_is_read_as_it_comes() -> None:
    with ChatServer([Reply("ready", headers={"content-encoding": "gzip"})]) as server:
        asyncio.run(check_chat_model(model(server.base_url)))


def test_it_connects_to_the_address_that_was_judged_and_to_no_other() -> None:
    """The host has no address in the DNS, so only the checked one can have been used."""
    judged: list[tuple[str, int]] = []

    def admit(host: str, port: int) -> list[str]:
        judged.append((host, port))
        return ["127.0.0.1"]

    with ChatServer(["ready"]) as server:
        asyncio.run(check_chat_model(model(f"http://chat.invalid:{server.port}/v1", admit=admit)))
        assert judged == [("chat.invalid", server.port)]
        assert server.requests[0].headers["host"] == f"chat.invalid:{server.port}"


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_an_address_without_a_port_is_judged_by_that_of_its_scheme(scheme: str, port: int) -> None:
    judged: list[tuple[str, int]] = []

    def admit(host: str, port: int) -> list[str]:
        judged.append((host, port))
        raise ModelError("chat_own_forbidden")

    with pytest.raises(ModelError):
        asyncio.run(check_chat_model(model(f"{scheme}://chat.invalid/v1", admit=admit)))
    assert set(judged) == {("chat.invalid", port)}


def test_the_next_address_is_tried_where_the_first_is_closed() -> None:
    with ChatServer(["ready"]) as server:
        address = f"http://chat.invalid:{server.port}/v1"
        asyncio.run(check_chat_model(model(address, admit=lambda *_: ["127.0.0.9", "127.0.0.1"])))
        assert len(server.requests) == 1


def test_a_refusal_of_the_judge_is_what_the_person_reads() -> None:
    def admit(host: str, port: int) -> list[str]:
        raise ModelError("chat_own_forbidden")

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror("no such name")

    assert reason("http://chat.example/v1", admit=admit) == "chat_own_forbidden"
    assert reason("http://chat.example/v1", admit=unknown) == "chat_unreachable"


def test_it_cannot_be_asked_unguarded() -> None:
    with ChatServer(["ready"]) as server:
        with pytest.raises(chat.failure_types()):
            model(server.base_url).invoke("hi")
        assert not server.requests


def test_the_list_of_models() -> None:
    def listed(server: ChatServer, key: str = "") -> list[str]:
        return asyncio.run(list_models(model(server.base_url, key)))

    with ChatServer(listed_models=["b", "a", "a", "", "x" * 1000]) as server:
        assert listed(server) == ["a", "b"]
    with ChatServer(listed_models=None) as server:
        assert listed(server) == []
    with ChatServer(key="right") as server:
        assert listed(server, "right") == ["test"]
        with pytest.raises(ModelError, match="refused the key"):
            listed(server, "wrong")
    with pytest.raises(ModelError, match="Can't reach"):
        listed(server)


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
def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, code: str) -> None:
    monkeypatch.setenv(variable, value)
    assert check("https://chat.example/v1") == code


def test_with_a_wrong_variable_answers_are_quoted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--data-dir", str(tmp_path), "import", str(lines(tmp_path / "pages.jsonl", PAGES))]) == 0
    variables = {"all_proxy": "::bad::", "LLM_BASE_URL": "https://chat.example/v1", "LLM_MODEL": "m"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with closing(App(load_settings(None, rag_data_dir=tmp_path))) as app:
        answer = app.wait(app.ask(Question("When was the bridge opened?", ("main",))))
    assert answer.text.startswith("The bridge was opened in 1932.")
    assert answer.notice and answer.notice.cause == "chat_proxy_invalid"
    assert answer.usage.calls == 0
    capsys.readouterr()
    assert main(["--data-dir", str(tmp_path), "doctor", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = (row for row in rows if row["part"] == "chat model")
    expected = say(Notice("chat_proxy_invalid", {"variable": "ALL_PROXY"}), "en")
    assert (row["works"], row["text"]) == (False, expected)


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
