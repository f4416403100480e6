"""Research in a browser: the plan is shown and edited, carried out, and kept below the report."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, choose_mode, open_expander, send, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.support.chat_server import ChatServer, rules

QUESTION, MORE = "夜市什么时候开门，地铁票多少钱？", "校园图书馆几点闭馆？"


@pytest.mark.usefixtures("samples")
def test_the_plan_is_changed_carried_out_and_kept(open_tab: OpenTab) -> None:
    language: Language = "zh"
    with ChatServer(rules) as server:
        page = open_tab(language, "/settings", width=1280)
        connect(page, server, language)
        page.set_viewport_size({"width": 390, "height": 900})
        choose_mode(page, "research", language)
        wait_until_idle(page)
        page.get_by_role("button", name=label("options", language)).click()
        page.get_by_text(label("option_approve", language)).click()
        page.keyboard.press("Escape")
        send(page, QUESTION)
        begin = page.get_by_role("button", name=label("research_begin", language), exact=True)
        begin.wait_for()
        page.get_by_label(label("research_new_step", language)).fill(MORE)
        page.get_by_text(label("research_keep", language)).nth(1).click()
        begin.click()
        page.locator("[class*='st-key-source-']").first.wait_for()
        told = label("research_gaps", language)
        expect(page.get_by_text(told)).to_be_visible()
        plan = page.locator("[class*='st-key-plan-']")
        open_expander(page.locator("[class*='st-key-how-'] details").first, plan.locator("img"))
        expect(plan.get_by_text(label("research_status_skipped", language))).to_be_visible()
        expect(plan.get_by_text(label("research_by_person", language))).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
