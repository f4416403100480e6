from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag.types import Answer, Statement, Verdict
from rag.ui.checked import counts, doubtful, head_line
from rag.ui.render import answer_markdown

TEXT = "It opened in 1932. It is green. 它很长。"


def make(verdicts: Sequence[Verdict], reasons: Sequence[str] = ("words",) * 9) -> Answer:
    spans = [(0, 18), (19, 31), (32, 36)]
    statements = [
        Statement(*span, verdict, (1,) if verdict != "unsupported" else (), reason)
        for span, verdict, reason in zip(spans, verdicts, reasons, strict=False)
    ]
    return Answer("q", "fast", "answered", TEXT, statements=tuple(statements))


@pytest.mark.parametrize(
    ("verdicts", "english", "chinese"),
    [
        ([], "", ""),
        (["supported"], "The statement is supported", "这句话有依据"),
        (["unsupported"], "0 of 1 statement supported", "1 句中有 0 句有依据"),
        (["supported", "supported"], "2 of 2 statements supported", "2 句中有 2 句有依据"),
        (["supported", "unsupported", "supported"], "2 of 3 statements supported", "3 句中有 2 句有依据"),
        (["supported", "partly"], "1 of 2 statements supported · 1 in part", "2 句中有 1 句有依据 · 1 句仅部分有依据"),
    ],
)
def test_the_line_above_an_answer(verdicts: list[Any], english: str, chinese: str) -> None:
    answer = make(verdicts)
    assert head_line(answer, "en") == english
    assert head_line(answer, "zh") == chinese
    assert counts(answer.statements)[2] == len(verdicts)


def test_doubtful_statements_are_marked_in_words_and_with_a_reason() -> None:
    answer = make(["supported", "unsupported", "partly"], ["words", "numbers", "language"])
    shown = answer_markdown(answer.text, anchor="source-r", doubtful=doubtful(answer, "en"))
    assert shown.startswith(
        'It opened in 1932. It is green. [no source](#source-r-unsupported "A passage says otherwise'
    )
    assert "它很长。 [in part](#source-r-partly " in shown
    assert "[无依据](#source-r-unsupported" in answer_markdown(TEXT, anchor="source-r", doubtful=doubtful(answer, "zh"))


def test_a_contradiction_is_told_from_what_is_only_missing() -> None:
    said, missing = (doubtful(make(["unsupported"], [reason]), "en")[0].tip for reason in ("negation", "nothing_close"))
    assert said != missing
