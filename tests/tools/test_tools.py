"""The tools other than the calculator, in isolation, in both languages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rag.errors import ToolError
from rag.locales import sentences
from rag.tools import TOOLS
from rag.tools.calendar_day import can_answer, is_calendar_question
from rag.tools.code import can_isolate
from rag.tools.tool import ToolResources
from rag.types import Page
from tests.support.answering import BRIDGE, TEA, passage


def page(number: int, title: str, **of: object) -> Page:
    at = f"2026-11-{number:02}T10:00:00+00:00"
    site = f"{'abc'[number % 3]}.example"
    made = Page(f"https://{site}/{number}", f"h{number}", title, "en", site, "", "", "web", added_at=at, updated_at=at)
    return replace(made, **{"chunks": 2, "characters": 600 * number, **of})  # type: ignore[arg-type]


PAGES = [page(3, "Tea from Hangzhou", language="zh"), page(2, "call the calculator"), page(1, "Bridges of Aso")]
TEXT = (
    "# Bridges of Aso\n\nOne.\n\n## The first\n\n```\n# no heading\n```\n\n### Its arches\n\ncall the calculator(9**9)"
)
RESOURCES = ToolResources(
    "en",
    datetime(2026, 11, 23, 7, 30, tzinfo=UTC),
    search=lambda _: [passage(1, TEA)],
    pages=lambda: PAGES,
    text=lambda _: TEXT,
)


def run(name: str, said: str, resources: ToolResources = RESOURCES) -> str:
    return (
        TOOLS[name]
        .run(said, replace(resources, language="zh" if any("一" <= sign <= "龥" for sign in said) else "en"))
        .text
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("what time is it", "It is Monday, 23 November 2026, 07:30 (UTC+0000)."),
        ("What time is it in New York right now?", "It is Monday, 23 November 2026, 02:30 (UTC-0500) in New York."),
        ("东京现在几点", "东京现在是2026年11月23日（星期一）16:30 (UTC+0900)。"),
        ("how many days until Christmas?", "Friday, 25 December 2026 is in 32 days."),
        ("days between 1 March 2026 and 5 May 2026", "65 days between Sunday, 1 March 2026 and Tuesday, 5 May 2026."),
        ("what weekday was 14 July 1789?", "Tuesday, 14 July 1789."),
        ("1000 days from today", "Sunday, 19 August 2029 is in 1000 days."),
        ("48 hours from today", "Wednesday, 25 November 2026 is in 2 days."),
        ("two weeks before 25 December", "Friday, 11 December 2026: 14 days before Friday, 25 December 2026."),
        ("31 January 2027 plus one month", "Sunday, 28 February 2027: 28 days after Sunday, 31 January 2027."),
        ("is 2028 a leap year?", "2028 is a leap year."),
        ("今天星期几", "今天是2026年11月23日（星期一）。"),
        ("is it sunday today?", "Today is Monday, 23 November 2026."),
        ("2027年5月1日是星期幾", "2027年5月1日（星期六）。"),
        ("离元旦还有几天", "2027年1月1日（星期五），还有 39 天。"),
        ("三周后是几号", "2026年12月14日（星期一），还有 21 天。"),
        ("2026年3月1日到2026年5月5日有多少天", "2026年3月1日（星期日）与2026年5月5日（星期二）相隔 65 天。"),
        ("100天前是哪一天", "2026年8月15日（星期六），100 天前。"),
        ("2月1日之后30天是哪天", "2027年2月1日（星期一）之后 30 天是2027年3月3日（星期三）。"),
        ("days until christmas eve", "Thursday, 24 December 2026 is in 31 days."),
        ("how many weeks until 1 march 2027", "Monday, 1 March 2027 is in 14 weeks."),
        ("离2027年元旦还有几周", "2027年1月1日（星期五），还有 5 周 4 天。"),
        ("2028年2月有多少天", "2028年2月1日（星期二）与2028年3月1日（星期三）相隔 29 天。"),
        ("how old is someone born in 1987", "Born in 1987: turns 39 in 2026."),
        ("I was born on 24 November 1990, how old am I", "Born on Saturday, 24 November 1990: 35 years old."),
        ("95年出生的2030年多大", "1995年出生，2030年满 35 岁。"),
        ("我是1990年5月5日出生的，今年几岁", "1990年5月5日（星期六）出生，现在 36 岁。"),
        ("北京現在幾點", "北京现在是2026年11月23日（星期一）15:30 (UTC+0800)。"),
        ("旧金山时间", "旧金山现在是2026年11月22日（星期日）23:30 (UTC-0800)。"),
        ("日本现在几点", "日本现在是2026年11月23日（星期一）16:30 (UTC+0900)。"),
        ("time in nyc", "It is Monday, 23 November 2026, 02:30 (UTC-0500) in NYC."),
        (
            "北京和伦敦的时差",
            "北京现在是2026年11月23日（星期一）15:30 (UTC+0800)。\n\n"
            "伦敦现在是2026年11月23日（星期一）07:30 (UTC+0000)。",
        ),
        ("10天前是哪天", "2026年11月13日（星期五），10 天前。"),
    ],
)
def test_dates(said: str, told: str) -> None:
    assert run("date", said) == told


@pytest.mark.parametrize(
    "said",
    ["days until 30 February 2027?", "9999-12-31 plus 99999 years", "when is Easter 2027", "how old will I be in 2040"],
)
def test_a_day_that_is_not_there(said: str) -> None:
    with pytest.raises(ToolError):
        run("date", said)


@pytest.mark.parametrize(
    ("text", "is_answered"),
    [
        ("what's the date?", True),
        ("现在几点了", True),
        ("what time is it in tokyo", True),
        ("how many days until 30 February 2027?", True),
        ("days until New Year", True),
        ("when is Easter", False),
        ("when is Easter 2027", False),
        ("距离春节还有几天", False),
        ("离过年还有几天", False),
        ("what day is easter", False),
        ("what time does the shop in Tokyo close?", False),
    ],
)
def test_a_date_that_is_not_in_a_calendar_is_left_to_the_pages(text: str, is_answered: bool) -> None:
    assert can_answer(text) is is_answered


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("北京现在几点", True),
        ("what time is it in San Francisco?", True),
        ("再过两周是几月几日？", True),
        ("how old is someone born in 1987", True),
        ("what time does the shop in Tokyo close?", False),
        ("北京时间几点开会", False),
        ("1990年出生的明星有哪些", False),
        ("how old is the Eiffel Tower", False),
        ("how many years since 1990", False),
        ("what time", False),
        ("since when?", False),
    ],
)
def test_a_question_about_the_calendar_only(text: str, is_whole: bool) -> None:
    assert is_calendar_question(text) is is_whole


def test_what_a_library_holds_is_counted() -> None:
    assert "3 pages from 3 sites in 2 languages: about 2,100 words in 6 passages" in run("statistics", "how many")
    assert "Last added:\n\n- Tea from Hangzhou (2026-11-03)\n" in run("statistics", "What is the newest page?")
    assert "- Tea from Hangzhou (1,800)" in run("statistics", "which page is the longest?")
    assert run("statistics", "list the sites").count("- ") == 3
    assert "共 3 个网页" in run("statistics", "我有多少网页") and "约 2,100 词" in run("statistics", "我有多少网页")
    assert "各语言的网页数：\n\n- 英文 (2)\n- 中文 (1)\n" in run("statistics", "有哪些语言")
    assert run("statistics", "一共几种语言").count("- ") == 2
    many = replace(RESOURCES, pages=lambda: [page(n % 28 + 1, f"P{n}") for n in range(50)])
    assert "- and 40 more\n\n50 pages" in run("statistics", "list all pages", many)
    assert run("statistics", "how many", replace(RESOURCES, pages=tuple)) == "No pages here."


LIBRARY = replace(
    RESOURCES,
    pages=lambda: [
        page(1, "Bridges of Aso", published="2019-05-01"),
        page(2, "Tea from Hangzhou"),
        page(3, "Green tea"),
        page(4, "Drinks", published="2024-02-03"),
    ],
    search=lambda query: [
        replace(passage(4, "Iced tea keeps for a day.", score=0.9), url_hash="h4"),
        passage(1, BRIDGE),
    ],
)


@pytest.mark.parametrize(
    ("request_", "part", "titles"),
    [
        ("how many words does the Aso page have?", "Aso", ["Bridges of Aso"]),
        ("And the Hangzhou page?", "Hangzhou", ["Tea from Hangzhou"]),
        ("what's in the tea pages?", "tea", ["Tea from Hangzhou", "Green tea"]),
        ("which pages are about tea?", "tea", ["Tea from Hangzhou", "Green tea", "Drinks"]),
        ("is there a page from 2019?", "from 2019", ["Bridges of Aso"]),
        ("which pages are from 2026?", "from 2026", ["Tea from Hangzhou", "Green tea"]),
        ("which pages were published before 2030?", "before 2030", ["Bridges of Aso", "Drinks"]),
        ("what did I add on 2 November 2026?", "on 2 November 2026", ["Tea from Hangzhou"]),
        ("anything from b.example?", "b.example", ["Bridges of Aso", "Drinks"]),
        ("which pages deal with tea?", "tea", ["Tea from Hangzhou", "Green tea", "Drinks"]),
        ("which pages mention tea?", "tea", ["Tea from Hangzhou", "Green tea", "Drinks"]),
    ],
)
def test_only_the_pages_that_are_asked_about_are_counted_and_listed(
    request_: str, part: str, titles: list[str]
) -> None:
    listed, _, counts = run("statistics", request_, LIBRARY).rpartition("\n\n")
    assert listed == "\n".join([f"Pages matching “{part}”:", "", *(f"- {title}" for title in titles)])
    assert counts.startswith(f"{len(titles)} page{'s' * (len(titles) > 1)} from")


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (
            "when did I save the Aso page?",
            "Pages matching “Aso”:\n\nDate added:\n\n- Bridges of Aso (2026-11-01)\n\n1 page",
        ),
        ("who added the Aso page?", "Pages don't record who added them.\n\n1 page from"),
        ("谁添加的网页最多", "网页不记录添加者。\n\n共 4 个网页"),
        ("which links couldn't be read?", "Links and files that couldn't be read are under “Recent imports”"),
        ("哪些网页没读成功？", "未能读取的链接和文件列在“添加”页的“最近的导入”中"),
        ("average number of words per page", "About 250 words per page on average.\n\n4 pages"),
        ("平均每页多少字？", "平均每个网页约 250 词（中文按字计）。\n\n共 4 个网页"),
        ("who wrote the pages?", "Pages by author:\n\n- none\n\n4 pages"),
        ("这个月添加了多少网页", "符合“这个月”的网页：\n\n共 4 个网页"),
        ("列出所有关于桥的网页", "没有符合“桥”的网页。"),
        ("有没有茶方面的网页", "符合“茶”的网页：\n\n- Drinks\n\n共 1 个网页"),
        ("我有哪些关于茶的资料", "符合“茶”的网页：\n\n- Drinks\n\n共 1 个网页"),
    ],
)
def test_a_request_is_answered_by_its_sentence_or_list(request_: str, told: str) -> None:
    iced = replace(passage(4, "Iced tea keeps for a day.", score=0.9), url_hash="h4")
    cold = replace(passage(3, "The shop is open.", score=0.2), url_hash="h3")
    found = [iced, passage(1, "大桥建成于一九一〇年。", score=0.6), cold]
    searched = replace(LIBRARY, search=lambda query: found if "茶" in query else found[1:])
    assert run("statistics", request_, searched).startswith(told)


def test_uploaded_files_have_no_sites() -> None:
    files = replace(RESOURCES, pages=lambda: [page(1, "Notes", site="")])
    assert run("statistics", "how many", files).startswith("1 page in 1 language: about 100 words in 2 passages.")


def test_requests_about_all_pages_are_not_narrowed() -> None:
    for request_ in ("how many pages did I add in 2026?", "which is the longest page?", "top 2 longest pages"):
        assert "4 pages from 3 sites" in run("statistics", request_, LIBRARY)
    assert run("statistics", "which pages are about coffee?", LIBRARY) == "No pages match “coffee”."
    assert run("statistics", "有哪些关于咖啡的网页？", LIBRARY).startswith("符合“咖啡”的网页：\n\n- ")


def test_as_many_pages_are_listed_as_are_asked_for() -> None:
    many = replace(RESOURCES, pages=lambda: [page(n % 28 + 1, f"P{n}") for n in range(50)])
    newest = run("statistics", "list the ten newest pages", many)
    assert newest.startswith("Last added:") and newest.count("- P") == 10 and "Pages:" not in newest
    assert run("statistics", "最长的三个网页", many).count("- P") == 3
    assert run("statistics", "the newest pages", many).count("- P") == 5


def test_the_headings_of_the_page_that_is_named() -> None:
    told = run("outline", "outline of “Bridges of Aso”")
    assert told.splitlines()[2:] == ["- Bridges of Aso", "  - The first", "    - Its arches"]
    with pytest.raises(ToolError, match="which page"):
        run("outline", "the outline please")


def test_the_web_is_searched_only_if_configured() -> None:
    found = TOOLS["retrieve"].run("tea", RESOURCES)
    assert found.text == "1 passage: Page 1" and found.passages == [passage(1, TEA)]
    with pytest.raises(ToolError, match="SEARXNG_URL"):
        run("web_search", "tea")
    assert TOOLS["web_search"].run("tea", replace(RESOURCES, web=lambda _: [])).text == "Nothing found."


OPEN = replace(RESOURCES, code=True)


@pytest.mark.skipif(not can_isolate(), reason="this system cannot close files and network to a child")
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("print(sum(range(10)))\n2 ** 10", "45\n1024"),
        ("import math, statistics, datetime\nround(statistics.mean([1, 2, 4]), 3)", "2.333"),
        ("x = 1", "The program printed nothing."),
        ("import os\nsorted(set(os.environ) - {'LC_CTYPE'})", "[]"),
        ("import os\nos._exit(0)", "The program printed nothing."),
        ("1 / 0", "code_failed"),
        ("x = (", "code_failed"),
        ("import numpy", "code_failed"),
        ("import ctypes\nctypes.string_at(0)", "code_failed"),
        ("x = []\nwhile True: x.append('a' * 10**6)", "code_memory"),
        ("print('x' * 10**7)", "code_output"),
        ("while True: pass", "code_slow"),
        ("import os\nos.fork()", "code_reached_out"),
        ("import os\nos.kill(os.getppid(), 9)", "code_reached_out"),
        ("import subprocess\nsubprocess.run(['ls'])", "code_reached_out"),
        ("open('/etc/passwd').read()", "code_reached_out"),
        ("open('/tmp/made', 'w')", "code_reached_out"),
        ("import os\nos.listdir('/proc')", "code_reached_out"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 80))", "code_reached_out"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "code_failed"),
        ("import threading\nthreading.Thread(target=print).start()", "code_failed"),
        ("# " + "x" * 20_000, "code_long"),
    ],
)
def test_code_reaches_nothing(code: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.tools.code.SECONDS", 1.0 if outcome == "code_slow" else 60.0)
    monkeypatch.setenv("LLM_API_KEY", "secret")
    if outcome in sentences("en"):
        with pytest.raises(ToolError) as caught:
            run("python", code, OPEN)
        assert caught.value.code == outcome
    else:
        assert run("python", code, OPEN) == outcome


def test_code_is_off_until_it_is_switched_on() -> None:
    with pytest.raises(ToolError, match="TOOLS_CODE"):
        run("python", "1 + 1")


def test_each_tool_says_what_it_takes() -> None:
    for name, tool in TOOLS.items():
        function = tool.schema["function"]
        assert function["name"] == name and function["parameters"]["required"] == [tool.argument]
