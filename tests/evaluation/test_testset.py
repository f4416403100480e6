"""Cases generated from pages: questions have their evidence there, excluded pages are not used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.evaluation.cases import Case
from rag.evaluation.sets import Written, case_from_reply, cases_from_feedback, draft_cases, page_part
from rag.types import Page

BRIDGE = """# Bridges

An introduction that nobody needs to read, but which is there anyway.

## Opening

The bridge over the Ling was opened in 1911 by Anna Keller Stone after nine years of work.

## Tolls

A toll was taken from every cart until the second war had ended at last.
"""
FERRY = """# Ferries

Before that a ferry crossed the river, and old Anna Keller Stone steered it for half of her life.
"""
CHINESE = """# 夜市

## 摊位

古城墙夜市共有143个摊位，每天傍晚六点开市，到深夜才收摊，节假日还会更晚。
《夜市管理办法》规定摊主必须在收摊之后把自己的地方打扫干净才能离开。
"""


def page(name: str, text: str, language: str = "en") -> Page:
    return Page(f"https://{name}.example/", name, name.title(), language, "", text, name, "web")


PAGES = [page("bridge", BRIDGE), page("ferry", FERRY), page("market", CHINESE, "zh")]


def made(kind: str) -> list[Case]:
    return [case for case in draft_cases(PAGES, 100) if kind in case.tags]


def test_evidence_stands_in_the_page_and_everything_is_a_draft() -> None:
    texts = {one.url: one.text for one in PAGES}
    cases = draft_cases(PAGES, 100)
    assert {case.status for case in cases} == {"draft"}
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert all(one.quote in texts[one.url] for one in case.evidence)
        assert bool(case.evidence) == bool(case.answerable)
    assert [case.id for case in draft_cases(PAGES, 100)] == [case.id for case in cases], "made again they are the same"
    assert len(draft_cases(PAGES, 3)) == 3


def test_headings() -> None:
    assert [case.question for case in made("heading")] == [
        "What does “Bridge” say about “Opening”?",
        "What does “Bridge” say about “Tolls”?",
        "“Market”关于“摊位”说了什么？",
    ]


def test_numbers_and_names_leave_a_gap() -> None:
    english, chinese = made("number")
    assert (english.answers, chinese.answers) == (("1911",), ("143",))
    assert "opened in ____ by" in english.question
    assert (english.language, chinese.language) == ("en", "zh")
    assert {case.answers for case in made("name")} == {("Anna Keller Stone",), ("《夜市管理办法》",)}


def test_two_pages_that_share_a_name() -> None:
    (case,) = made("bridge")
    assert "Anna Keller Stone" in case.question
    assert [one.url for one in case.evidence] == ["https://bridge.example/", "https://ferry.example/"]


def test_what_is_left_aside_is_said_by_no_other_page() -> None:
    cases = made("unanswerable")
    assert cases
    assert all(case.without and not case.answers for case in cases)
    twins = draft_cases([PAGES[0], replace(PAGES[0], url="https://twin.example/")], 100)
    assert not [case for case in twins if "unanswerable" in case.tags]


@pytest.mark.parametrize(
    ("question", "span", "kept"),
    [
        ("Since when can people walk across that river?", "The bridge over the Ling was opened in 1911", True),
        ("When was the bridge over the Ling opened?", "The bridge over the Ling was opened in 1911", False),
        ("Since when can people walk across that river?", "The bridge was opened in 1911", False),
        ("Since when can people walk across that river?", "", False),
        (" ", "The bridge over the Ling was opened in 1911", False),
    ],
)
def test_what_a_model_writes_is_kept_where_its_words_alone_do_not_find_it(question: str, span: str, kept: bool) -> None:
    case = case_from_reply(Written(question=question, answer="1911", span=span), PAGES[0])
    assert (case is not None) == kept
    if case:
        assert (case.answers, case.quotes, case.status) == (("1911",), [span], "draft")


def test_each_time_another_part_is_read() -> None:
    long = page("long", "".join(f"{n:05} " for n in range(3000)))
    parts = [page_part(long, number) for number in range(4)]
    assert parts[0] == parts[3] != parts[1]
    assert page_part(PAGES[0], 5) == BRIDGE


def test_of_feedback() -> None:
    row = {"id": "f", "question": "Why?", "lang": "en", "answers": [], "evidence": [], "rating": -1, "reason": "wrong"}
    bad, good = cases_from_feedback([row, {**row, "id": "g", "rating": 1, "answers": ["Because."], "reason": ""}])
    assert (bad.status, bad.tags, good.status, good.tags) == (
        "draft",
        ("feedback", "bad", "wrong"),
        "approved",
        ("feedback", "good"),
    )
