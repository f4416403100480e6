"""A web search waits for the user's permission; a finished report is announced in tab and list."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, expect

from rag.locales import Language, label
from tests.e2e.conftest import LOCALES, choose_mode, send, serve
from tests.support.page_server import PageServer

QUESTION, ANSWER = "Who is the keeper of the Kalvik lantern?", "Ingrid Solheim"
PAGE = (
    "<html lang='en'><head><title>Kalvik</title></head><body><article>"
    "<p>Kalvik is a fishing village in the far north. Its harbour freezes in January.</p>"
    "<p>The keeper of the Kalvik lantern is Ingrid Solheim, who has lit it each evening since 1987.</p>"
    "</article></body></html>"
)


def test_the_person_lets_a_question_leave_and_is_told_of_the_report(browser: Browser, tmp_path: Path) -> None:
    language: Language = "en"
    with PageServer() as pages:
        url = pages.add("/kalvik", PAGE)
        pages.add(
            "/search", json.dumps({"results": [{"url": url, "title": "Kalvik"}]}), content_type="application/json"
        )
        allowed = f"{pages.host}:{pages.port}"
        service = {"SEARXNG_URL": pages.url("").rstrip("/"), "FETCH_ALLOW_PRIVATE_HOSTS": allowed}
        with serve(tmp_path, "streamlit", **service) as address:
            page = browser.new_context(locale=LOCALES[language], viewport={"width": 390, "height": 900}).new_page()
            page.set_default_timeout(60_000)
            page.goto(address)
            page.get_by_role("button", name=label("empty_samples", language)).click()
            page.locator(".st-key-job-ask button").click(timeout=300_000)
            choose_mode(page, "research", language)
            send(page, QUESTION)
            leave = page.get_by_role("button", name=label("research_leave_question", language), exact=True)
            leave.wait_for()
            assert not pages.count("/search")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            leave.click()
            page.locator("[class*='st-key-source-']").first.wait_for()
            expect(page.locator("[class*='st-key-answer-']").get_by_text(ANSWER).first).to_be_visible()
            assert pages.count("/search") == 1
            ready = label("report_ready", language)
            page.wait_for_function("word => document.title.includes(word)", arg=ready)
            choose_mode(page, "fast", language)
            page.wait_for_function("word => !document.title.includes(word)", arg=ready)
            page.context.close()
