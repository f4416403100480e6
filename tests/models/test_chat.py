"""The chat model with a real server: requests, retries, and the code of each failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rag.config import Settings, load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models import chat, openai_chat
from rag.models.chat import build_chat_model, check_chat_model
from rag.models.servers import failure_types, model_error
from tests.support.chat_server import Call, ChatServer, Reply


@pytest.fixture(autouse=True)
def fast_and_forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shorten waits, and forget what was learned about servers of other tests."""
    monkeypatch.setattr(openai_chat, "_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(openai_chat, "_refused_fields", {})
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    yield


TOO_LONG = "chat_too_long"


def settings(model: str = "test", base_url: str = "", **more: Any) -> Settings:
    return load_settings(env_file=None, llm_model=model, llm_base_url=base_url, **more)


async def streamed(model: Any) -> list[Any]:
    return [chunk async for chunk in model.astream("hi")]


def failed(model: Any, *, stream: bool) -> ModelError:
    """Return the error of one request to the model."""
    try:
        asyncio.run(streamed(model) if stream else model.ainvoke("hi"))
    except failure_types() as error:
        return model_error(error)
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("name", ["qwen3:8b", "Qwen/Qwen3-32B", "deepseek-chat", "anthropic:claude"])
def test_with_an_address_the_whole_name_is_the_models(name: str) -> None:
    with ChatServer(["ready"]) as server:
        asyncio.run(build_chat_model(settings(name, server.base_url)).ainvoke("hi"))
        assert server.requests[0].body["model"] == name
        assert server.requests[0].body["temperature"] == 0.0


def test_a_leading_openai_is_no_part_of_the_name() -> None:
    with ChatServer(["ready"]) as server:
        asyncio.run(build_chat_model(settings("openai:qwen3:8b", server.base_url)).ainvoke("hi"))
        assert server.requests[0].body["model"] == "qwen3:8b"


def test_the_address_may_be_the_whole_path() -> None:
    with ChatServer(["ready"]) as server:
        asyncio.run(build_chat_model(settings("m", f"{server.base_url}/chat/completions")).ainvoke("hi"))
        assert server.requests[0].path == "/v1/chat/completions"


def test_keys_given_set_and_missing() -> None:
    with ChatServer(["ready"] * 3) as server:
        local = settings("m", server.base_url)
        asyncio.run(build_chat_model(local).ainvoke("hi"))
        asyncio.run(build_chat_model(settings("m", server.base_url, llm_api_key="set")).ainvoke("hi"))
        asyncio.run(build_chat_model(settings("m", server.base_url, llm_api_key="set"), api_key="given").ainvoke("hi"))
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer not-needed", "Bearer set", "Bearer given"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "chat_not_set"),
        ("openai:gpt-4o-mini", "chat_key_missing"),
        ("anthropic:claude-x", "chat_package_missing"),
        ("no-such-provider:m", "chat_unknown_provider"),
        ("qwen3:8b", "chat_unknown_provider"),
    ],
)
def test_settings_that_name_no_usable_model(name: str, code: str) -> None:
    with pytest.raises(ModelError) as caught:
        build_chat_model(settings(name))
    assert caught.value.code == code


def test_a_stream_brings_words_and_usage() -> None:
    with ChatServer(["The lamp 灯塔 burns."]) as server:
        chunks = asyncio.run(streamed(build_chat_model(settings("m", server.base_url))))
    assert "".join(chunk.text for chunk in chunks) == "The lamp 灯塔 burns."
    assert sum(bool(chunk.text) for chunk in chunks) > 3
    assert sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata) > 0


def test_usage_that_is_refused_is_left_out_from_then_on() -> None:
    with ChatServer(["one", "two"], refuse=["stream_options"]) as server:
        model = build_chat_model(settings("m", server.base_url))

        async def twice() -> list[str]:
            return ["".join(chunk.text for chunk in await streamed(model)) for _ in range(2)]

        assert asyncio.run(twice()) == ["one", "two"]
        assert len(server.requests) == 3


def test_a_temperature_that_is_refused_is_left_out_from_then_on() -> None:
    with ChatServer(["one", "two"], refuse=["temperature"]) as server:
        model = build_chat_model(settings("m", server.base_url))

        async def twice() -> list[str]:
            return [(await model.ainvoke("hi")).text for _ in range(2)]

        assert asyncio.run(twice()) == ["one", "two"]
        assert len(server.requests) == 3


def test_what_did_not_help_is_not_left_out_for_good() -> None:
    with ChatServer([Reply("no", status=400), Reply("no", status=400), "fine"]) as server:
        model = build_chat_model(settings("m", server.base_url))

        async def twice() -> None:
            with pytest.raises(failure_types()):
                await streamed(model)
            await streamed(model)

        asyncio.run(twice())
        assert "stream_options" in server.requests[-1].body


def test_tool_calls_arrive_whole_and_streamed() -> None:
    call = Reply(tool_calls=[Call("retrieve", {"query": "灯塔 lighthouse"})])
    with ChatServer([call, call]) as server:
        model = build_chat_model(settings("m", server.base_url))
        whole = asyncio.run(model.ainvoke("hi"))
        pieces = asyncio.run(streamed(model))
    joined = pieces[0]
    for piece in pieces[1:]:
        joined += piece
    for message in (whole, joined):
        assert [(made["name"], made["args"]) for made in message.tool_calls] == [
            ("retrieve", {"query": "灯塔 lighthouse"})
        ]


def test_malformed_arguments_are_kept_apart() -> None:
    with ChatServer([Reply(tool_calls=[Call("retrieve", '{"query": "x')])]) as server:
        message = asyncio.run(build_chat_model(settings("m", server.base_url)).ainvoke("hi"))
    assert not message.tool_calls
    assert message.invalid_tool_calls[0]["args"] == '{"query": "x'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "text", "code", "requests"),
    [
        (401, "Incorrect API key", "chat_wrong_key", 1),
        (402, "Insufficient Balance", "chat_no_credit", 1),
        (403, "Forbidden", "chat_forbidden", 1),
        (404, "no such model", "chat_unknown_model", 1),
        (404, "404 page not found", "chat_wrong_address", 1),
        (403, "model_not_found", "chat_unknown_model", 1),
        (413, "too large", "chat_too_long", 1),
        (429, "slow down", "chat_rate_limit", 3),
        (429, "insufficient_quota", "chat_no_credit", 1),
        (500, "boom", "chat_server_error", 3),
        (503, "overloaded", "chat_server_error", 3),
        (400, "This model's maximum context length is 8192 tokens", "chat_too_long", 1),
        (400, "request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it", TOO_LONG, 1),
        (400, "the input length exceeds the context length", TOO_LONG, 1),
        (500, "input length exceeds maximum context length", TOO_LONG, 1),
        (400, "The decoder prompt (length 5012) is longer than the maximum model length of 4096.", TOO_LONG, 1),
        (
            400,
            "Trying to keep the first 9000 tokens when context the overflows. However, … only 4096 tokens",
            TOO_LONG,
            1,
        ),
        (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", TOO_LONG, 1),
        (400, "输入文本过长，超过模型最大上下文长度 8192", TOO_LONG, 1),
        (400, "top_p must not exceed 1", "chat_refused", None),
    ],
)
def test_each_status_has_its_sentence(status: int, text: str, code: str, requests: int | None, stream: bool) -> None:
    with ChatServer([Reply(text, status=status)] * 5) as server:
        error = failed(build_chat_model(settings("m", server.base_url)), stream=stream)
        assert error.code == code
        assert requests is None or len(server.requests) == requests
    for language in ("en", "zh"):
        assert "{" not in say(error.notice, language)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "code"), [("cut", "chat_broken_off"), ("garbled", "chat_unusable"), ("nested", "chat_unusable")]
)
def test_half_an_answer(fault: Any, code: str, stream: bool) -> None:
    with ChatServer([Reply("one two three four", fault=fault)] * 5) as server:
        assert failed(build_chat_model(settings("m", server.base_url)), stream=stream).code == code
        if stream:  # shown text must not be shown twice
            assert len(server.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setattr(chat, "TIMEOUT_SECONDS", 0.3)
    with ChatServer([Reply("one two three four", fault="hang")] * 5) as server:
        assert failed(build_chat_model(settings("m", server.base_url)), stream=stream).code == "chat_timeout"
        assert len(server.requests) == 1


def test_a_server_that_recovers_is_asked_again() -> None:
    with ChatServer([Reply("boom", status=500), Reply("slow", status=429, headers={"retry-after": "0.01"}), "ok"]) as s:
        assert asyncio.run(build_chat_model(settings("m", s.base_url)).ainvoke("hi")).text == "ok"


def test_no_server_at_all() -> None:
    with ChatServer() as server:
        address = server.base_url
    assert failed(build_chat_model(settings("m", address)), stream=False).code == "chat_unreachable"


def test_the_check_is_quiet_or_says_why() -> None:
    async def checks(server: ChatServer) -> None:
        for key in ("right", "secret-key-1234"):
            await check_chat_model(build_chat_model(settings("m", server.base_url), api_key=key))

    with ChatServer(["ready"], key="right") as server, pytest.raises(ModelError) as caught:
        asyncio.run(checks(server))
    assert len(server.requests) == 2
    assert caught.value.code == "chat_wrong_key"
    assert "secret" not in str(caught.value)


def test_what_is_already_a_sentence_stays() -> None:
    error = ModelError("chat_not_set")
    assert model_error(error) is error
