"""Judge mode in a browser: the tree is shown, opened, continued with another verdict, and kept after a reload."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, choose_mode, open_expander, send, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.support.chat_server import ChatServer
from tests.support.judge_model import JudgeModel

pytestmark = pytest.mark.usefixtures("samples")

STORY: dict[Language, tuple[str, str, str, str, str]] = {
    "en": (
        "Which version of the app waits longer after a failed attempt, and when was it published?",
        "4.2.1",
        "When was version 4.2.1 of the Skiff app published?",
        "18 November 2025",
        "Version 4.2.1 waits longer. [1] It was published on 18 November 2025. [2]",
    ),
    "zh": (
        "去古城墙夜市应该坐地铁到哪一站，2 号线的末班车几点经过那里？",
        "临江门站",
        "2 号线的末班车几点经过临江门站？",
        "23:42",
        "坐到临江门站。[1]末班车 23:42 经过。[2]",
    ),
}  # fmt: skip


def story(language: Language) -> JudgeModel:
    """Return a model that asks one follow-up question and finds the answer there."""
    whole, first, missing, last, answer = STORY[language]

    def judged(question: str, _: str, text: str) -> Any:
        wanted, score = (first, 1) if question == whole else (last, 2)
        found = re.search(rf"[^\n|。]*?{re.escape(wanted)}", text)
        return (score, missing if score == 1 else "", found[0].strip()) if found else (0, "", "")

    return JudgeModel(judge=judged, answer=answer)


def ask_judge(page: Page, question: str, language: Language) -> None:
    choose_mode(page, "judge", language)
    send(page, question)
    page.locator("[class*='st-key-actions-']").first.wait_for()
    wait_until_idle(page)


def open_summary(page: Page, key: str, seen: str) -> None:
    """Open the first expander with this key once the page has settled."""
    wait_until_idle(page)
    open_expander(page.locator(f"[class*='st-key-{key}-'] details").first, page.locator(seen).first)
    wait_until_idle(page)


def open_box(page: Page, number: int, width: int) -> None:
    """Click the middle of a box in the picture that is shown at this width."""
    kind = "wide" if width > 640 else "narrow"
    area = page.locator(f".tree-picture.{kind} area[href$='-{number}']").first
    left, top, right, bottom = map(int, str(area.get_attribute("coords")).split(","))
    place: Any = {"x": (left + right) // 2, "y": (top + bottom) // 2}
    inside = page.locator(f"[class*='st-key-in-node-'][class*='-{number}']")
    for _ in range(5):
        page.locator(f".tree-picture.{kind} img").first.click(position=place)
        with suppress(AssertionError):
            expect(inside).to_be_visible(timeout=10_000)
            break
    expect(inside).to_be_visible()
    wait_until_idle(page)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_verdict_is_overruled_and_both_trees_stay(open_tab: OpenTab) -> None:
    language: Language = "zh"
    width = 390
    whole, first, missing, last, _ = STORY[language]
    with ChatServer(story(language)) as server:
        page = open_tab(language, "/settings", width=1280)
        connect(page, server, language)
        page.set_viewport_size({"width": width, "height": 900})
        ask_judge(page, whole, language)
        expect(page.locator("[class*='st-key-answer-']").first).to_contain_text(last)
        open_summary(page, "how", ".tree-picture img:visible")
        assert page.locator("a[href*='tree-'], iframe, .tree-picture script").count() == 0
        open_box(page, 1, width)
        inside = page.locator("[class*='st-key-in-node-']").first
        expect(inside).to_contain_text(missing)
        expect(inside).to_contain_text(first)
        open_summary(page, "state", "[data-testid=stJson]")
        expect(page.get_by_test_id("stJson")).to_contain_text("verdicts")
        assert fits(page)

        open_summary(page, "go", "[class*='st-key-tree-text-']")
        verdicts = page.locator("[class*='st-key-tree-score-']")
        almost, beside = (f"{score} · {label(f'tree_score_{score}', language)}" for score in (1, 0))
        for place in range(verdicts.count()):
            if almost in verdicts.nth(place).inner_html():
                box = verdicts.nth(place).get_by_role("combobox")
                box.scroll_into_view_if_needed()
                page.wait_for_timeout(300)  # scrolling closes the menu
                box.click()
                page.get_by_role("option", name=beside).click()
                expect(page.get_by_role("option")).to_have_count(0)
        page.get_by_role("button", name=label("tree_go_on_do", language)).click()
        gone = page.locator(".stMarkdownBadge").filter(has_text=label("outcome_not_in_pages", language))
        expect(gone).to_be_visible()

    page.reload()
    expect(gone).to_be_visible()
    expect(page.locator("[class*='st-key-answer-']").first).to_contain_text(last)
    expect(page.get_by_text(beside)).to_be_visible()
    expect(page.get_by_text(label("tree_earlier", language))).to_be_visible()
    open_summary(page, "beside", "[class*='st-key-beside-open-'] img >> nth=1")
    expect(page.locator("[class*='st-key-beside-open-'] img")).to_have_count(2)
    expect(page.locator("[class*='st-key-beside-open-']")).to_contain_text(last)
    assert fits(page)


def test_without_a_model_a_question_is_asked_in_other_words(open_tab: OpenTab) -> None:
    page = open_tab("en")
    ask_judge(page, STORY["en"][0], "en")
    open_summary(page, "how", ".tree-picture img:visible")
    open_box(page, 1, 1280)
    expect(page.locator("[class*='st-key-in-node-']").first).to_contain_text(label("tree_by_rules", "en"))
    open_summary(page, "go", "[class*='st-key-tree-text-']")
    box = page.get_by_label(label("tree_question", "en"), exact=True)
    box.fill("Which version was published on 18 November?")
    box.press("Enter")
    expect(page.get_by_text(label("tree_asked_anew", "en"))).to_be_visible()
    expect(page.locator("[class*='st-key-answer-']").last).to_contain_text(STORY["en"][3])
