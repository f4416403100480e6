"""What is visible without scrolling: the source of a citation, the newest answer, the Stop button."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import expect

from rag.locales import label
from tests.e2e.conftest import OpenTab, ask, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.e2e.test_main_job import QUESTIONS
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_rules import quote_each
from tests.support.chat_server import ChatServer

pytestmark = pytest.mark.usefixtures("samples")

SIZES = ((1440, 900), (1280, 800), (1024, 768), (390, 844))
# The marked sentence is within the panel, and its citation mark next to or above the panel, not behind it.
BESIDE = """mark => {
    const panel = document.querySelector('.st-key-source-panel').getBoundingClientRect();
    const quote = document.querySelector('.st-key-source-text .stMarkdownColoredBackground').getBoundingClientRect();
    const {top, right, bottom} = mark.getBoundingClientRect();
    const within = quote.top >= panel.top && quote.bottom <= panel.bottom;
    return within && top >= 0 && (right <= panel.left || bottom <= panel.top);
}"""


def test_a_question_can_be_asked_and_its_sources_read_by_keyboard(open_tab: OpenTab) -> None:
    page = open_tab("en")
    box = page.get_by_test_id("stChatInputTextArea")
    box.wait_for()
    wait_until_idle(page)
    while not page.evaluate("document.activeElement.dataset.testid === 'stChatInputTextArea'"):
        page.keyboard.press("Shift+Tab")
    page.keyboard.type("Where do deleted files go and for how long?")
    page.keyboard.press("Enter")
    page.locator("[class*='st-key-actions-']").wait_for()
    wait_until_idle(page)
    marks = page.locator("[class*='st-key-answer-'] a[href^='#source-']")
    panel = page.locator(".st-key-source-panel")
    while not page.evaluate("document.activeElement.matches('[class*=st-key-answer-] a[href$=\"-1\"]')"):
        page.keyboard.press("Shift+Tab")
    expect(page.locator("#source-tip")).to_contain_text("30 days")
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.keyboard.press("Enter")
        expect(panel).to_be_focused()
        page.wait_for_function(f"() => ({BESIDE})(document.querySelector('[class*=st-key-answer-] a'))")
        page.keyboard.press("Tab")
        expect(panel.get_by_role("button", name=label("source_after", "en"))).to_be_focused()
        page.keyboard.press("Enter")
        expect(marks.nth(1)).to_have_attribute("aria-current", "true")
        page.keyboard.press("Escape")
        expect(panel).to_have_count(0)
        expect(marks.first).to_be_focused()


AT_ITS_END = """() => {
    const main = document.querySelector('[data-testid=stMain]');
    return main.scrollTop > 0 && main.scrollTop + main.clientHeight >= main.scrollHeight - 1;
}"""


def test_a_conversation_is_seen_where_it_is_now(open_tab: OpenTab) -> None:
    """It opens at its end, shows Stop during an answer, and updates in a second tab without a click."""
    go_on = threading.Event()

    def held(request: Request) -> Reply:
        asked = QUESTIONS["zh"][0].rstrip("？")  # follow-ups continue from this question
        if request.stream and any(asked in str(one.get("content")) for one in request.messages):
            go_on.wait(60)
        return quote_each(request)

    with ChatServer(held) as server:
        page = open_tab("en", "/settings")
        connect(page, server)
        ask(page, QUESTIONS["en"][0])
        second = open_tab("en", "/?" + page.url.partition("?")[2].partition("#")[0], width=390)
        second.wait_for_function(AT_ITS_END)
        box = page.get_by_test_id("stChatInputTextArea")
        box.fill(QUESTIONS["zh"][0])
        box.press("Enter")
        asked = "[class*='st-key-question-']"
        expect(page.locator(asked).nth(1)).to_be_in_viewport()
        expect(second.locator(asked).nth(1)).to_have_text(QUESTIONS["zh"][0])
        stop = page.locator("[class*='st-key-stop-'] button")
        expect(stop).to_be_in_viewport()
        page.reload()
        expect(stop).to_be_in_viewport()
        expect(page.locator(asked).nth(1)).to_be_in_viewport()
        go_on.set()
        for tab in (page, second):
            expect(tab.locator("[class*='st-key-actions-']")).to_have_count(2)
            expect(stop).to_have_count(0)
