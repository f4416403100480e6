"""A conversation outlives its tab: reloaded during an answer, stopped, continued, opened elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rag.locales import label
from tests.e2e.conftest import OpenTab, ask, click_until, send, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.e2e.test_main_job import QUESTIONS
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_server import ChatServer, rules

pytestmark = pytest.mark.usefixtures("samples")

ANSWER = "[class*='st-key-answer-']"
TIMEOUT = 60_000  # milliseconds: a model may still be loading
COPY = """(text) => {
  const shown = document.body.appendChild(document.createElement("p")), clipboardData = new DataTransfer();
  shown.textContent = text;
  getSelection().selectAllChildren(shown);
  shown.dispatchEvent(new ClipboardEvent("copy", { clipboardData, bubbles: true }));
  return clipboardData.getData("text/plain");
}"""
"""Show a text, select it and copy it."""


def slow(request: Request) -> Reply:
    """A model that answers slowly."""
    reply = rules(request)
    if not request.stream:
        return reply
    return Reply(" ".join([reply.text] * 3), reply.tool_calls, pause=0.4)


def test_a_conversation_is_found_again_and_goes_on(open_tab: OpenTab, tmp_path: Path) -> None:
    question, answer = QUESTIONS["zh"]
    page = open_tab("zh")
    ask(page, question)
    other = open_tab("zh", "/?" + page.url.partition("/?")[2], width=390)
    expect(other.locator(ANSWER)).to_contain_text(answer, timeout=TIMEOUT)
    other.locator(".st-key-talk-menu button").first.click()
    with other.expect_download() as download:
        other.get_by_role("button", name="HTML").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    html = file.read_text(encoding="utf-8")
    assert answer in html and "skeleton" not in html
    assert file.suffix == ".html"


def test_a_copied_answer_has_its_sources(open_tab: OpenTab) -> None:
    question, answer = QUESTIONS["en"]
    page = open_tab("en")
    ask(page, question)
    page.evaluate("navigator.clipboard.writeText = async text => { window.copiedText = text; }")
    page.locator("a[href^='#copy-']").click()
    page.wait_for_function("window.copiedText")
    text, _, sources = page.evaluate("window.copiedText").partition(f"\n\n{label('export_sources', 'en')}\n")
    assert answer in text and "[1]" in text
    assert re.search(r"^\[1\].* https?://", sources)
    assert page.evaluate(COPY, "http:\u2060//example.org") == "http://example.org"


def test_on_a_phone_the_sidebar_closes_behind_a_choice(open_tab: OpenTab) -> None:
    page = open_tab("en", width=390)
    ask(page, QUESTIONS["en"][0])
    for chosen in (".st-key-talk-new", "[class*='st-key-talk-other-']"):
        wait_until_idle(page)
        page.get_by_test_id("stExpandSidebarButton").click()
        button = page.locator(f"{chosen} button").first
        click_until(button, page.get_by_test_id("stExpandSidebarButton"))
        expect(button).not_to_be_in_viewport()
    expect(page.locator(ANSWER)).to_be_visible(timeout=TIMEOUT)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.locator(".st-key-status button").click()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible(timeout=TIMEOUT)
    expect(page.get_by_role("heading", name=label("settings_title", "en"))).to_be_in_viewport()


def test_a_reload_during_an_answer_loses_nothing_and_a_stop_keeps_its_text(open_tab: OpenTab) -> None:
    with ChatServer(slow) as server:
        page = open_tab("en", "/settings")
        connect(page, server)
        page.get_by_role("link", name=label("nav_chat", "en")).click()
        unfinished = page.locator("[class*='st-key-source-line-']").filter(has_text=label("outcome_unfinished", "en"))
        send(page, QUESTIONS["en"][0])
        expect(page.locator(ANSWER)).to_be_visible(timeout=TIMEOUT)
        page.reload()
        expect(page.locator("[class*='st-key-question-']")).to_have_text(QUESTIONS["en"][0], timeout=TIMEOUT)
        page.locator("[class*='st-key-stop-'] button").click()
        expect(unfinished).to_be_visible(timeout=TIMEOUT)
        expect(page.locator(ANSWER)).to_be_visible(timeout=TIMEOUT)
        expect(page.locator(".stMarkdownBadge").filter(has_not_text=re.compile(r"^\d+$"))).to_have_count(0)
        page.reload()
        expect(unfinished).to_be_visible(timeout=TIMEOUT)
        expect(page.locator("[class*='st-key-again-'] button")).to_be_visible(timeout=TIMEOUT)
