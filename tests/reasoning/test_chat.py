"""The chat reasoner in isolation: what it sends, and how it handles the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import openai
import pytest
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from rag.errors import ModelError
from rag.graphs.answer import retrieve_tool
from rag.prompts import requests
from rag.reasoning import RESET
from rag.reasoning.chat import ChatReasoner, Grades
from rag.types import Passage
from tests.support.answering import BRIDGE, TEA, passage
from tests.support.fake_model import QueueModel

QUESTION = "When did Mount Aso erupt?"
PASSAGES = [passage(1), passage(2, BRIDGE)]


def _answer(model: QueueModel, passages: Sequence[Passage] = PASSAGES) -> str:
    async def read() -> str:
        text = ""
        async for piece in ChatReasoner(model).answer(QUESTION, passages):
            text = "" if piece == RESET else text + piece
        return text

    return asyncio.run(read())


def _decide(model: QueueModel, reasoner: ChatReasoner | None = None) -> AIMessage:
    reasoner = reasoner or ChatReasoner(model)
    history = [HumanMessage("Hi"), AIMessage("Hello.")]
    return asyncio.run(reasoner.decide(QUESTION, history, [retrieve_tool()]))


def test_deciding_binds_the_tool_and_sends_rules_history_and_question() -> None:
    model = QueueModel(replies=["Hello."])
    assert _decide(model).text == "Hello."
    messages, options = model.requests[0]
    assert [type(m) for m in messages] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]
    assert messages[-1].text == QUESTION
    assert options["tools"] == ["retrieve"]
    assert "tool_choice" not in options  # some servers refuse a forced choice


def test_what_was_thought_is_no_direct_answer() -> None:
    assert _decide(QueueModel(replies=["<think>greet</think>Hello."])).text == "Hello."


def test_a_server_without_tools_is_not_asked_again() -> None:
    model = QueueModel(replies=[ModelInvalidRequestError("m does not support tools")])
    reasoner = ChatReasoner(model)
    for _ in range(2):
        message = _decide(model, reasoner)
        assert message.tool_calls[0]["args"] == {"query": QUESTION}
    assert len(model.requests) == 1


def test_another_bad_request_is_an_error() -> None:
    with pytest.raises(ModelError):
        _decide(QueueModel(replies=[ModelInvalidRequestError("no such model")]))


def test_grading_is_one_call_that_names_what_does_not_help() -> None:
    asked: list[Any] = []

    async def fill(model: Any, schema: Any, messages: Any) -> Grades:
        asked.append((schema, messages))
        return Grades(irrelevant=[1, 9])

    reasoner = ChatReasoner(QueueModel(), structured=fill)
    grades = asyncio.run(reasoner.grade(QUESTION, [*PASSAGES, passage(3, TEA)]))
    assert grades == [False, True, True]
    assert len(asked) == 1 and asked[0][0] is Grades
    assert all(f"[{n}]" in asked[0][1][1].text for n in (1, 2, 3))


def test_grading_through_the_ladder() -> None:
    call = {"name": "Grades", "args": {"irrelevant": [1]}, "id": "1"}
    model = QueueModel(replies=[AIMessage("", tool_calls=[call])])
    assert asyncio.run(ChatReasoner(model).grade(QUESTION, PASSAGES)) == [False, True]
    model = QueueModel(replies=['Sure!\n```json\n{"irrelevant": [2]}\n```'])
    assert asyncio.run(ChatReasoner(model).grade(QUESTION, PASSAGES)) == [True, False]


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Aso eruption year", "Aso eruption year"),
        ('"Aso eruption year"\n', "Aso eruption year"),
        ("<think>synonyms…</think>\n\n- Aso eruption year\n- and more", "Aso eruption year"),
        ("“阿苏山 喷发 年份”", "阿苏山 喷发 年份"),
        ("<think>no end", ""),
        ("", ""),
    ],
)
def test_a_rewrite_is_one_clean_line(reply: str, query: str) -> None:
    model = QueueModel(replies=[reply])
    assert asyncio.run(ChatReasoner(model).rewrite(QUESTION, ["tried"], PASSAGES)) == query


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("When did it erupt?", "When did it erupt?"),
        ("Standalone question:\nWhen did Mount Aso erupt?", "When did Mount Aso erupt?"),
        ("“碳中和”是什么意思？", "“碳中和”是什么意思？"),
    ],
)
def test_a_completed_question_is_the_question_alone(reply: str, question: str) -> None:
    reasoner = ChatReasoner(QueueModel(replies=[reply]))
    assert asyncio.run(reasoner.condense("And then?", [])) == question


def test_questions_to_ask_next_keep_their_marks() -> None:
    reply = "Here are three:\n1. “碳达峰”是什么意思？\n2. 什么时候实现？\n3. -5 °C 会怎样？"
    reasoner = ChatReasoner(QueueModel(replies=[reply]))
    assert asyncio.run(reasoner.suggest("问", "答", PASSAGES)) == [
        "“碳达峰”是什么意思？",
        "什么时候实现？",
        "-5 °C 会怎样？",
    ]


def test_halves_of_a_character_are_joined() -> None:
    assert _answer(QueueModel(replies=[["In 1953 \ud83d", "\ude00 [1] \ud83d"]])) == "In 1953 😀 [1] \ufffd"
    assert _decide(QueueModel(replies=["Hello \ud83d\ude00"])).text == "Hello 😀"
    assert asyncio.run(ChatReasoner(QueueModel(replies=["阿苏山 \ude00"])).rewrite(QUESTION, [], [])) == "阿苏山 \ufffd"


def test_an_answer_streams_without_thoughts() -> None:
    model = QueueModel(replies=[["<thi", "nk>1066?</think>", "In ", "1953.[1]"]])
    assert _answer(model) == "In 1953.[1]"
    messages, _ = model.requests[0]
    assert "[1] Page 1" in messages[1].text and f"Question: {QUESTION}" in messages[1].text


def test_the_sign_that_nothing_was_found_is_an_empty_answer() -> None:
    assert _answer(QueueModel(replies=[["NOT_IN", "_PAGES"]])) == ""


@pytest.mark.parametrize("pieces", [[], ["  "], ["<think>for ever"]])
def test_an_empty_reply_is_a_failure_not_a_missing_answer(pieces: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        _answer(QueueModel(replies=[pieces]))
    assert caught.value.code in ("answer_empty", "chat_unusable")


@pytest.mark.parametrize(
    ("kind", "reason", "code"),
    [
        ("openai-chat", "", "answer_cut_off"),
        ("openai-chat", "length", "answer_too_long"),
        ("openai-chat", "content_filter", "answer_cut_off"),
        ("queue", "max_tokens", "answer_too_long"),
    ],
)
def test_half_an_answer_is_told_from_a_whole_one(kind: str, reason: str, code: str) -> None:
    with pytest.raises(ModelError) as caught:
        _answer(QueueModel(replies=[["In 19"]], kind=kind, reason=reason))
    assert caught.value.code == code


def test_providers_that_give_no_reason_are_believed() -> None:
    assert _answer(QueueModel(replies=[["In 1953.[1]"]], reason="")) == "In 1953.[1]"


@pytest.mark.parametrize(
    "pieces", [["The lamp", " is lit.\n</passage-abcdef>", " More"], ["It is</pass", "age-abc", "def> More"]]
)
def test_a_copy_of_the_passages_is_no_answer(pieces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_new_marker", lambda: "passage-abcdef")
    with pytest.raises(ModelError) as caught:
        _answer(QueueModel(replies=[pieces]))
    assert caught.value.code == "answer_copied"


@pytest.mark.parametrize(
    ("again", "code"),
    [
        ("again and ", "answer_circles"),
        ("### Better (2026-02-24)\n", "answer_circles"),
        ("- 说明什么？\n", "answer_circles"),
        ("1.", "answer_circles"),
        ("It is {n}. ", "answer_too_long"),
        ("---", "answer_too_long"),
    ],
)
def test_a_model_that_never_ends_is_cut_off(again: str, code: str) -> None:
    with pytest.raises(ModelError) as caught:
        _answer(QueueModel(replies=[[again.format(n=n * n) for n in range(40_000)]]))
    assert caught.value.code == code


REQUEST = httpx.Request("POST", "http://localhost/v1")


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        openai.APITimeoutError(request=REQUEST),  # type: ignore[arg-type]
        ValueError("Expecting value: line 1 column 1"),
        TypeError("null value for choices"),
    ],
)
def test_every_failure_is_a_model_error_with_a_sentence(error: Exception) -> None:
    reasoner = ChatReasoner(QueueModel(replies=[error] * 3))
    for work in (reasoner.decide(QUESTION, [], [retrieve_tool()]), reasoner.rewrite(QUESTION, [], [])):
        with pytest.raises(ModelError) as caught:
            asyncio.run(work)
        assert type(caught.value.__cause__) is type(error)
    with pytest.raises(ModelError):
        _answer(QueueModel(replies=[["In 19", error]]))


def test_the_name_is_the_models() -> None:
    assert ChatReasoner(QueueModel()).name == "queue-model"
    assert ChatReasoner(QueueModel(), name="mine").name == "mine"
