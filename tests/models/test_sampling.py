"""What a person chose of a chat model's parameters: sent where it is set, and refused in one sentence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag.config import load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models.chat import build_chat_model
from rag.models.sampling import SAMPLING, refused_parameters, with_sampling
from rag.reasoning.chat import ChatReasoner
from rag.runs.options import RunOptions
from tests.support.answering import BRIDGE, passage
from tests.support.chat_server import ChatServer, Reply
from tests.support.fake_model import QueueModel

CHOSEN = RunOptions(max_tokens=200, top_p=0.9, presence_penalty=0.0, seed=7, stop=("END", "\n\n\n"))


def _answered(server: ChatServer, *chosen: RunOptions) -> list[str]:
    """What is written with each of the choices, after a query that has none of them."""
    model = build_chat_model(load_settings(env_file=None, llm_model="m", llm_base_url=server.base_url))

    async def one(options: RunOptions) -> str:
        reasoner = ChatReasoner(with_sampling(model, options.sampling), fast=model)
        await reasoner.rewrite("When?", ["when"], [])
        return "".join([piece async for piece in reasoner.answer("When?", [passage(1, BRIDGE)])])

    async def run() -> list[str]:
        return [await one(options) for options in chosen]

    return asyncio.run(run())


def test_what_is_set_goes_with_the_answer_alone_and_nothing_else() -> None:
    with ChatServer(["first", "In 1932. [1]", "first", "In 1932. [1]"]) as server:
        assert _answered(server, CHOSEN, RunOptions()) == ["In 1932. [1]"] * 2
        sent: list[dict[str, Any]] = [
            {name: one.body[name] for name in (*SAMPLING, "max_completion_tokens", "n") if name in one.body}
            for one in server.requests
        ]
    assert sent[1] == CHOSEN.sampling
    assert all(set(one) <= {"max_tokens"} for one in (sent[0], *sent[2:])), "a limit of its own, and nothing chosen"
    assert CHOSEN.sampling == {
        "max_tokens": 200,
        "top_p": 0.9,
        "presence_penalty": 0.0,
        "seed": 7,
        "stop": ["END", "\n\n\n"],
    }


def test_a_parameter_that_is_refused_is_named() -> None:
    refusal = Reply("Unsupported parameter: 'seed' is not supported with this model.", status=400)
    with ChatServer(["first", refusal]) as server, pytest.raises(ModelError) as error:
        _answered(server, CHOSEN)
    assert error.value.code == "chat_parameter_refused"
    assert "seed" in say(error.value.notice, "en") and "seed" in say(error.value.notice, "zh")
    assert len(server.requests) == 2, "a choice is not left out unsaid"


def test_what_a_service_says_is_read_by_whole_names() -> None:
    assert refused_parameters("Invalid top_p, max_completion_tokens", SAMPLING) == "max_tokens, top_p"
    assert refused_parameters("the request was stopped", SAMPLING) == ""
    assert refused_parameters("seed", ("stop",)) == ""


def test_a_model_without_such_a_parameter_says_so_before_it_is_asked() -> None:
    model = QueueModel()
    assert with_sampling(model, {}) == model
    with pytest.raises(ModelError) as error:
        with_sampling(model, {"seed": 1})
    assert error.value.code == "chat_parameter_unknown"
