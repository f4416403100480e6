"""The chat reasoner in isolation: what it sends, how it cleans replies, and what it shows of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx
import openai
import pytest
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from rag.errors import ModelError
from rag.graphs.answer import retrieve_tool
from rag.models.servers import drop_reasoning
from rag.prompts import requests
from rag.reasoning import RESET
from rag.reasoning.chat import (
    ChatReasoner,
    ShownText,
    drop_intro,
    join_halves,
    one_line,
    prose,
    reply_lines,
    reply_text,
)
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
    call = {"name": "Grades", "args": {"irrelevant": [1, 9]}, "id": "1"}
    model = QueueModel(replies=[AIMessage("", tool_calls=[call])])
    grades = asyncio.run(ChatReasoner(model).grade(QUESTION, [*PASSAGES, passage(3, TEA)]))
    assert grades == [False, True, True]
    ((messages, _),) = model.requests
    assert all(f"[{n}]" in messages[1].text for n in (1, 2, 3))
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


SIGN = "NOT_IN_PAGES"


def _shown(text: str, size: int) -> tuple[str, ShownText]:
    """Feed `text` in pieces of `size` characters; return the text that a user sees in the end."""
    shown = ShownText(SIGN, "passage-81070d")

    async def pieces() -> AsyncIterator[str]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    async def read() -> str:
        screen = ""
        async for piece in shown.filter(pieces()):
            assert piece == RESET or RESET not in piece
            screen = "" if piece == RESET else screen + piece
        return screen

    return asyncio.run(read()), shown


CASES = [
    ("It erupted in 1953 [1].", "It erupted in 1953 [1]."),
    ("<think>1066? No.</think>\n\nIn 1953 [1].", "In 1953 [1]."),
    ("<thinking>Hm</thinking>In 1953 [1].", "In 1953 [1]."),
    ("  <THINK>a</THINK> <think>b</think>In 1953 [1].", "In 1953 [1]."),
    ("I think it was 1066.</think>In 1953 [1].", "In 1953 [1]."),
    ("<think>never closed", ""),
    ("Models write <think> and </think> around it [1].", "Models write <think> and </think> around it [1]."),
    ("The closing tag `</think>` ends the reasoning [1].", "The closing tag `</think>` ends the reasoning [1]."),
    ('It prints "</thinking>" when done [1].', 'It prints "</thinking>" when done [1].'),
    ("The tag </think> closes what was opened [1].", "The tag </think> closes what was opened [1]."),
    ("Use `<b>` or `</think>`\nin your text [1].", "Use `<b>` or `</think>`\nin your text [1]."),
    ("推理以标签</think>结束[1]。", "推理以标签</think>结束[1]。"),
    ("结束标签是“</think>”[1]。", "结束标签是“</think>”[1]。"),
    (
        "They ask about `</think>`. It closes.\n</think>\n\nThe tag `</think>` ends it [1].",
        "The tag `</think>` ends it [1].",
    ),
    ("so the answer is 1953 </think>\n\nIn 1953 [1].", "In 1953 [1]."),
    ("所以应该是1953年</think>1953年喷发。[1]", "1953年喷发。[1]"),
    ("用户问的是喷发年份。\n</think>\n\n1953年喷发。[1]", "1953年喷发。[1]"),
    ("</think>In 1953 [1].", "In 1953 [1]."),
    ("a < b, and 3 <4 [1] <th", "a < b, and 3 <4 [1] <th"),
    (SIGN, ""),
    (f"  {SIGN}\n", ""),
    (f"**{SIGN}**. The passages speak of tea.", ""),
    (f"<think>hm</think>{SIGN}", ""),
    (f"In 1953 [1]. {SIGN}", "In 1953 [1]. "),
    ("NOT_IN the mood [1]", "NOT_IN the mood [1]"),
    ("NOT_", "NOT_"),
    (f"{SIGN} [81070d]", ""),
    ("In 1953 [81070d].", "In 1953."),
    ("In 1953 [810].", "In 1953 [810]."),
    ("**Yes** [1]", "**Yes** [1]"),
    ("《茶经》写于唐代。[1]", "《茶经》写于唐代。[1]"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_what_is_left_on_the_screen(text: str, expected: str, size: int) -> None:
    screen, shown = _shown(text, size)
    assert screen == expected
    assert shown.text == expected
    assert shown.signed == (SIGN in text)


def test_nothing_thought_is_shown_meanwhile() -> None:
    shown = ShownText(SIGN)

    async def read() -> list[str]:
        async def pieces() -> AsyncIterator[str]:
            for piece in ("<thi", "nk>secret", " thought</th", "ink>", "In 1953"):
                yield piece

        return [piece async for piece in shown.filter(pieces())]

    assert asyncio.run(read()) == ["In 1953"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("<think>a</think> b ", "b"), ("a</think>b", "b"), ("plain", "plain"), ("<think>a", ""), ("", "")],
)
def test_whole_texts(text: str, expected: str) -> None:
    assert drop_reasoning(text).strip() == expected


def _joined(pieces: Sequence[str]) -> list[str]:
    async def source() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    async def read() -> list[str]:
        return [piece async for piece in join_halves(source())]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["A ", "\ud83d", "\ude00", " b"], ["A ", "😀", " b"]),
        (["A \ud83d", "\ude00 b"], ["A ", "😀 b"]),
        (["A \ud83d", "", "\ude00"], ["A ", "😀"]),
        (["\ud83d\ude00\ud83d", "\ude01"], ["😀", "😁"]),
        (["𠮷野", "家"], ["𠮷野", "家"]),
        (["\ud83d", "x"], ["\ufffdx"]),
        (["x", "\ude00"], ["x", "\ufffd"]),
        (["x\ud83d"], ["x", "\ufffd"]),
        ([], []),
    ],
)
def test_a_character_that_came_in_two_halves_is_one(pieces: list[str], expected: list[str]) -> None:
    assert _joined(pieces) == expected
    "".join(expected).encode()


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("-5 °C was measured [2]", ["-5 °C was measured [2]"]),
        ("−12 % since 2019 [1]\n+3 points [2]", ["−12 % since 2019 [1]", "+3 points [2]"]),
        ("-Wall turns warnings on [1]", ["-Wall turns warnings on [1]"]),
        ("“碳中和”是什么意思？", ["“碳中和”是什么意思？"]),
        ("「茶经」由谁写成？", ["「茶经」由谁写成？"]),
        ("什么是“双碳”", ["什么是“双碳”"]),
        ("“碳中和”和“碳达峰”", ["“碳中和”和“碳达峰”"]),
        ('"Dune" or "Emma"', ['"Dune" or "Emma"']),
        ("**Note:** two steps [1]", ["**Note:** two steps [1]"]),
        ("the price of *Emma*", ["the price of *Emma*"]),
        ("`a` and `b`", ["`a` and `b`"]),
        ("__init__ method", ["__init__ method"]),
        ("3. Mai 1945 [2]", ["3. Mai 1945 [2]"]),
        ("2024. It began", ["2024. It began"]),
        ("1.5 million people", ["1.5 million people"]),
        # Marks that belong to the list or enclose the line
        ("“碳中和 含义”", ["碳中和 含义"]),
        ("「“阿苏山”」", ["阿苏山"]),
        ("“茶”", ["茶"]),
        ('"Aso eruption year".', ["Aso eruption year"]),
        ("'What's new in 3.12?'", ["What's new in 3.12?"]),
        ("**Aso eruption**", ["Aso eruption"]),
        ("- a\n* b\n• c\n-什么？", ["a", "b", "c", "什么？"]),
        ("1. First [1].\n2) Then [1].", ["First [1].", "Then [1]."]),
        ("1、什么？\n2、怎么？", ["什么？", "怎么？"]),
        ("```text\nAso eruption\n```\n---\n", ["Aso eruption"]),
        ("<think>hm\n- a</think>\n- b", ["b"]),
        ("", []),
        ("\n-\n", []),
    ],
)
def test_lines(reply: str, lines: list[str]) -> None:
    assert reply_lines(reply) == lines


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("When did the bridge open?", "When did the bridge open?"),
        ("Standalone question:\nWhen did the bridge open?", "When did the bridge open?"),
        ("**Standalone question:**\n\n**When did the bridge open?**", "When did the bridge open?"),
        ("Rewritten question: When did the bridge open?", "When did the bridge open?"),
        ('Sure! Here it is:\n"When did the bridge open?"', "When did the bridge open?"),
        ("Search query: bridge opening year", "bridge opening year"),
        ("改写后的问题：\n桥是什么时候开放的？", "桥是什么时候开放的？"),
        ("问题：桥是什么时候开放的？", "桥是什么时候开放的？"),
        ("**完整的问题**：“桥”是什么意思？", "“桥”是什么意思？"),
        ("Standalone question:", ""),
        ("", ""),
        # A colon that belongs to the question
        ("Dune: Part Two release date", "Dune: Part Two release date"),
        ("Python: how do I sort a list?", "Python: how do I sort a list?"),
        ("三体：黑暗森林是谁写的？", "三体：黑暗森林是谁写的？"),
        ("The question of Zion: who wrote it?", "The question of Zion: who wrote it?"),
        ("问题少年是什么意思？", "问题少年是什么意思？"),
        ("What stands after the colon in this list:", "What stands after the colon in this list:"),
    ],
)
def test_the_one_line_that_was_asked_for(reply: str, line: str) -> None:
    assert one_line(reply_lines(reply)) == line


def test_a_list_without_what_leads_into_it() -> None:
    assert drop_intro(reply_lines("Here are the queries:\n\n1. bridge opening\n2. bridge 1932")) == [
        "bridge opening",
        "bridge 1932",
    ]
    assert drop_intro(reply_lines("Only this:")) == ["Only this:"]


@pytest.mark.parametrize(
    ("reply", "summary"),
    [
        ("-5 °C was asked about.\n\n**Tea:** from Hangzhou.", "-5 °C was asked about.\n**Tea:** from Hangzhou."),
        ("- Tea?\n- Its price: -5 %.", "Tea?\nIts price: -5 %."),
        ("<think>short</think>“碳中和”是目标。", "“碳中和”是目标。"),
        ("", ""),
    ],
)
def test_a_summary(reply: str, summary: str) -> None:
    assert prose(reply) == summary


def test_a_draft_stays_as_it_was_written() -> None:
    draft = "**In short:** it opened in 1932 [1].\n\n1. Bring a card [1].\n2. Pay -5 points [2]."
    assert reply_text(f"<think>a draft</think>\n{draft}\n") == draft
