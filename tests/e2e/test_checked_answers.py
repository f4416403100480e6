"""The citation check as a user sees it: a line above the answer, labels at doubtful statements, links to sentences."""

import pytest
from playwright.sync_api import expect

from rag.locales import label
from tests.e2e.conftest import OpenTab, ask
from tests.e2e.test_hostile_answers import connect
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_server import ChatServer, rules

QUESTION = "How long does a deleted file stay in the bilge?"


def careless(request: Request) -> Reply:
    """A model that adds an unsupported statement to each answer."""
    reply = rules(request)
    if reply.tool_calls or request.body.get("response_format"):
        return reply
    return Reply(f"{reply.text}\n\nPenguins guard the bilge at night. [1]")


@pytest.mark.usefixtures("samples")
def test_a_doubtful_statement_is_told_from_a_supported_one(open_tab: OpenTab) -> None:
    with ChatServer(careless) as server:
        page = open_tab("en", "/settings", width=1280)
        connect(page, server)
        ask(page, QUESTION)
        expect(page.get_by_text(label("found", "en", supported=1, count=2))).to_be_visible()
        doubt = page.locator("[class*='st-key-answer-'] a[href$='-partly']")
        expect(doubt).to_have_text(label("doubt_partly", "en"))
        assert doubt.get_attribute("title") == label("doubt_words_tip", "en")
        assert doubt.evaluate("link => getComputedStyle(link).borderStyle") == "dotted"
        page.locator("[class*='st-key-answer-'] a[href^='#source-'][href$='-1']").first.click()
        live = page.get_by_role("link", name=label("source_live", "en"))
        assert ":~:text=" in (live.first.get_attribute("href") or "")
        page.keyboard.press("Escape")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            expect(doubt).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
