"""The judge: its possible verdicts, and its agreement with human labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import BaseModel

from rag.errors import ModelError
from rag.evaluation.agreement import Label, agreement, cohens_kappa
from rag.evaluation.cases import Case
from rag.evaluation.judge import AnswerRating, ModelJudge
from rag.prompts.requests import Prompt
from rag.prompts.texts import SHIPPED
from rag.types import Answer, Verdict
from tests.support.answering import BRIDGE, TEA, passage

ANSWER = Answer("When?", "fast", "answered", "In 1932.[1]", passages=(passage(1, BRIDGE), passage(2, TEA)))
SAID: dict[str, Any] = {
    "faithfulness": 5,
    "relevance": 4,
    "completeness": 3,
    "reason": "It is said.",
    "noncommittal": False,
    "quote": "The bridge was opened in 1932.",
    "questions": ["When was it?", "Which year?", " "],
}


def judge(**said: Any) -> tuple[ModelJudge, list[Prompt]]:
    asked: list[Prompt] = []

    def fill(schema: type[BaseModel], prompt: Prompt) -> BaseModel:
        asked.append(prompt)
        return schema.model_validate({**SAID, **said})

    return ModelJudge(fill, SHIPPED), asked


def encode(question: str, texts: Sequence[str]) -> NDArray[np.float32]:
    assert texts == ["When was it?", "Which year?"]
    return np.array([[1, 0], [0.6, 0.8], [1, 0]], dtype=np.float32)


def test_what_it_says() -> None:
    model, asked = judge()
    found = model.scores(Case("q", "When?"), ANSWER, encode)
    assert found == {
        "judged_faithfulness": 5.0,
        "judged_relevance": 4.0,
        "judged_completeness": 3.0,
        "answer_relevancy": pytest.approx(0.8),
    }
    (prompt,) = asked
    assert "In 1932." in prompt.user
    assert "[1]\n" not in prompt.user
    assert BRIDGE in prompt.user


@pytest.mark.parametrize("quote", ["", "The bridge was opened in 1933.", "It was in 1932."])
def test_a_quote_that_does_not_stand_there_makes_it_unreadable(quote: str) -> None:
    assert set(judge(quote=quote)[0].scores(Case("q", "When?"), ANSWER, encode).values()) == {None}


def test_it_quotes_chinese_and_in_other_spacing() -> None:
    for quote in ("龙井茶产于 杭州。", "the bridge\nwas opened in 1932."):
        assert judge(quote=quote)[0].scores(Case("q", "When?"), ANSWER, None)["judged_relevance"] == 4.0


def test_noncommittal_answers_are_not_relevant() -> None:
    assert judge(noncommittal=True)[0].scores(Case("q", "When?"), ANSWER, encode)["answer_relevancy"] == 0.0
    assert judge()[0].scores(Case("q", "When?"), ANSWER, None)["answer_relevancy"] is None


def test_a_model_that_fails_and_an_answer_without_text_are_not_judged() -> None:
    def fail(schema: type[BaseModel], prompt: Prompt) -> BaseModel:
        raise ModelError("chat_unreachable", address="nowhere")

    assert set(ModelJudge(fail, SHIPPED).scores(Case("q", "When?"), ANSWER, encode).values()) == {None}
    model, asked = judge()
    refused = Answer("When?", "fast", "not_in_pages", "")
    assert set(model.scores(Case("q", "When?"), refused, encode).values()) == {None}
    assert asked == []


def test_points_lie_between_one_and_five() -> None:
    with pytest.raises(ValueError, match="faithfulness"):
        AnswerRating.model_validate({**SAID, "faithfulness": 6})


def labels(*pairs: tuple[Verdict, Verdict, int]) -> list[Label]:
    return [Label(f"{pair}", "", "", (), pair[0], pair[1]) for pair in pairs for _ in range(pair[2])]


def test_kappa_and_f1_by_hand() -> None:
    """In Cohen's table 20 and 15 agree, 5 and 10 do not: (.7 - .5) / (1 - .5) = .4."""
    found = agreement(
        labels(
            ("supported", "supported", 20),
            ("supported", "unsupported", 5),
            ("unsupported", "supported", 10),
            ("unsupported", "unsupported", 15),
        )
    )
    assert found is not None
    assert (found.n, found.kappa.value) == (50, pytest.approx(0.4))
    assert found.kappa.low < 0.4 < found.kappa.high
    assert found.f1 == {"supported": pytest.approx(40 / 55), "unsupported": pytest.approx(30 / 45)}
    assert not found.is_sufficient, "fifty labels are too few"


def test_enough_is_many_labels_and_better_than_chance() -> None:
    def of(agreed: int, not_agreed: int) -> bool:
        half = [("supported", "supported", agreed), ("unsupported", "unsupported", agreed)]
        other = [("supported", "unsupported", not_agreed), ("unsupported", "supported", not_agreed)]
        found = agreement(labels(*half, *other))  # type: ignore[arg-type]
        assert found is not None
        return found.is_sufficient

    assert [of(45, 5), of(20, 5), of(25, 25)] == [True, False, False]
    assert agreement([]) is None


def test_where_both_say_one_thing_alone_there_is_nothing_to_tell() -> None:
    one = np.array([[1.0, 0.0]] * 5)
    assert np.isnan(cohens_kappa(np.ones((1, 5)), one, one)).all()
