"""The chat model with a real server: requests, retries, odd streams, and the code of each failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag.config import load_settings
from rag.errors import ModelError
from rag.graphs.answer import retrieve_tool
from rag.locales import say
from rag.models import chat
from rag.models.chat import build_chat_model, check_chat_model
from rag.models.servers import failure_types, model_error
from tests.support.chat_server import Call, ChatServer, Reply


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


TOO_LONG = "chat_too_long"
TEXT = "The lamp 灯塔 burns."


async def streamed(model: Any) -> list[Any]:
    return [chunk async for chunk in model.astream("hi")]


def read(server: ChatServer) -> Any:
    """Return all pieces of one stream, merged."""
    first, *more = asyncio.run(streamed(server.model()))
    return sum(more, first)


def failed(model: Any, *, stream: bool) -> ModelError:
    """Return the error of one request to the model."""
    try:
        asyncio.run(streamed(model) if stream else model.ainvoke("hi"))
    except failure_types() as error:
        return model_error(error)
    raise AssertionError("it did not fail")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *((name, name) for name in ("qwen3:8b", "Qwen/Qwen3-32B", "deepseek-chat", "anthropic:claude")),
        ("openai:qwen3:8b", "qwen3:8b"),
    ],
)
def test_with_an_address_the_whole_name_is_the_models(name: str, sent: str) -> None:
    with ChatServer(["ready"]) as server:
        asyncio.run(server.model(name).ainvoke("hi"))
        assert server.requests[0].body["model"] == sent
        assert server.requests[0].body["temperature"] == 0.0


def test_the_address_may_be_the_whole_path() -> None:
    with ChatServer(["ready"]) as server:
        settings = load_settings(None, llm_model="m", llm_base_url=f"{server.base_url}/chat/completions")
        asyncio.run(build_chat_model(settings).ainvoke("hi"))
        assert server.requests[0].path == "/v1/chat/completions"


def test_keys_set_and_missing() -> None:
    with ChatServer(["ready"] * 2) as server:
        asyncio.run(server.model().ainvoke("hi"))
        asyncio.run(server.model(llm_api_key="set").ainvoke("hi"))
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer not-needed", "Bearer set"]


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
        build_chat_model(load_settings(None, llm_model=name, llm_base_url=""))
    assert caught.value.code == code


@pytest.mark.parametrize("refused", ["stream_options", "temperature"])
def test_a_field_that_is_refused_is_left_out_from_then_on(refused: Any) -> None:
    with ChatServer(["one", "two"], refuse=[refused]) as server:
        model = server.model()

        async def twice() -> list[str]:
            return ["".join(chunk.text for chunk in await streamed(model)) for _ in range(2)]

        assert asyncio.run(twice()) == ["one", "two"]
        assert len(server.requests) == 3


def test_what_did_not_help_is_not_left_out_for_good() -> None:
    with ChatServer([Reply("no", status=400), Reply("no", status=400), "fine"]) as server:
        model = server.model()

        async def twice() -> None:
            with pytest.raises(failure_types()):
                await streamed(model)
            await streamed(model)

        asyncio.run(twice())
        assert "stream_options" in server.requests[-1].body


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(TEXT), "stop"),
        (Reply(TEXT, finish="length"), "length"),
        (Reply(TEXT, oddity="no_reason"), "stop"),
        (Reply(TEXT, oddity="empty_reason"), "stop"),
        (Reply(TEXT, oddity="no_reason_no_done"), ""),  # it may have been cut off
        (Reply(TEXT, oddity="whole"), "stop"),
        (Reply(TEXT, oddity="whole", finish="length"), "length"),
        (Reply(TEXT, oddity="message"), "stop"),
        (Reply(TEXT, oddity="message", finish="length"), "length"),
    ],
)
def test_the_text_of_a_stream_and_why_it_ended(reply: Reply, reason: str) -> None:
    with ChatServer([reply]) as server:
        whole = read(server)
        assert (whole.text, whole.response_metadata.get("finish_reason", "")) == (TEXT, reason)
        assert len(server.requests) == 1
    if reply.oddity in ("", "whole"):
        assert whole.usage_metadata["output_tokens"] > 0


@pytest.mark.parametrize("oddity", ["", "whole", "message"])
def test_tool_calls_are_read_alike(oddity: Any) -> None:
    call = Reply(tool_calls=[Call("retrieve", {"query": "灯塔 lighthouse"})], oddity=oddity)
    with ChatServer([call, call]) as server:
        for message in (read(server), asyncio.run(server.model().ainvoke("hi"))):
            assert [(made["name"], made["args"]) for made in message.tool_calls] == [
                ("retrieve", {"query": "灯塔 lighthouse"})
            ]


def test_malformed_arguments_are_kept_apart() -> None:
    with ChatServer([Reply(tool_calls=[Call("retrieve", '{"query": "x')])]) as server:
        message = asyncio.run(server.model().ainvoke("hi"))
    assert not message.tool_calls
    assert message.invalid_tool_calls[0]["args"] == '{"query": "x'


@pytest.mark.parametrize("status", [404, 405, 500, 503])
def test_what_is_not_offered_is_not_asked_for_again(status: int) -> None:
    with ChatServer(["x"] * 4, refuse=["tools"], refuse_with=status, refusal="tools need --jinja") as server:
        with pytest.raises(failure_types()):
            asyncio.run(server.model().bind_tools([retrieve_tool()]).ainvoke("hi"))
        assert len(server.requests) == 1


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
        error = failed(server.model(), stream=stream)
        assert error.code == code
        assert requests is None or len(server.requests) == requests
    for language in ("en", "zh"):
        assert "{" not in say(error.notice, language)


@pytest.mark.parametrize(("stream", "oddity"), [(False, ""), (True, ""), (True, "whole")])
@pytest.mark.parametrize(
    ("fault", "code"), [("cut", "chat_broken_off"), ("garbled", "chat_unusable"), ("nested", "chat_unusable")]
)
def test_half_an_answer(fault: Any, code: str, stream: bool, oddity: Any) -> None:
    with ChatServer([Reply("one two three four", fault=fault, oddity=oddity)] * 5) as server:
        error = failed(server.model(), stream=stream)
        if oddity == "":
            assert error.code == code
            assert len(server.requests) == 1 or not stream, "shown text must not be shown twice"


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setattr(chat, "TIMEOUT_SECONDS", 0.3)
    with ChatServer([Reply("one two three four", fault="hang")] * 5) as server:
        assert failed(server.model(), stream=stream).code == "chat_timeout"
        assert len(server.requests) == 1


def test_a_server_that_recovers_is_asked_again() -> None:
    replies = [Reply("boom", status=500), Reply("slow", status=429, headers={"retry-after": "0.01"}), "ok"]
    with ChatServer(replies) as server:
        assert asyncio.run(server.model().bind_tools([retrieve_tool()]).ainvoke("hi")).text == "ok"
        assert len(server.requests) == 3


def test_the_check_is_quiet_or_says_why() -> None:
    async def checks(server: ChatServer) -> None:
        for key in ("right", "secret-key-1234"):
            await check_chat_model(server.model(llm_api_key=key))

    with ChatServer(["ready"], key="right") as server, pytest.raises(ModelError) as caught:
        asyncio.run(checks(server))
    assert len(server.requests) == 2
    assert caught.value.code == "chat_wrong_key"
    assert "secret" not in str(caught.value)


def test_what_is_already_a_sentence_stays() -> None:
    error = ModelError("chat_not_set")
    assert model_error(error) is error
