"""What a person sees without looking for it: the source that a mark names, the newest answer, how to stop it."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenTab, ask
from tests.e2e.test_hostile_answers import connect
from tests.e2e.test_main_job import QUESTIONS
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_rules import quote_each
from tests.support.chat_server import ChatServer

pytestmark = pytest.mark.usefixtures("samples")

SIZES = ((1440, 900), (1280, 800), (1024, 768), (390, 844))
IN_SIGHT = """card => {
    const {top, bottom} = card.getBoundingClientRect();
    const box = document.querySelector('[data-testid=stBottom]').getBoundingClientRect();
    const head = document.querySelector('[data-testid=stHeader]').getBoundingClientRect();
    return top >= head.bottom && Math.min(bottom, top + 80) <= box.top;
}"""


def in_sight(page: Page, selector: str) -> None:
    """Wait until the beginning of it stands between the header and the question box."""
    page.wait_for_function(f"selector => ({IN_SIGHT})(document.querySelector(selector))", arg=selector)


def test_a_mark_brings_its_source_into_sight(open_tab: OpenTab) -> None:
    with ChatServer(quote_each) as server:
        page = open_tab("en", "/settings")
        connect(page, server)
        ask(page, QUESTIONS["en"][0])
        marks = page.locator("[class*='st-key-answer-'] a[href^='#source-']")
        expect(marks).to_have_count(3)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            for number in (1, 3):
                marks.nth(number - 1).click()
                in_sight(page, f"[class*='st-key-source-'][class*='-{number}']:has(.place:target)")


AT_ITS_END = """() => {
    const main = document.querySelector('[data-testid=stMain]');
    return main.scrollTop > 0 && main.scrollTop + main.clientHeight >= main.scrollHeight - 1;
}"""


def test_a_conversation_is_seen_where_it_is_now(open_tab: OpenTab) -> None:
    """At its end when it is opened, with Stop in sight while it is answered, and in a second tab without a click."""
    go_on = threading.Event()

    def held(request: Request) -> Reply:
        asked = QUESTIONS["zh"][0].rstrip("？")  # a follow-up goes on from there
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
