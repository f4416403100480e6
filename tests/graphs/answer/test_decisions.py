from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from rag.graphs.answer import MAX_QUERIES, MAX_QUERY_CHARACTERS, read_decision, retrieve_tool


def _calls(*calls: tuple[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": n, "args": a, "id": str(i)} for i, (n, a) in enumerate(calls)])


def test_a_model_sees_one_string_and_nothing_of_the_run() -> None:
    function = convert_to_openai_tool(retrieve_tool())["function"]
    assert function["name"] == "retrieve"
    assert function["parameters"]["properties"] == {"query": {"type": "string"}}
    assert function["parameters"]["required"] == ["query"]


def test_text_beside_a_call_is_no_answer() -> None:
    message = _calls(("retrieve", {"query": "tea"})).model_copy(update={"content": "I will look."})
    assert read_decision(message).queries == ("tea",)
    assert read_decision(message).text == ""


def test_queries_are_bounded_in_number_and_length_and_named_once() -> None:
    message = _calls(*[("retrieve", {"query": q}) for q in ("a", "a", "b", "c", "d", "x" * 900)])
    assert read_decision(message).queries == ("a", "b", "c")
    assert len(read_decision(message).queries) == MAX_QUERIES
    assert len(read_decision(_calls(("retrieve", {"query": "x" * 900}))).queries[0]) == MAX_QUERY_CHARACTERS


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (_calls(("retrieve", {})), "query"),
        (_calls(("retrieve", {"query": ["tea"]})), "query"),
        (_calls(("browse", {"url": "http://10.0.0.1"})), "no tool"),
    ],
)
def test_problems_are_named(message: AIMessage, problem: str) -> None:
    assert problem in read_decision(message).problem


def test_escapes_in_a_broken_call_are_read() -> None:
    call = {"name": "retrieve", "args": r'{"query": "\u8336 \"tea\"", }', "id": "1", "error": None}
    message = AIMessage("", invalid_tool_calls=[{**call, "type": "invalid_tool_call"}])
    assert read_decision(message).queries == ('茶 "tea"',)
