"""The main job by keyboard: paste an address, import it, ask, and open the source of a sentence."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import ROOT, serve, wait_until_idle
from tests.e2e.test_main_job import QUESTIONS
from tests.support.page_server import PageServer

QUESTION, ANSWER = QUESTIONS["en"]
STOPS = 40  # presses of the Tab key, more than any path needs


def go_to(page: Page, wanted: str, key: str = "Tab") -> None:
    """Press `key` until the focus is within `wanted`."""
    for _ in range(STOPS):
        page.keyboard.press(key)
        if page.evaluate("wanted => Boolean(document.activeElement.closest(wanted))", wanted):
            return
    raise AssertionError(f"{wanted} cannot be reached; {page.evaluate('document.activeElement.outerHTML')} has it")


def test_the_whole_way_from_an_address_to_a_source(browser: Browser, tmp_path: Path) -> None:
    with PageServer() as pages:
        handbook = (ROOT / "examples" / "skiff-handbook.html").read_bytes()
        pages.add("/handbook", handbook, content_type="text/html")
        with serve(tmp_path, FETCH_ALLOW_PRIVATE_HOSTS=f"{pages.host}:{pages.port}") as address:
            page = browser.new_page(locale="en-US", viewport={"width": 1280, "height": 900})
            page.set_default_timeout(60_000)
            page.goto(address)
            page.locator(".st-key-empty-add").wait_for()
            _play(page, pages.url("/handbook"))
            page.close()


def _play(page: Page, address: str) -> None:
    wait_until_idle(page)
    go_to(page, ".st-key-empty-add button")
    page.keyboard.press("Enter")
    page.locator("[class*='st-key-pasted-'] textarea").wait_for()
    wait_until_idle(page)
    go_to(page, "[class*='st-key-pasted-'] textarea")
    page.keyboard.type(address)
    go_to(page, ".st-key-add-links button")
    page.keyboard.press("Enter")
    page.locator(".st-key-job-ask button").wait_for()
    wait_until_idle(page)
    go_to(page, ".st-key-job-ask button")
    page.keyboard.press("Enter")
    page.get_by_test_id("stChatInputTextArea").wait_for()
    wait_until_idle(page)
    go_to(page, "[data-testid=stChatInputTextArea]", "Shift+Tab")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.locator("[class*='st-key-actions-']").wait_for()
    wait_until_idle(page)
    go_to(page, "[class*='st-key-answer-'] a[href$='-1']", "Shift+Tab")
    page.keyboard.press("Enter")
    panel = page.locator(".st-key-source-panel")
    expect(panel).to_be_focused()
    expect(panel.locator(".stMarkdownColoredBackground")).to_contain_text(ANSWER)
    expect(panel.get_by_role("link").first).to_have_attribute("href", re.compile("/handbook"))
