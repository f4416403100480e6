"""Nothing overlaps: pictures with any text in them, and the lines below steps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, expect

from rag.conversations.trees import nodes_of
from rag.locales import label
from rag.ui.chat.diagrams import NARROW, WIDE, TreeLayout, plan_diagram, tree_diagram
from tests.e2e.conftest import LOCALES, OpenTab, ask, click_until, open_expander, wait_until_idle
from tests.e2e.test_hostile_answers import connect
from tests.support.chat_server import ChatServer, rules
from tests.support.tree_rows import row

QUESTIONS = (
    "WWW MMM WHO WOULD WIN WITH MANY MORE MEN AND WOMEN?",
    "Why would Massachusetts mammoths swim?",
    "Ｗｈｏ 图书馆的闭馆时间是几点钟呢，逾期还书罚款是多少？",
    "Donaudampfschifffahrtsgesellschaftskapitänswitwe",
    "illicit little tilt, it is",
)

_APART = """svg => {
    const boxes = [...svg.querySelectorAll('rect')].map(box => box.getBoundingClientRect());
    const circles = [...svg.querySelectorAll('circle')].map(one => one.getBoundingClientRect());
    const bad = [];
    for (const text of svg.querySelectorAll('text')) {
        const at = text.getBoundingClientRect();
        if (text.textContent.length < 3) continue;
        const around = one => one.left <= at.left && at.left <= one.right && one.top <= at.top && at.top <= one.bottom;
        const box = boxes.find(around);
        if (box && at.right > box.right) bad.push(text.textContent);
        for (const one of circles)
            if (at.left < one.right && one.left < at.right && at.top < one.bottom && one.top < at.bottom)
                bad.push(text.textContent);
    }
    return bad;
}"""

# Resolves once the element has not moved for half a second: the browser loads widgets above it after the script's end.
_STILL = """element => new Promise(resolve => {
    let top = NaN, since = 0;
    const look = now => {
        if (element.getBoundingClientRect().top !== top) [top, since] = [element.getBoundingClientRect().top, now];
        if (now - since > 500) resolve(); else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_words_of_a_tree_stay_beside_its_signs(browser: Browser, layout: TreeLayout) -> None:
    drawn = [tree_diagram(nodes_of([row(1, question=text)]), "en", layout) for text in QUESTIONS]
    page = browser.new_page()
    page.set_content("".join(drawn))
    assert page.locator("svg").count() == len(QUESTIONS)
    assert page.locator("svg").evaluate_all(f"all => all.flatMap({_APART})") == []
    page.close()


def test_words_of_a_plan_stay_in_their_boxes(browser: Browser) -> None:
    steps = [
        {"id": f"s{at}", "sub_question": text, "status": "done", "needs": [], "by": "plan", "round": 1}
        for at, text in enumerate(QUESTIONS)
    ]
    page = browser.new_page()
    page.set_content(plan_diagram(QUESTIONS[0], steps, "en"))
    assert page.locator("svg").evaluate_all(f"all => all.flatMap({_APART})") == []
    page.close()


@pytest.mark.usefixtures("samples")
def test_what_the_model_was_given_is_read_line_by_line(open_tab: OpenTab) -> None:
    with ChatServer(rules) as server:
        page = open_tab("en", "/settings")
        connect(page, server)
        ask(page, "How long does a deleted file stay in the bilge?")
        steps = page.locator("[class*='st-key-steps-']")
        open_expander(page.locator("[class*='st-key-how-'] details").first, steps.first)
        prompts = steps.get_by_text(label("trace_prompts", "en", names="")[:8])
        model = steps.get_by_text("temperature")
        expect(model).to_be_visible()
        assert below(prompts, model) and below(steps.locator("p").first, prompts)


@pytest.mark.parametrize("language", LOCALES)
def test_the_hint_in_the_question_box_fits_a_phone(open_tab: OpenTab, language: str) -> None:
    box = open_tab(language, width=390).get_by_placeholder(label("chat_placeholder", language))
    expect(box).to_be_visible()
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_a_long_question_has_the_width_of_its_box(open_tab: OpenTab, width: int) -> None:
    page = open_tab("en", width=width)
    box, menus = page.get_by_test_id("stChatInputTextArea"), page.locator(".st-key-composer-menus")
    expect(menus).to_be_visible()
    assert not overlap(box, menus)
    box.fill("Why does the lamp turn? " * 12)
    outer = page.locator(".st-key-composer").bounding_box()
    assert outer is not None
    page.wait_for_function(f"box => box.clientWidth > {outer['width'] - 40}", arg=box.element_handle())
    assert not overlap(box, menus)


@pytest.mark.usefixtures("samples")
def test_selecting_a_page_does_not_move_the_table(open_tab: OpenTab) -> None:
    page = open_tab("en", "/library")
    table = page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    wait_until_idle(page)
    table.evaluate(_STILL)
    before = table.bounding_box()
    assert before is not None
    for line, count in ((1, "1 selected"), (2, "2 selected")):
        page.mouse.click(before["x"] + 18, before["y"] + 35 * (line + 0.5))
        expect(page.locator(".st-key-bulk")).to_contain_text(count)
    assert table.bounding_box() == before
    bar = page.locator(".st-key-bulk").bounding_box()
    assert bar is not None and bar["y"] + bar["height"] <= 900


@pytest.mark.usefixtures("samples")
def test_the_parts_of_a_row_are_level(open_tab: OpenTab) -> None:
    page = open_tab("en", width=1440)
    ask(page, "How long does a deleted file stay in the bilge?")
    actions = page.locator("[class*='st-key-actions-']")
    assert level(actions.get_by_text("Pin", exact=True).first, actions.get_by_text("Copy"), text=True)
    assert level(page.locator(".st-key-page-picker-toggle button"), page.locator(".st-key-talk-menu button"))
    page.locator("[class*='st-key-answer-'] a[href^='#source-']").first.click()
    moves = page.locator(".st-key-source-moves")
    assert level(moves.locator("p").first, moves.get_by_role("button", name="Next"))
    page.keyboard.press("Escape")
    filters = page.locator(".st-key-filter-choices")
    click_until(page.locator(".st-key-filters button"), filters.get_by_text("Added to"))
    outer, last = filters.bounding_box(), filters.locator("> :last-child").bounding_box()
    assert outer and last and 0 <= outer["y"] + outer["height"] - last["y"] - last["height"] < 16


def level(one: Locator, other: Locator, *, text: bool = False) -> bool:
    """Tell if the centres of two elements, or of their texts, are at the same height."""
    centre = """(element, text) => {
        const range = document.createRange();
        range.selectNodeContents(text ? element.lastChild : element);
        const box = (text ? range : element).getBoundingClientRect();
        return box.top + box.height / 2;
    }"""
    return bool(abs(one.evaluate(centre, text) - other.evaluate(centre, text)) < 0.6)


def overlap(one: Locator, other: Locator) -> bool:
    first, second = one.bounding_box(), other.bounding_box()
    assert first is not None and second is not None
    pairs = (("x", "width"), ("y", "height"))
    return all(first[at] < second[at] + second[size] and second[at] < first[at] + first[size] for at, size in pairs)  # type: ignore[literal-required]


def below(one: Locator, other: Locator) -> bool:
    first, second = one.bounding_box(), other.bounding_box()
    assert first is not None and second is not None
    return first["y"] + first["height"] <= second["y"] + 1
