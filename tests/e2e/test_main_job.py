import re

import pytest
from playwright.sync_api import expect

from rag.locales import label
from tests.e2e.conftest import OpenTab, ask

pytestmark = pytest.mark.usefixtures("samples")

QUESTIONS = {
    "en": ("How long does a deleted file stay in the bilge?", "30 days"),
    "zh": ("异地机房与主机房的距离至少是多少？", "公里"),
}


def test_a_citation_leads_to_the_quoted_sentence_of_the_page(open_tab: OpenTab) -> None:
    question, answer = QUESTIONS["en"]
    page = open_tab("en")
    ask(page, question)
    expect(page.locator("[class*='st-key-answer-']")).to_contain_text(answer)
    expect(page.locator(".stMarkdownBadge").filter(has_text=label("outcome_quoted", "en"))).to_be_visible()
    expect(page.get_by_text(label("chat_extractive", "en"))).to_be_visible()
    page.get_by_text(re.compile(r"\d steps? · ")).click()
    steps = page.locator("[class*='st-key-steps-']")
    expect(steps).to_contain_text(label("node_retrieve", "en"))
    expect(steps).to_contain_text(re.compile(r"\d+ ms|\d\.\d s"))

    page.locator("[class*='st-key-answer-'] a[href^='#source-']").first.click()
    panel = page.get_by_role("dialog", name=label("sources", "en"))
    expect(panel.locator(".stMarkdownColoredBackground")).to_contain_text(answer)
    link = panel.get_by_role("link").first
    assert (link.get_attribute("href") or "").startswith("https://")
    assert link.get_attribute("target") == "_blank"

    page.reload()
    expect(page.locator("[class*='st-key-question-']")).to_contain_text(question)
    expect(page.locator("[class*='st-key-answer-']")).to_contain_text(answer)
