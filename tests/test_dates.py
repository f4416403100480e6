"""Time ranges in questions, in both languages."""

from __future__ import annotations

from datetime import date

import pytest

from rag.dates import find_moments, find_period
from rag.quantities.values import parse_chinese

TODAY = date(2026, 11, 23)  # a Monday


@pytest.mark.parametrize(
    ("text", "since", "until", "named"),
    [
        ("What changed since last Monday?", "2026-11-16", "", "since last Monday"),
        ("What was added yesterday about Rust?", "2026-11-22", "2026-11-22", "yesterday"),
        ("pages in the last 3 days", "2026-11-20", "", "in the last 3 days"),
        ("What is new since 1 March?", "2026-03-01", "", "since 1 March"),
        ("Dec 24 and the rest", "2025-12-24", "2025-12-24", "Dec 24"),
        ("What changed on 14 November 2025 in the docs?", "2025-11-14", "2025-11-14", "on 14 November 2025"),
        ("from 2025/11/01 to 2025/11/14.", "2025-11-01", "2025-11-14", "from 2025/11/01 to 2025/11/14"),
        ("between 1 May and 3 June 2025", "2025-05-01", "2025-06-03", "between 1 May and 3 June 2025"),
        ("between Wednesday and Friday", "2026-11-18", "2026-11-20", "between Wednesday and Friday"),
        ("what happened last month", "2026-10-01", "2026-10-31", "last month"),
        ("over the past month", "2026-10-23", "", "over the past month"),
        ("what changed before June", "", "2026-05-31", "before June"),
        ("up to 3 March 2026", "", "2026-03-03", "up to 3 March 2026"),
        ("since the beginning of the year", "2026-01-01", "", "since the beginning of the year"),
        ("a week ago", "2026-11-16", "2026-11-16", "a week ago"),
        ("who won in 1966?", "1966-01-01", "1966-12-31", "in 1966"),
        ("本周一以来有什么变化？", "2026-11-23", "", "本周一以来"),
        ("最近两周新增了哪些页面", "2026-11-09", "", "最近两周"),
        ("昨天加的页面", "2026-11-22", "2026-11-22", "昨天"),
        ("三月以后有什么变化", "2026-03-01", "", "三月以后"),
        ("从3月1日到3月5日", "2026-03-01", "2026-03-05", "从3月1日到3月5日"),
        ("去年十二月到今年五月", "2025-12-01", "2026-05-31", "去年十二月到今年五月"),
        ("二〇二五年三月五号之前", "", "2025-03-04", "二〇二五年三月五号之前"),
        ("2025-11-14以来", "2025-11-14", "", "2025-11-14以来"),
        ("星期三以来", "2026-11-18", "", "星期三以来"),
        ("上周五的页面", "2026-11-20", "2026-11-20", "上周五"),
        ("半年内有什么变化", "2026-05-23", "", "半年内"),
        ("两个月前", "2026-09-23", "2026-09-23", "两个月前"),
        ("本月初以来", "2026-11-01", "", "本月初以来"),
        ("is there a page from 2019?", "2019-01-01", "2019-12-31", "from 2019"),
        ("everything from 2019 onwards", "2019-01-01", "", "from 2019 onwards"),
        ("pages from 2019 to 2021", "2019-01-01", "2021-12-31", "from 2019 to 2021"),
        ("since 2019", "2019-01-01", "", "since 2019"),
        ("去年的页面", "2025-01-01", "2025-12-31", "去年"),
        ("what did I add this morning?", "2026-11-23", "2026-11-23", "this morning"),
        ("昨晚加的页面", "2026-11-22", "2026-11-22", "昨晚"),
        ("articles older than 2025", "", "2024-12-31", "older than 2025"),
        ("早于2025年的文章", "", "2024-12-31", "早于2025年"),
    ],
)
def test_periods(text: str, since: str, until: str, named: str) -> None:
    found = find_period(text, TODAY)
    assert found
    days = [day.isoformat() if day else "" for day in (found.since, found.until)]
    assert (*days, text[found.start : found.end]) == (since, until, named)


@pytest.mark.parametrize(
    "text",
    [
        "what is 24/7 support?",
        "ISO 9001 and version 3.11 of 2024-11",
        "Is the 2024 edition better?",
        "What does the march of progress mean?",
        "Which of the 5 may differ?",
        "since 2025-13-40 or 30 February",
        "每周一开会吗",
        "一周一次够吗",
        "第三章第五节",
        "",
        "since " * 5000,
    ],
)
def test_no_period(text: str) -> None:
    assert find_period(text, TODAY) is None


@pytest.mark.parametrize(
    ("text", "day"), [("until 25 December", "2026-12-25"), ("下周五", "2026-12-04"), ("到3月1日还有几天", "2027-03-01")]
)
def test_ahead(text: str, day: str) -> None:
    (found,) = find_moments(text, TODAY, ahead=True)
    assert found.last.isoformat() == day


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("十", 10),
        ("二十五", 25),
        ("三百零二", 302),
        ("一万二千", 12_000),
        ("二〇二五", 2025),
        ("两亿零三万", 200_030_000),
    ],
)
def test_chinese_numbers(said: str, number: int) -> None:
    assert parse_chinese(said) == number
