"""A rule-based report of quotes: the heading of each quote."""

from __future__ import annotations

import asyncio

import pytest

from rag.reasoning.research import MAX_SUMMARY, Part, RuleResearcher, SubQuestion, Task
from tests.support.answering import BRIDGE, TEA, VOLCANO, passage
from tests.support.quoting import make_quoter

PASSAGES = [
    passage(1, VOLCANO, title="Mount Aso"),
    passage(2, BRIDGE, title="The harbour bridge"),
    passage(3, TEA, title="Tea"),
]
ERUPTED = "When did Mount Aso erupt"
QUESTION = f"{ERUPTED}, and in what year was the harbour bridge opened?"


def report(*parts: Part) -> list[str]:
    async def collect() -> str:
        return "".join(
            [piece async for piece in RuleResearcher(make_quoter(), lambda name: []).report(QUESTION, parts, PASSAGES)]
        )

    return asyncio.run(collect()).split("\n\n")


def test_quotes_are_listed_under_their_page() -> None:
    lines = report(Part(ERUPTED, (1,)), Part("1932 bridge opened", (3, 2)))
    assert lines[:2] == [f"## {ERUPTED}", "Mount Aso erupted in 1953. [1]"]
    assert lines[lines.index("The bridge was opened in 1932. [2]") - 1] == "## The harbour bridge"


def test_one_section_needs_no_heading() -> None:
    assert report(Part(QUESTION, (1, 2, 3)))[0] == "Mount Aso erupted in 1953. [1]"


def test_the_question_is_no_heading() -> None:
    lines = report(Part(QUESTION, (1,)), Part("1932 bridge opened", (3, 2)))
    assert lines[0] == "Mount Aso erupted in 1953. [1]" and "## The harbour bridge" in lines


@pytest.mark.parametrize(
    "text",
    [
        f"When Mount Aso erupted, {'hot ashes fell on towns ' * 12}nearby.",
        f"阿苏山喷发时，{'火山灰落在附近的城镇上，' * 20}持续了数日。",
    ],
)
def test_a_long_finding_ends_after_a_word(text: str) -> None:
    task = Task(ERUPTED, SubQuestion(ERUPTED))
    researcher = RuleResearcher(make_quoter(), lambda name: [])
    summary = asyncio.run(researcher.read(task, [passage(1, text, title="Mount Aso")])).summary
    assert summary.endswith("…") and MAX_SUMMARY - 24 < len(summary) <= MAX_SUMMARY
    assert text.startswith(summary[:-1])
    assert not text.isascii() or text[len(summary) - 1] == " "
