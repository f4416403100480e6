"""The address determines what a tab shows, however it got there: Back, Forward, a reload, a link."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from rag.locales import label
from tests.e2e.conftest import OpenTab, ask, wait_until_idle
from tests.e2e.test_main_job import QUESTIONS

pytestmark = pytest.mark.usefixtures("samples")

REPORT = ".st-key-job-ask button"


def visit(page: Page, name: str) -> None:
    """Visit a page through the navigation, as a user does."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=label(name, "en"), exact=True).click()  # type: ignore[arg-type]


def test_back_and_forward_keep_the_report_of_an_import(open_tab: OpenTab) -> None:
    page = open_tab("en", "/add")
    history = page.get_by_text(label("jobs_recent", "en"))
    history.wait_for()
    wait_until_idle(page)
    history.click()
    page.locator(".st-key-job-history button").first.click()
    report = page.locator(REPORT)
    expect(report).to_be_visible()
    expect(page).to_have_url(re.compile("job="))
    visit(page, "nav_library")
    page.get_by_test_id("stDataFrame").wait_for()
    page.go_back()
    expect(report).to_be_visible()
    page.go_back()
    expect(report).to_have_count(0)
    page.go_forward()
    expect(report).to_be_visible()
    page.reload()
    expect(report).to_be_visible()


def test_back_and_forward_lead_through_conversations_and_libraries(open_tab: OpenTab) -> None:
    page = open_tab("en", "/")
    page.locator(".st-key-examples button").first.wait_for()
    ask(page, QUESTIONS["en"][0])
    wait_until_idle(page)
    asked, hero = page.locator("[class*='st-key-question-']"), page.locator(".st-key-examples")
    page.get_by_role("button", name=label("talk_new", "en")).click()
    expect(hero).to_be_visible()
    visit(page, "nav_search")
    expect(page.locator("[class*='st-key-search-text']")).to_be_visible()
    page.go_back()
    expect(hero).to_be_visible()
    page.go_back()
    expect(asked).to_have_text(QUESTIONS["en"][0])
    page.go_back()
    expect(hero).to_be_visible()
    page.go_forward()
    expect(asked).to_have_text(QUESTIONS["en"][0])
    page.reload()
    expect(asked).to_have_text(QUESTIONS["en"][0])
