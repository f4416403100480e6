import re

import pytest
from playwright.sync_api import expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, ask, fits, open_expander
from tests.e2e.test_main_job import QUESTIONS

pytestmark = pytest.mark.usefixtures("samples")


def test_an_answer_explains_its_passages_on_a_narrow_screen(open_tab: OpenTab) -> None:
    language: Language = "zh"
    page = open_tab(language)
    ask(page, QUESTIONS[language][0])
    tab = page.get_by_role("tab", name=label("why_title", language))
    open_expander(page.locator("[class*='st-key-how-'] details"), tab)
    tab.click()
    tables = page.locator("[class*='st-key-candidates-'] table")
    expect(tables).to_have_count(2)
    first = tables.first.locator("tbody tr").first
    expect(first).to_contain_text("1")
    expect(first).to_contain_text(re.compile(r"\d+\.\d"))
    expect(page.get_by_text(label("candidate_cited", language, marks="[1]"))).to_be_visible()
    expect(page.locator("[class*='st-key-candidates-']")).to_contain_text(re.compile(r"\d+ (?:ms|毫秒)"))
    page.set_viewport_size({"width": 390, "height": 900})
    row = page.locator("[class*='st-key-candidates-'] tbody tr").first
    expect(row.locator("em").first).to_be_visible()
    assert fits(page)
    box = row.bounding_box()
    assert box is not None
    assert box["width"] <= 390


def test_a_search_needs_no_answer(open_tab: OpenTab) -> None:
    language: Language = "zh"
    page = open_tab(language, "/search")
    box = page.get_by_test_id("stMain")
    box.get_by_role("searchbox").or_(box.get_by_role("textbox")).first.fill(QUESTIONS[language][0])
    page.keyboard.press("Enter")
    cards = page.locator("[class*='st-key-source-found']")
    expect(cards.first.locator(".stMarkdownColoredBackground").first).to_be_visible()
    expect(cards.first).to_contain_text(QUESTIONS[language][1])
    page.get_by_role("tab", name=label("why_title", language)).click()
    expect(page.locator("[class*='st-key-candidates-'] table").first).to_be_visible()
    page.reload()
    expect(cards.first).to_contain_text(QUESTIONS[language][1])


def test_a_filter_confines_the_answer_and_can_be_taken_away(open_tab: OpenTab) -> None:
    page = open_tab("en")
    page.locator(".st-key-filters button").first.click()
    page.locator(".st-key-filter-languages input").click()
    page.get_by_role("option", name=label("language_zh", "en"), exact=True).click()
    chip = page.locator(".st-key-chip-0")
    expect(chip).to_contain_text(label("language_zh", "en"))
    expect(page.locator(".st-key-filter-sites")).to_be_visible()  # a choice does not close the menu
    page.keyboard.press("Escape")
    page.locator("h1").click()
    ask(page, "What is the capital of Mongolia?")
    expect(page.get_by_role("button", name=label("missing_unfilter", "en"))).to_be_visible()
    chip.get_by_role("button").click()
    expect(chip).to_have_count(0)


def test_a_question_without_an_answer_shows_the_way_on(open_tab: OpenTab) -> None:
    page = open_tab("en")
    ask(page, "What is the capital of Mongolia?")
    expect(page.get_by_text(label("nearest", "en"))).to_be_visible()
    page.get_by_role("button", name=label("missing_see", "en")).click()
    expect(page.locator("[class*='st-key-source-found']").first).to_be_visible()
