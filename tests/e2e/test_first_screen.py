"""The first screen, its keys, and the texts that replace Streamlit's own."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, wait_until_idle


@pytest.mark.usefixtures("samples")
def test_keys_lead_to_the_box_the_search_and_their_list(open_tab: OpenTab) -> None:
    page = open_tab("zh")
    wait_until_idle(page)
    expect(page.locator("#skeleton")).to_be_hidden()
    page.locator("h1").first.click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text(label("keys", "zh").split("\n")[0])
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    box = page.get_by_test_id("stChatInputTextArea")
    expect(box).to_be_focused()
    page.keyboard.type("a/b?")
    expect(box).to_have_value("a/b?")
    page.keyboard.press("Control+k")
    expect(page.locator(".st-key-search-text input")).to_be_focused()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_unknown_address_is_told_in_the_language_of_the_page(open_tab: OpenTab, language: Language) -> None:
    page = open_tab(language, "/nowhere")
    expect(page.locator("#notice")).to_have_text(label("page_unknown", language))
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_language_is_remembered_once_it_is_switched(open_tab: OpenTab) -> None:
    page = open_tab("en", "/?lang=zh")
    html, home = page.locator("html"), page.url.partition("?")[0]
    expect(html).to_have_attribute("lang", "zh-CN")
    page.goto(home)
    expect(html).to_have_attribute("lang", "en")
    page.locator(".st-key-sidebar-language").get_by_text("中文").click()
    expect(html).to_have_attribute("lang", "zh-CN")
    for address in (f"{home}search", f"{home}search?lang=zh"):
        page.goto(address)
        expect(html).to_have_attribute("lang", "zh-CN")
        wait_until_idle(page)
        expect(page).not_to_have_url(re.compile("lang"))
    page.goto(f"{home}?lang=en")
    expect(html).to_have_attribute("lang", "en")


def test_a_bookmark_carries_the_address_of_the_app_and_a_link_adds_nothing(open_tab: OpenTab) -> None:
    page = open_tab("en", "/?add=https%3A%2F%2Fexample.com%2Fa")
    pasted = page.locator("[class*='st-key-pasted-'] textarea")
    expect(pasted).to_have_value("https://example.com/a")
    expect(page.locator("[class*='st-key-history-']").filter(has_text="example.com")).to_have_count(0)
    page.get_by_text(label("bookmarklet", "en")).click()
    link = page.get_by_role("link", name=label("bookmarklet_name", "en"))
    link.hover()
    assert f"{page.url.partition('/add')[0]}/?add=" in (link.get_attribute("href") or "")
