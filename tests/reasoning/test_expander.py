"""Texts to search with: from a chat model, and from the results of a first search."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from rag.app import make_expander
from rag.errors import ModelError
from rag.prompts.requests import Prompt
from rag.prompts.texts import SHIPPED
from rag.reasoning.chat import ChatExpander, ChatReasoner
from rag.reasoning.extractive import FeedbackExpander, split_question
from tests.support.answering import BRIDGE, VOLCANO, ScriptedReasoner, passage
from tests.support.fake_model import QueueModel
from tests.support.quoting import make_quoter
from tests.support.waiting import until

QUESTION = "When did Mount Aso erupt?"


def chat(*replies: Any) -> tuple[ChatExpander, QueueModel]:
    model = QueueModel(replies=list(replies))
    return ChatExpander(ChatReasoner(model)), model


def test_a_hypothetical_passage_is_one_piece_without_thoughts() -> None:
    expander, model = chat("<think>hm</think>Mount Aso erupted in 1953.\n\nAsh fell for days. " + "x" * 5_000)
    text = expander.passage(QUESTION)
    assert text.startswith("Mount Aso erupted in 1953. Ash fell for days.")
    assert len(text) == 1_200
    assert QUESTION in model.requests[0][0][-1].text


def test_phrasings_are_lines_without_marks() -> None:
    expander, _ = chat('1. Aso eruption year\n- "eruption of Mount Aso"\n\n2) 阿苏山喷发\n1953 Aso eruption')
    expected = ["Aso eruption year", "eruption of Mount Aso", "阿苏山喷发", "1953 Aso eruption"]
    assert expander.phrasings(QUESTION) == expected


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("阿苏山是什么时候喷发的？", "阿苏山是什么时候喷发的？"),
        ("When did Mount Aso erupt?", ""),  # no translation
        ("", ""),
    ],
)
def test_a_translation_is_in_the_language_that_was_asked_for(reply: str, query: str) -> None:
    expander, model = chat(reply)
    assert expander.translation(QUESTION, "zh") == query
    assert "Chinese" in model.requests[0][0][0].text


@pytest.mark.parametrize(
    ("reply", "need"),
    [("exact", "exact"), ("Concept.", "concept"), ("**facets**", "facets"), ("exact or concept", ""), ("?", "")],
)
def test_one_word_tells_what_a_question_needs(reply: str, need: str) -> None:
    assert chat(reply)[0].need(QUESTION) == need


@pytest.mark.parametrize("error", [ConnectionResetError(), ValueError("Expecting value"), TimeoutError()])
def test_every_failure_is_a_model_error(error: Exception) -> None:
    with pytest.raises(ModelError):
        chat(error)[0].phrasings(QUESTION)


def test_a_model_that_does_not_answer_is_not_waited_for() -> None:
    class Slow:
        name = "slow"
        texts = SHIPPED
        cancelled = False

        async def ask_lines(self, prompt: Prompt) -> list[str]:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return []

    writer = Slow()
    began = time.monotonic()
    with pytest.raises(ModelError) as caught:
        ChatExpander(writer, seconds=0.1).passage(QUESTION)
    assert caught.value.code == "chat_timeout"
    assert time.monotonic() - began < 20
    until(lambda: writer.cancelled)


def test_without_a_model_the_passage_is_made_of_what_was_found() -> None:
    text = FeedbackExpander(make_quoter()).passage(QUESTION, [passage(1, VOLCANO), passage(2, BRIDGE)])
    assert text.startswith(f"{QUESTION} Mount Aso erupted in 1953.")
    assert FeedbackExpander(make_quoter()).passage(QUESTION) == QUESTION


def test_without_a_model_phrasings_are_parts_or_keywords() -> None:
    feedback = FeedbackExpander(make_quoter())
    asked = "Who built the bridge and when was it opened?"
    assert feedback.phrasings(asked) == ["Who built the bridge", "when was it opened"]
    assert feedback.phrasings(QUESTION, [passage(1)])[0] == "Mount Aso erupt"
    assert feedback.translation(QUESTION, "zh") == ""
    assert feedback.need(QUESTION) == ""
    assert not feedback.uses_model


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where is it made? What does it cost?", ["Where is it made", "What does it cost"]),
        ("What is the price of bread and butter?", []),
        ("龙井茶产于哪里，炒制需要几道手法？", ["龙井茶产于哪里", "炒制需要几道手法"]),
        ("在杭州，龙井茶多少钱？", []),
        ("龙井茶产于哪里？", []),
        ("", []),
    ],
)
def test_parts(question: str, expected: list[str]) -> None:
    assert split_question(question) == expected


def test_the_expander_goes_with_the_reasoner() -> None:
    assert isinstance(make_expander(ChatReasoner(QueueModel())), ChatExpander)
    assert isinstance(make_expander(make_quoter()), FeedbackExpander)
    assert make_expander(ScriptedReasoner()) is None
