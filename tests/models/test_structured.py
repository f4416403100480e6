"""The methods of structured output against servers that refuse one method after another."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from rag.errors import ModelError
from rag.models.structured import fill_schema, read_reply
from tests.support.chat_server import DEEP, Call, ChatServer, Reply, Request


class Verdict(BaseModel):
    """One verdict."""

    number: int
    relevant: bool = Field(description="lenient")


class Verdicts(BaseModel):
    """All verdicts."""

    verdicts: list[Verdict]


FILLED = {"verdicts": [{"number": 1, "relevant": True}]}
JSON = json.dumps(FILLED)
MESSAGES = [SystemMessage("Judge."), HumanMessage("Passages …")]


def fill(server: ChatServer) -> Verdicts:
    return asyncio.run(fill_schema(server.model(), Verdicts, MESSAGES))


def well_behaved(request: Request) -> Reply:
    if request.forced_tool:
        return Reply(tool_calls=[Call(request.forced_tool, FILLED)])
    return Reply(JSON)


def method_of(request: Request) -> str:
    return request.response_format or ("tool" if request.forced_tool else "text")


@pytest.mark.parametrize(
    ("refuse", "methods"),
    [
        ([], ["json_schema"]),
        (["json_schema"], ["json_schema", "tool"]),
        (["json_schema", "tool_choice"], ["json_schema", "tool", "json_object"]),
        (["json_schema", "tools"], ["json_schema", "tool", "json_object"]),
        (["response_format", "tools"], ["json_schema", "tool", "json_object", "text"]),
    ],
)
def test_it_steps_down_once_and_remembers(refuse: Any, methods: list[str]) -> None:
    with ChatServer(well_behaved, refuse=refuse) as server:
        assert fill(server).verdicts == [Verdict(number=1, relevant=True)]
        assert [method_of(request) for request in server.requests] == methods
        fill(server)
        assert method_of(server.requests[-1]) == methods[-1]
        assert len(server.requests) == len(methods) + 1


@pytest.mark.parametrize("status", [404, 405, 500, 503])
@pytest.mark.parametrize(
    ("refuse", "refusal", "method"),
    [
        (["response_format"], "No endpoints found that support response_format", "tool"),
        (["json_schema"], "json_schema is not supported", "tool"),
        (["response_format", "tools"], "No endpoints found that support tool use", "text"),
    ],
)
def test_it_steps_down_whatever_the_status(refuse: Any, refusal: str, method: str, status: int) -> None:
    with ChatServer(well_behaved, refuse=refuse, refuse_with=status, refusal=refusal) as server:
        assert fill(server).verdicts == [Verdict(number=1, relevant=True)]
        assert method_of(server.requests[-1]) == method
        assert len(server.requests) <= 4


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"Sure! Here it is:\n```json\n{JSON}\n```\nAnything else?",
        f'<think>maybe {{"verdicts": []}}</think>{JSON}',
        json.dumps(FILLED["verdicts"]),
        f'{{"note": 1}} {JSON}',
    ],
)
def test_an_answer_is_found_in_what_stands_around_it(text: str) -> None:
    with ChatServer([text]) as server:
        assert fill(server).verdicts == [Verdict(number=1, relevant=True)]


def test_broken_arguments_that_hold_the_answer() -> None:
    with ChatServer([Reply(tool_calls=[Call("Verdicts", JSON + "}")])]) as server:
        assert fill(server).verdicts == [Verdict(number=1, relevant=True)]


def test_one_repair_with_what_was_wrong() -> None:
    with ChatServer(['{"verdicts": [{"number": "one"}]}', JSON]) as server:
        assert fill(server).verdicts == [Verdict(number=1, relevant=True)]
        assert "verdicts.0.relevant: Field required" in server.requests[1].last
        assert '"relevant"' in server.requests[1].last
        assert [message["role"] for message in server.requests[1].messages] == [
            *("system", "user", "assistant", "user")
        ]


@pytest.mark.parametrize(
    ("reply", "code", "requests"),
    [
        (Reply("bad key", status=401), "chat_wrong_key", 1),
        (Reply("The model `m` does not exist", status=404), "chat_unknown_model", 1),
        (Reply("maximum context length is 10", status=400), "chat_too_long", 1),
        (Reply("half of it", fault="garbled"), "chat_unusable", 1),
        (Reply("nonsense"), "chat_unusable", 2),
        (Reply(tool_calls=[Call("Verdicts", f'{{"verdicts": {DEEP}}}')]), "chat_unusable", 2),
    ],
)
def test_other_failures_do_not_climb_down_and_there_is_one_repair(reply: Reply, code: str, requests: int) -> None:
    with ChatServer([reply] * 5) as server:
        with pytest.raises(ModelError) as caught:
            fill(server)
        assert caught.value.code == code
        assert len(server.requests) == requests


def test_a_model_without_any_of_this_is_asked_in_text() -> None:
    from langchain_core.language_models import FakeListChatModel

    model = FakeListChatModel(responses=[JSON])
    assert asyncio.run(fill_schema(model, Verdicts, MESSAGES)).verdicts == [Verdict(number=1, relevant=True)]


@pytest.mark.parametrize("piece", ["[", '{"a":', '[{"a":[', "[1,"])
def test_brackets_within_brackets_are_no_answer(piece: str) -> None:
    deep = piece * 2000
    answer = read_reply(Verdicts, AIMessage(deep))
    assert isinstance(answer, ValueError)
    assert read_reply(Verdicts, AIMessage(f"{JSON}\n{deep}")) == Verdicts.model_validate(FILLED)
