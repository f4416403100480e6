"""Servers that refuse tools, schemas or parameters, in many wordings and with many statuses."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rag.config import load_settings
from rag.errors import ModelError
from rag.locales import say
from rag.models import servers
from rag.models.chat import build_chat_model
from rag.models.servers import (
    SAMPLING,
    refused_parameters,
    refuses_structured_output,
    refuses_tools,
    remember_no_tools,
    takes_tools,
    with_sampling,
)
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import RunOptions
from tests.support.answering import BRIDGE, passage
from tests.support.chat_server import ChatServer, Reply
from tests.support.fake_model import QueueModel

CHOSEN = RunOptions(max_tokens=200, top_p=0.9, presence_penalty=0.0, seed=7, stop=("END", "\n\n\n"))


class StatusError(OSError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status


def model(name: str = "m", address: str = "http://localhost/v1") -> Any:
    return SimpleNamespace(model_name=name, openai_api_base=address, _llm_type="openai-chat")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: …"),
        (500, "tools param requires --jinja flag"),
        (501, "tool calling is not implemented"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (405, "Function calling is not enabled for this model"),
        (422, "unknown field `tool_choice`"),
        (503, "function_call is not available on this backend"),
        (400, "该模型不支持工具调用"),
        (500, "当前模型暂不支持函数调用"),
    ],
)
def test_no_tools(status: int, text: str) -> None:
    assert refuses_tools(StatusError(status, text), model())


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "The model `m` does not exist"),
        (404, "The model `acme-tool-use-8b` does not exist"),
        (400, "prompt too long; context toolong"),
        (400, "maximum context length is 10 tokens, of which the tools take 8"),
        (401, "This key may not use tools"),
        (429, "Rate limit reached for requests with tools"),
        (502, "<!DOCTYPE html><html><body>Bad gateway. Try our webmaster tools.</body></html>"),
        (500, "Internal Server Error"),
    ],
)
def test_failures_of_another_kind(status: int, text: str) -> None:
    assert not refuses_tools(StatusError(status, text), model("acme-tool-use-8b"))


def test_a_failure_without_a_status_says_nothing_about_tools() -> None:
    assert not refuses_tools(ValueError("tool_calls: invalid"), model())
    assert refuses_tools(NotImplementedError(), model())


@pytest.mark.parametrize(
    ("status", "text", "refused"),
    [
        (404, "No endpoints found that support response_format", True),
        (405, "json_schema is not supported", True),
        (500, "response_format not supported", True),
        (500, "Structured outputs are disabled", True),
        (503, "failed to build the grammar", True),
        (500, "不支持结构化输出", True),
        (404, "No endpoints found that support tool use", True),
        (400, "no", True),
        (422, "no", True),
        (501, "no", True),
        (404, "The model `m` does not exist", False),
        (500, "Internal Server Error", False),
        (401, "response_format is not for this key", False),
        (429, "too many requests with json_schema", False),
    ],
)
def test_no_forms(status: int, text: str, refused: bool) -> None:
    assert refuses_structured_output(StatusError(status, text), model()) is refused


def test_it_is_remembered_of_a_server_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_without_tools", set())
    remember_no_tools(model())
    remember_no_tools(model("nowhere", ""))
    assert not takes_tools(model())
    assert takes_tools(model("other"))
    assert takes_tools(model(address="http://elsewhere/v1"))
    assert takes_tools(model("nowhere", ""))  # may be a different server each time


def _answered(server: ChatServer, *chosen: RunOptions) -> list[str]:
    """Return the answers with each of the options, each after a rewrite without them."""
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
