import re

import pytest
from playwright.sync_api import expect

from rag.ui.kit.strings import label
from tests.e2e.conftest import OpenTab, ask
from tests.support.chat_server import ChatServer, rules

pytestmark = pytest.mark.usefixtures("samples")

QUESTIONS = {
    "en": ("How long does a deleted file stay in the bilge?", "30 days"),
    "zh": ("异地机房与主机房的距离至少是多少？", "公里"),
}
BOTH = pytest.mark.parametrize("language", ["en", "zh"])


@BOTH
def test_a_question_is_answered_with_the_very_sentence_of_a_page_that_a_mark_leads_to(
    open_tab: OpenTab, language: str
) -> None:
    question, answer = QUESTIONS[language]
    page = open_tab(language)
    ask(page, question)
    expect(page.locator("[class*='st-key-answer-']")).to_contain_text(answer)
    expect(page.locator(".stMarkdownBadge").filter(has_text=label("outcome_quoted", language))).to_be_visible()
    expect(page.get_by_text(label("chat_extractive", language))).to_be_visible()

    page.locator("[class*='st-key-answer-'] a[href^='#source-']").first.click()
    panel = page.get_by_role("dialog", name=label("sources", language))
    expect(panel.locator(".stMarkdownColoredBackground")).to_contain_text(answer)
    link = panel.get_by_role("link").first
    assert (link.get_attribute("href") or "").startswith("https://")
    assert link.get_attribute("target") == "_blank"


def test_the_steps_tell_what_they_did_and_a_reload_keeps_the_conversation(open_tab: OpenTab) -> None:
    page = open_tab("en")
    ask(page, QUESTIONS["en"][0])
    page.get_by_text(re.compile(r"\d steps? · ")).click()
    steps = page.locator("[class*='st-key-steps-']")
    expect(steps).to_contain_text(label("step_retrieve", "en"))
    expect(steps).to_contain_text(re.compile(r"\d+ ms|\d\.\d s"))
    page.reload()
    expect(page.locator("[class*='st-key-question-']")).to_contain_text(QUESTIONS["en"][0])
    expect(page.locator("[class*='st-key-answer-']")).to_contain_text("30 days")


def test_a_chat_model_of_this_session_writes_the_answer(open_tab: OpenTab) -> None:
    with ChatServer(rules, key="the-right-key") as server:
        page = open_tab("en", "/settings")
        page.get_by_label(label("chat_base_url", "en")).fill(server.base_url)
        page.get_by_label(label("chat_model_name", "en"), exact=True).fill("test")
        page.get_by_label(label("chat_key", "en"), exact=True).fill("the-right-key")
        page.get_by_role("button", name=label("chat_use", "en")).click()
        expect(page.get_by_text(label("chat_in_use", "en", model="test"))).to_be_visible()
        page.get_by_role("link", name=label("nav_chat", "en")).click()
        page.get_by_role("radio", name=label("mode_deep", "en")).click()
        ask(page, QUESTIONS["en"][0])
        expect(page.locator("[class*='st-key-answer-']")).to_contain_text("30 days")
        expect(page.locator("[class*='st-key-answer-'] a[href^='#source-']").first).to_be_visible()
        assert server.requests
        assert all("the-right-key" not in address for address in page.requests)  # type: ignore[attr-defined]
