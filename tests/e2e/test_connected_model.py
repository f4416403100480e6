"""A chat model's life in a browser: rejected, connected, kept across a reload, lost during an answer, disconnected."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rag.locales import Language, label
from rag.ui.kit.browser import COOKIE
from tests.e2e.conftest import OpenTab, ask, choose_mode, click_until, wait_until_idle
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_server import ChatServer, rules

KEY = "sk-browsers-own-4711"
QUESTION = "How long does a deleted file stay in the bilge?"


def fill(page: Page, language: Language, address: str, model: str, key: str) -> None:
    page.get_by_label(label("chat_base_url", language)).fill(address)
    page.get_by_role("textbox", name=label("chat_model_name", language), exact=True).fill(model)
    page.get_by_label(label("chat_key", language), exact=True).fill(key)


def use(page: Page, language: Language) -> None:
    page.get_by_role("button", name=label("chat_use", language), exact=True).click()


def in_use(page: Page, language: Language) -> None:
    expect(page.get_by_text(label("chat_in_use", language, model="test"))).to_be_visible()


def show_system(page: Page) -> None:
    page.get_by_role("tab", name=label("settings_tab_system", "en")).click()


def test_what_is_wrong_is_said_and_what_is_right_is_used(open_tab: OpenTab) -> None:
    language: Language = "zh"
    with ChatServer(rules, key=KEY, models=["test"], listed_models=["other", "test"]) as server:
        page = open_tab(language, "/settings")
        alert = page.get_by_role("tabpanel").get_by_test_id("stAlert")
        fill(page, language, server.base_url, "test", "sk-wrong")
        use(page, language)
        expect(alert).to_contain_text("拒绝了密钥")
        fill(page, language, "http://127.0.0.1:9/v1", "test", KEY)
        use(page, language)
        expect(alert).to_contain_text("没有响应")
        fill(page, language, server.base_url, "none-such", KEY)
        use(page, language)
        expect(alert).to_contain_text("没有名为 none-such 的模型")
        chosen = page.get_by_role("option", name="test")
        click_until(page.get_by_label(label("chat_served", language, count=2)), chosen)
        chosen.click()
        expect(page.get_by_role("textbox", name=label("chat_model_name", language), exact=True)).to_have_value("test")
        use(page, language)
        in_use(page, language)
        assert KEY not in page.content() and KEY not in page.url


@pytest.mark.usefixtures("samples")
def test_it_stays_for_this_browser_until_it_is_let_go(open_tab: OpenTab, address: str) -> None:
    with ChatServer(rules, key=KEY) as server:
        page = open_tab("en", "/settings")
        fill(page, "en", server.base_url, "test", KEY)
        use(page, "en")
        in_use(page, "en")
        page.reload()
        in_use(page, "en")
        cookie = next(one for one in page.context.cookies() if one["name"] == COOKIE)
        assert cookie["httpOnly"] and KEY not in cookie["value"]
        page.goto(address)
        choose_mode(page, "deep")
        asked = len(server.requests)
        ask(page, QUESTION)
        assert len(server.requests) > asked
        answer = page.locator("[class*='st-key-answer-']")
        expect(answer).to_contain_text("30 days")
        expect(answer.locator("a[href^='#source-']").first).to_be_visible()
        assert all(KEY not in address for address in page.requests)  # type: ignore[attr-defined]
        other = open_tab("en", "/settings")
        show_system(other)
        expect(other.get_by_text(label("use_chat_none", "en"))).to_be_visible()
        page.goto(f"{address}/settings")
        page.get_by_role("button", name=label("chat_disconnect", "en")).click()
        show_system(page)
        expect(page.get_by_text(label("use_chat_none", "en"))).to_be_visible()
        page.reload()
        show_system(page)
        expect(page.get_by_text(label("use_chat_none", "en"))).to_be_visible()


@pytest.mark.usefixtures("samples")
def test_a_model_that_fails_during_an_answer_leaves_quotes_and_a_link_to_settings(
    open_tab: OpenTab, app_folder: Path
) -> None:
    def dying(request: Request) -> Reply:
        reply = rules(request)
        return Reply(reply.text, fault="cut") if request.body.get("stream") and reply.text else reply

    with ChatServer(dying, key=KEY) as server:
        page = open_tab("en", "/settings")
        fill(page, "en", server.base_url, "test", KEY)
        use(page, "en")
        in_use(page, "en")
        page.get_by_role("link", name=label("nav_chat", "en")).click()
        ask(page, QUESTION)
        expect(page.get_by_text("was lost during the answer")).to_be_visible()
        expect(page.locator("[class*='st-key-answer-']")).to_contain_text("bilge")
        assert page.locator("[class*='st-key-source-']").count() > 0
    wait_until_idle(page)
    page.get_by_role("button", name=label("chat_check", "en")).click()
    in_use(page, "en")
    files = [path for path in app_folder.rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY.encode() in path.read_bytes()]
