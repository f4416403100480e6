"""What a model is told about a conversation."""

from __future__ import annotations

import pytest

from rag.prompts.conversing import condense, summarise
from rag.types import Exchange


@pytest.mark.parametrize(
    ("history", "question", "told"),
    [
        (Exchange("How tall is it?", ""), "Why?", "Person: How tall is it?\nAnswer: (none was given)"),
        (Exchange("How tall is it?", " \n"), "Why?", "Answer: (none was given)"),
        (Exchange("How tall is it?", "90 m."), "Why?", "Person: How tall is it?\nAnswer: 90 m."),
        (Exchange("它有多高？", ""), "为什么？", "用户: 它有多高？\n回答: （没有得到回答）"),
    ],
)
def test_a_question_without_an_answer_is_told_as_that(history: Exchange, question: str, told: str) -> None:
    assert told in condense(question, [history]).user
    assert told in summarise("", [history, Exchange(question, "x")], 100).user
