from __future__ import annotations

from typing import Any, cast

import pytest

from rag.checking.citations import check
from rag.errors import ModelError
from rag.graphs.answer import LoopState, end_state
from tests.support.answering import passage

STATE = cast(LoopState, {"question": "Does it?", "steps": [], "tried": ["x"], "outcome": None})


def outcome(text: str, page: str, error: ModelError | None = None) -> tuple[Any, Any]:
    checked = check(text, [passage(1, page)])
    ended = end_state(STATE, checked.text, checked.citations, error, is_unsure=False, likely=1.0)
    notice = ended["notice"]
    return ended["outcome"], notice["code"] if notice else None


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("No, it does not include breakfast [1].", "The room price does not include breakfast."),
        ("No. The tour doesn't cover lunch [1].", "The tour does not cover lunch."),
        ("They do not give refunds [1].", "The shops do not give refunds after 14 days."),
        ("No – dogs are not allowed [1].", "Dogs are not allowed in the rooms."),
        ("科学家无法确定其年代[1]。", "科学家无法确定其年代。"),
        ("不，房价不包含早餐[1]。", "房价不包含早餐。"),
        ("Please bring your passport [1].", "Please bring your passport."),
        ("请提前三天预约[1]。", "请提前三天预约。"),
        ("希望小学建于1990年[1]。", "希望小学建于1990年。"),
        ("We will open an office in Rome [1].", "We will open an office in Rome."),
        ("**1994** [1]", "The company was founded in 1994."),
    ],
)
def test_what_the_pages_bear_out_is_an_answer(text: str, page: str) -> None:
    assert outcome(text, page) == ("answered", None)


@pytest.mark.parametrize(
    "text",
    ["", "The passages do not say so.", "The pages do not mention it [1].", "段落中没有提到。", "无法回答该问题。"],
)
def test_a_refusal_is_not_in_the_pages(text: str) -> None:
    assert outcome(text, "The room price is 90 euros.") == ("not_in_pages", "not_in_pages")


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("No, it does not include parking [1].", "The museum opened in 1990."),
        ("They do not sell tickets.", "The museum opened in 1990."),
        ("房价不包含停车[1]。", "博物馆于1990年开馆。"),
        ("他们不提供接送。", "博物馆于1990年开馆。"),
    ],
)
def test_a_denial_that_nothing_bears_out_is_no_refusal(text: str, page: str) -> None:
    assert outcome(text, page) == ("caveat", "no_citations")


def test_a_text_that_the_model_cut_off_is_kept() -> None:
    error = ModelError("answer_too_long")
    assert outcome("It opened in 1990 [1].", "The museum opened in 1990.", error) == ("caveat", "answer_too_long")
    assert outcome("It opened in 1990 [1].", "x", ModelError("chat_timeout"))[0] == "failed"
