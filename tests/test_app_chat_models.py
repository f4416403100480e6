"""The settings' chat model and those that users connect: where keys are sent, who may connect, and error messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rag.app import chat_models
from rag.app.chat_models import (
    CONNECTION_SECONDS,
    MAX_CONNECTIONS,
    SERVICES,
    ChatModels,
    ChatOptions,
    ConnectionStore,
    Holder,
    from_form,
)
from rag.config import load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models.http_clients import UserTransport
from tests.support.chat_server import ChatServer, Reply

OURS = {"llm_model": "a", "llm_base_url": "http://127.0.0.1:9/v1", "llm_api_key": "operators"}


def chats(**settings: Any) -> ChatModels:
    return ChatModels(load_settings(None, **settings))


def refused(work: Any, *given: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        work(*given)
    assert "{" not in say(caught.value.notice, "en") + say(caught.value.notice, "zh")
    return caught.value


def test_the_key_of_the_settings_goes_to_no_other_service() -> None:
    models = chats(**OURS)
    for chat, key in (
        (ChatOptions("b", "http://127.0.0.1:9/v1"), "operators"),
        (ChatOptions("b", "http://127.0.0.1:9/v1", holder=Holder("chosen in the app", "")), "operators"),
        (ChatOptions("b", "http://127.0.0.1:8/v1"), "not-needed"),
        (ChatOptions("b", "http://127.0.0.1:8/v1", "own", fast_model="c"), "own"),
    ):
        for model in filter(None, (models.chat(chat), models.fast_chat(chat))):
            assert model.openai_api_key.get_secret_value() == key  # type: ignore[attr-defined]


def test_a_connected_model_gets_no_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "operators")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert refused(chats().chat, ChatOptions("openai:m")).code == "connect_key_missing"
    assert refused(chats().chat, ChatOptions("anthropic:m", "", "own")).code == "connect_no_address"
    model: Any = chats().chat(ChatOptions("openai:m", "", "own"))
    assert (model.openai_api_base, model.model_name) == (SERVICES["OpenAI"][0], "m")


def test_the_operators_model_keeps_the_operators_connection() -> None:
    """A user without a key chooses among the operator's models."""
    same = ("a", "http://127.0.0.1:9/v1")

    def is_own(options: ChatOptions) -> bool:
        model: Any = chats(**OURS).chat(options)
        return isinstance(model.http_async_client._transport, UserTransport)

    assert not is_own(ChatOptions(*same, temperature=0.3))
    assert is_own(ChatOptions(*same, "own"))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:11434/v1",
        "http://169.254.169.254/v1",
        "http://10.0.0.5:8080/v1",
        "http://[::1]:8080/v1",
        "http://chat.internal/v1",
        "https://chat.example:9000/v1",
        "http://0x7f.1/v1",
        "http://localhost/v1",
    ],
)
def test_where_people_sign_in_an_address_passes_the_guard(address: str) -> None:
    models = chats(auth_allow=("@team.example",))
    error = refused(models.connect, ChatOptions("m", address, "own"), "browser")
    assert error.code == "chat_address_blocked"
    assert models.connections.get("browser", "") is None
    assert chats().chat(ChatOptions("m", address, "own"))


def test_where_people_sign_in_every_answer_of_the_dns_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([["127.0.0.1"], ["93.184.216.34", "10.0.0.1"]])
    monkeypatch.setattr(chat_models, "resolve_host", lambda host, port: next(answers))
    for _ in range(2):
        error = refused(chats(auth_allow=("*",)).test, ChatOptions("m", "https://rebound.example/v1", "own"))
        assert error.code == "chat_address_blocked"


def test_the_guard_lets_through_what_the_operator_named() -> None:
    with ChatServer(lambda _: "ready") as server:
        chat = ChatOptions("m", server.base_url, "own")
        pair = f"127.0.0.1:{server.port}"
        assert chats(auth_allow=("*",), fetch_allow_private_hosts=pair).test(chat).code == "chat_works"
        assert chats(auth_allow=("*",), llm_base_url=server.base_url, llm_model="x").test(chat).code == "chat_works"
        assert refused(chats(auth_allow=("*",)).test, chat).code == "chat_address_blocked"


def test_own_models_can_be_forbidden() -> None:
    models = chats(own_models=False, **OURS)
    assert not models.own_allowed
    for chat in (
        ChatOptions("m", "http://127.0.0.1:8/v1"),
        ChatOptions("a", OURS["llm_base_url"], "own"),
        ChatOptions("dearer", OURS["llm_base_url"]),
        ChatOptions("a", OURS["llm_base_url"], fast_model="dearer"),
    ):
        assert refused(models.chat, chat).code == "chat_own_forbidden"
        assert refused(models.list_models, chat).code == "chat_own_forbidden"
        assert refused(models.connect, chat, "browser").code == "chat_own_forbidden"
    assert models.chat(ChatOptions("a", OURS["llm_base_url"], temperature=0.5))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply("Incorrect API key provided: own.", status=401), "connect_wrong_key"),
        (Reply("The model `m` does not exist.", status=404), "connect_unknown_model"),
        (Reply("404 page not found", status=404), "connect_wrong_address"),
        (Reply("no", status=403), "connect_forbidden"),
        (Reply("moved", status=302, headers={"location": "http://127.0.0.1:1/"}), "connect_redirected"),
        (Reply(fault="html"), "connect_unusable"),
        (Reply("no", status=400), "connect_refused"),
        (Reply("Insufficient Balance", status=402), "chat_no_credit"),
    ],
)
def test_what_stands_in_the_way_is_said_in_the_forms_words(reply: Reply, code: str) -> None:
    with ChatServer(lambda _: reply) as server:
        models = chats()
        error = refused(models.connect, ChatOptions("m", server.base_url, "own-key"), "browser")
        assert error.code == code
        assert models.connections.get("browser", "") is None
        assert "own-key" not in str(error) and "LLM_" not in str(error)


def test_a_dead_port_is_said_with_its_address() -> None:
    with ChatServer() as server:
        address = server.base_url
    error = refused(chats().connect, ChatOptions("m", address), "browser")
    assert error.code == "connect_unreachable"
    assert address in str(error)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (from_form(" ", "http://x/v1", "", "", 0.0), "connect_no_model"),
        (from_form("m", "", "", "", 0.0), "connect_no_address"),
        (from_form("m", "ftp://x", "", "", 0.0), "connect_not_http"),
        (from_form("m", "http://x:99999/v1", "", "", 0.0), "connect_not_http"),
        (from_form("m", "http://x:9y/v1", "", "", 0.0), "connect_not_http"),
        (from_form("m", "https://me:secret@x/v1", "", "", 0.0), "connect_not_http"),
        (from_form("m", "https://x/v1?key=secret", "", "", 0.0), "connect_not_http"),
        (from_form("m", SERVICES["OpenAI"][0], "", "", 0.0), "connect_key_missing"),
        (from_form("m", "http://x/v1", "a\r\nX-Other: b", "", 0.0), "connect_wrong_key"),
        (from_form("m", "http://x/v1", "密钥", "", 0.0), "connect_wrong_key"),
    ],
)
def test_what_cannot_be_right_is_said_before_anything_is_asked(options: ChatOptions, code: str) -> None:
    assert refused(chats().connect, options, "browser").code == code


def test_both_models_are_tested_and_kept() -> None:
    with ChatServer(lambda _: "ready", models=["m", "small"]) as server:
        models = chats()
        error = refused(models.connect, ChatOptions("m", server.base_url, fast_model="none"), "browser")
        assert error.code == "connect_unknown_model" and "named none." in str(error)
        chat = ChatOptions("m", server.base_url, "own", fast_model="small")
        assert models.connect(chat, "browser", "ann").code == "connect_works"
    assert models.connections.get("browser", "ann") == chat


def test_the_services_own_list() -> None:
    with ChatServer(listed_models=["a", "b"], key="right") as server:
        assert chats().list_models(ChatOptions("", server.base_url, "right")) == ["a", "b"]
        assert refused(chats().list_models, ChatOptions("", server.base_url, "wrong")).code == "connect_wrong_key"
    assert refused(chats().list_models, ChatOptions("", server.base_url)).code == "connect_unreachable"
    with ChatServer(listed_models=None) as server:
        assert refused(chats().list_models, ChatOptions("", server.base_url)).code == "connect_no_list"


def test_a_key_is_not_in_what_is_printed() -> None:
    assert "secret" not in repr(ChatOptions("m", "http://x", "secret"))


def test_what_is_connected_is_one_browsers_and_one_persons() -> None:
    connected = ConnectionStore()
    mine, other = ChatOptions("mine"), ChatOptions("other")
    connected.add("one", "ann", mine)
    connected.add("two", "ann", other)
    assert [connected.get(browser, "ann") for browser in ("one", "two", "three")] == [mine, other, None]
    assert connected.get("one", "bob") is None
    assert connected.get("one", "ann") is None  # another user was here, so it is disconnected for good
    connected.forget("two")
    connected.forget("two")
    assert connected.get("two", "ann") is None


def test_it_ends_after_twelve_hours() -> None:
    clock = SimpleNamespace(now=0.0)
    connected = ConnectionStore(lambda: clock.now)
    connected.add("one", "", ChatOptions("m"))
    clock.now = CONNECTION_SECONDS - 1
    assert connected.get("one", "")
    clock.now += 1
    assert connected.get("one", "") is None


def test_memory_is_bounded() -> None:
    connected = ConnectionStore()
    for place in range(MAX_CONNECTIONS + 5):
        connected.add(str(place), "", ChatOptions("m"))
    kept = [place for place in range(MAX_CONNECTIONS + 5) if connected.get(str(place), "")]
    assert kept == list(range(5, MAX_CONNECTIONS + 5))
    longest = from_form("m" * 10**5, "http://" + "x" * 10**5, "k" * 10**5, "f" * 10**5, 0.0)
    assert sum(map(len, (longest.model, longest.base_url, longest.api_key, longest.fast_model))) == 8000
