"""Cleaning of whole replies: the marks around the text go, but nothing of the text."""

from __future__ import annotations

import pytest

from rag.reasoning.chat import drop_intro, one_line, prose, reply_lines, reply_text


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
