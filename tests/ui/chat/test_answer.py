from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag.types import Answer, CheckedBy, Statement, Verdict
from rag.ui.chat.answer import check_summary, count_verdicts, doubts_of
from rag.ui.kit.markdown import answer_markdown

TEXT = "It opened in 1932. It is green. 它很长。"


def make(verdicts: Sequence[Verdict], reasons: Sequence[str] = ("words",) * 9, by: CheckedBy = "rules") -> Answer:
    spans = [(0, 18), (19, 31), (32, 36)]
    statements = [
        Statement(*span, verdict, (1,) if verdict != "unsupported" else (), reason, by)
        for span, verdict, reason in zip(spans, verdicts, reasons, strict=False)
    ]
    return Answer("q", "fast", "answered", TEXT, statements=tuple(statements))


@pytest.mark.parametrize(
    ("verdicts", "by", "english", "chinese"),
    [
        ([], "rules", "", ""),
        (
            ["supported"], "rules",
            "1 of 1 sentence found in the sources · word match",
            "1 句中 1 句可在来源中找到 · 按词语比对",
        ),
        (
            ["supported", "partly"], "model",
            "1 of 2 sentences supported · 1 partly supported · checked by the chat model",
            "2 句中 1 句有依据 · 1 句部分有依据 · 由对话模型核对",
        ),
        (["unsupported"], "local", "0 of 1 sentence supported · checked by a local model",
         "1 句中 0 句有依据 · 由本地模型核对"),
    ],
)  # fmt: skip
def test_the_line_above_an_answer_says_who_checked(
    verdicts: list[Any], by: CheckedBy, english: str, chinese: str
) -> None:
    answer = make(verdicts, by=by)
    assert check_summary(answer, "en") == english
    assert check_summary(answer, "zh") == chinese
    assert count_verdicts(answer.statements)[2] == len(verdicts)


def test_what_was_quoted_is_not_counted() -> None:
    answer = make(["supported", "supported"], ["verbatim", "verbatim"])
    assert check_summary(answer, "en")
    assert check_summary(replace(answer, reasoner="extractive"), "en") == ""
    assert check_summary(replace(answer, composed="quoted"), "zh") == ""


def test_what_stands_there_to_the_letter_was_judged_by_nobody() -> None:
    answer = make(["supported", "supported"], ["verbatim", "model"])
    first, second = answer.statements
    mixed = replace(answer, statements=(first, replace(second, by="model")))
    assert check_summary(mixed, "en").endswith("checked by the chat model")


def test_doubtful_statements_are_marked_in_words_and_with_a_reason() -> None:
    answer = make(["supported", "unsupported", "partly"], ["words", "nothing_close", "numbers"])
    shown = answer_markdown(answer.text, anchor="source-r", doubts=doubts_of(answer, "en"))
    assert shown.startswith(
        'It opened in 1932. It is green. [not found](#source-r-unsupported "Not found in the source'
    )
    assert '它很长。 [partly supported](#source-r-partly "A value or sign here' in shown
    assert "[未找到](#source-r-unsupported" in answer_markdown(TEXT, anchor="source-r", doubts=doubts_of(answer, "zh"))


def test_only_a_model_says_that_there_is_no_source() -> None:
    (by_model,), (by_rules,) = (doubts_of(make(["unsupported"], ["x"], by), "en") for by in ("model", "rules"))  # type: ignore[arg-type]
    assert (by_model.word, by_rules.word) == ("no source", "not found")


def test_what_does_not_bear_on_the_question_is_marked() -> None:
    answer = make(["supported"], by="model")
    aside = replace(answer, statements=(replace(answer.statements[0], relevant=False),))
    assert [one.word for one in doubts_of(aside, "en")] == ["off-topic"]
    assert "1 off-topic" in check_summary(aside, "en")
