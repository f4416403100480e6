"""What a person sees at once: the source that a mark names, at every size of window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenTab, ask
from tests.e2e.test_hostile_answers import connect
from tests.e2e.test_main_job import QUESTIONS
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
