"""Streams that deviate from the protocol, from a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rag.config import load_settings
from rag.models import openai_chat
from rag.models.chat import build_chat_model
from rag.models.servers import failure_types
from tests.support.chat_server import Call, ChatServer, Reply, Request

TEXT = "The lamp 灯塔 burns."


@pytest.fixture(autouse=True)
def fast_and_forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(openai_chat, "_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(openai_chat, "_refused_fields", {})
    yield


def model_of(server: ChatServer) -> Any:
    return build_chat_model(load_settings(env_file=None, llm_model="m", llm_base_url=server.base_url))


def read(server: ChatServer) -> tuple[str, str, Any]:
    """Return the text of one stream, its finish reason, and all of its pieces merged."""

    async def stream() -> Any:
        joined = None
        async for chunk in model_of(server).astream("hi"):
            joined = chunk if joined is None else joined + chunk
        return joined

    whole = asyncio.run(stream())
    return whole.text, whole.response_metadata.get("finish_reason", ""), whole


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
def test_the_text_and_why_it_ended(reply: Reply, reason: str) -> None:
    with ChatServer([reply]) as server:
        text, why, whole = read(server)
        assert (text, why) == (TEXT, reason)
        assert len(server.requests) == 1
    if reply.oddity in ("", "whole"):
        assert whole.usage_metadata["output_tokens"] > 0


@pytest.mark.parametrize("oddity", ["", "whole", "message"])
def test_tool_calls_are_read_alike(oddity: Any) -> None:
    with ChatServer([Reply(tool_calls=[Call("retrieve", {"query": "灯塔"})], oddity=oddity)]) as server:
        _, _, whole = read(server)
    assert [call["args"] for call in whole.tool_calls] == [{"query": "灯塔"}]


@pytest.mark.parametrize("fault", ["cut", "garbled"])
@pytest.mark.parametrize("oddity", ["", "whole"])
def test_what_breaks_off_is_not_whole(fault: Any, oddity: Any) -> None:
    with ChatServer([Reply(TEXT, fault=fault, oddity=oddity)] * 5) as server, pytest.raises(failure_types()):
        read(server)


@pytest.mark.parametrize("status", [404, 405, 500, 503])
def test_what_is_not_offered_is_not_asked_for_again(status: int) -> None:
    with ChatServer(["x"] * 4, refuse=["tools"], refuse_with=status, refusal="tools need --jinja") as server:
        with pytest.raises(failure_types()):
            asyncio.run(model_of(server).bind_tools([_tool()]).ainvoke("hi"))
        assert len(server.requests) == 1


def test_a_failure_that_passes_is_waited_out() -> None:
    def respond(request: Request) -> Reply:
        return Reply("busy", status=500) if len(seen) < 2 else Reply(TEXT)

    with ChatServer(respond) as server:
        seen = server.requests
        assert asyncio.run(model_of(server).bind_tools([_tool()]).ainvoke("hi")).text == TEXT
        assert len(server.requests) == 2


def _tool() -> Any:
    from rag.graphs.answer import retrieve_tool

    return retrieve_tool()
