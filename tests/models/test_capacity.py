"""Learned properties of a chat server: its context window, its concurrency, and its reading speed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from rag.config import load_settings
from rag.models.chat import build_chat_model
from rag.models.servers import ServerCapacity, capacity_of, failure_types, load_capacity
from tests.support.chat_server import ChatServer, Reply


class Telling(ChatServer):
    """A server that states more about its model than the name."""

    def __init__(self, fields: Mapping[str, Any], more: Mapping[str, Any] | None = None, **how: Any) -> None:
        super().__init__(**how)
        self._fields, self._more = fields, more or {}

    def listing(self, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        return 200, {"object": "list", "data": [{"id": "m", "object": "model", **self._fields}], **self._more}


def model_of(server: ChatServer) -> Any:
    return build_chat_model(load_settings(env_file=None, llm_model="m", llm_base_url=server.base_url))


LLAMA = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}


@pytest.mark.parametrize(
    ("fields", "more", "window", "slots"),
    [
        ({"max_model_len": 2048}, {}, 2048, None),
        ({"meta": {"n_ctx": 1024, "n_ctx_train": 8192}}, {}, 1024, None),
        ({"owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}, LLAMA, 4096, 1),
        ({}, {}, None, None),
        ({"max_model_len": "many"}, {}, None, None),
    ],
)
def test_a_server_tells_its_window(fields: Any, more: Any, window: int | None, slots: int | None) -> None:
    with Telling(fields, more) as server:
        capacity = asyncio.run(load_capacity(model_of(server)))
    assert (capacity.window, capacity.slots) == (window, slots)


def test_a_refusal_tells_it_too() -> None:
    said = "request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it"
    with ChatServer([Reply(said, status=400)]) as server:
        model = model_of(server)
        with pytest.raises(failure_types()):
            asyncio.run(model.ainvoke("hi"))
        assert len(server.requests) == 1
    assert capacity_of(model).window == 4096
    assert capacity_of(model).fitting_tokens(16_000, 60.0) == 4096


def test_what_is_read_too_slowly_does_not_fit() -> None:
    capacity = ServerCapacity(window=8_192)
    assert capacity.fitting_tokens(16_000, 60.0) == 8_192
    capacity.record(1_000, 50.0, 40, 10.0)
    assert capacity.fitting_tokens(16_000, 60.0) == 1_760
    assert (capacity.estimate_seconds(1_000, 40), capacity.first_token_waits) == (60.0, [50.0])
    capacity.record(20, 5.0, 2, 1.0)  # too little to learn from
    assert capacity.estimate_seconds(1_000, 40) == 60.0


def test_a_server_with_one_slot_is_asked_one_thing_at_a_time() -> None:
    busy: list[int] = []

    async def one(capacity: ServerCapacity) -> None:
        async with capacity.semaphore():
            busy.append(1)
            assert sum(busy) == 1
            await asyncio.sleep(0.01)
            busy.pop()

    async def several() -> None:
        capacity = ServerCapacity(slots=1)
        await asyncio.gather(*(one(capacity) for _ in range(3)))

    asyncio.run(several())


def test_a_model_is_slow_if_the_passages_of_a_question_take_too_long() -> None:
    capacity = ServerCapacity()
    assert not capacity.is_slow(), "nothing is known yet"
    capacity.record(tokens_in=400, seconds=1.0, tokens_out=20, writing=1.0)
    assert not capacity.is_slow()
    capacity.record(tokens_in=400, seconds=4.0, tokens_out=20, writing=1.0)
    assert capacity.is_slow()
