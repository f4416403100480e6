"""A chat model that a user connected: what its client sends, and to whom, with real servers."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from rag.errors import ModelError
from rag.models import chat, http_clients, openai_chat
from rag.models.chat import build_user_model, check_chat_model, list_models
from tests.support.chat_server import ChatServer, Reply

OPERATORS = {
    "OPENAI_API_KEY": "operators",
    "OPENAI_ORG_ID": "org-operators",
    "OPENAI_ORGANIZATION": "org-operators",
    "OPENAI_PROJECT_ID": "proj-operators",
    "OPENAI_CUSTOM_HEADERS": "X-Operator: 1\nAuthorization: Bearer operators",
}
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_PROXY")


@pytest.fixture(autouse=True)
def fast_and_forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(openai_chat, "_refused_fields", {})


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


def test_a_closed_port() -> None:
    with ChatServer() as server:
        address = server.base_url
    assert reason(address) == "chat_unreachable"


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
