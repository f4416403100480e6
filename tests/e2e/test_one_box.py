"""Everything is typed into one box: each route is shown with its name and result, and one click selects another."""

from __future__ import annotations

import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, send, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer

pytestmark = pytest.mark.usefixtures("samples")

REFUSED = "http://127.0.0.1:9/skiff"
TYPED: dict[Language, tuple[tuple[str, str, str], ...]] = {
    "en": (
        ("save", REFUSED, "1 source not added"),
        ("save_then_ask", f"{REFUSED} what does the team plan cost?", "1 source not added"),
        ("summarise", "Summarise the travel policy", "economy class"),
        ("what_changed", "What has changed since last Monday?", "Skiff"),
        ("statistics", "How many pages do I have?", "12"),
        ("calculate", "what is 15% of 240?", "36"),
        ("date", "What day is it today?", r"20\d\d"),
        ("web", "search the web for tram strikes in Vienna", "SEARXNG_URL"),
        ("small_talk", "hello", r"\w"),
        ("unknown", "book me a flight to Oslo", r"\w"),
    ),
    "zh": (
        ("save", REFUSED, "1 个来源未添加"),
        ("save_then_ask", f"看一下 {REFUSED} ，团队版多少钱？", "1 个来源未添加"),
        ("summarise", "总结一下地铁票价", "118 座车站"),
        ("what_changed", "最近一周有哪些页面更新了？", "票价"),
        ("statistics", "资料库里有多少个页面？", "12"),
        ("calculate", "三百二十加上八十是多少", "400"),
        ("date", "今天星期几？", "星期"),
        ("web", "上网查一下台北天气", "SEARXNG_URL"),
        ("small_talk", "你好", r"\w"),
        ("unknown", "帮我订一张机票", r"\w"),
    ),
}  # fmt: skip


def say(page: Page, text: str, number: int) -> None:
    """Type and send `text`, and wait until turn `number` has ended."""
    send(page, text)
    expect(page.locator("[class*='st-key-actions-']")).to_have_count(number)
    wait_until_idle(page)


@pytest.mark.parametrize(("language", "model"), [("en", False), ("zh", True)])
def test_each_way_is_told_and_another_is_a_click_away(open_tab: OpenTab, language: Language, model: bool) -> None:
    with ExitStack() as stack:
        page = open_tab(language, "/settings" if model else "/")
        if model:
            connect(page, stack.enter_context(ChatServer(rules)), language)
        for number, (route, text, outcome) in enumerate(TYPED[language], 1):
            say(page, text, number)
            expect(page.locator("[class*='st-key-route-']").last).to_contain_text(label(f"way_{route}", language))
            if not model or route not in (
                "statistics",
                "calculate",
                "date",
            ):  # which tools a model calls is its own choice
                expect(page.get_by_test_id("stMain")).to_contain_text(re.compile(outcome))
        if model:  # last, since the choice also applies to the next similar message
            page.locator("[class*='st-key-route-'] button:visible").last.click()
            expect(page.locator("[class*='st-key-actions-']")).to_have_count(len(TYPED[language]) + 1)
            wait_until_idle(page)
            asked = page.locator("[class*='st-key-question-']").filter(has_text=TYPED[language][-1][1])
            expect(asked).to_have_count(2)
            expect(page.locator("[class*='st-key-route-']")).to_have_count(len(TYPED[language]))
