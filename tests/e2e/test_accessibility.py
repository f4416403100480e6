"""Every view with assistive technology and on narrow screens: axe-core's rules, width, language, title, keyboard.

CI runs a slice in which every two of view, language, width and theme meet; all of them are run with

    EVERY_VIEW=1 .venv/bin/python -m pytest tests/e2e/test_accessibility.py
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Error, Page, expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, ask, click_until, fits, open_expander, wait_until_idle
from tests.e2e.test_main_job import QUESTIONS

pytestmark = pytest.mark.usefixtures("samples")

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
WIDTHS = (1440, 1024, 390)
TABS: tuple[Language, ...] = ("en", "zh")
THEMES = ("light", "dark")
STREAMLITS_OWN = {("region", 'role="menu"'): "Streamlit draws an open menu at the end of the document, in no landmark."}
"""Findings that only Streamlit could fix, by rule and a part of the element's markup, with the reason."""


def _chat(page: Page, language: Language) -> None:
    page.goto(page.url.partition("?")[0])
    page.locator(".st-key-examples button").first.wait_for()


def _answer(page: Page, language: Language) -> None:
    ask(page, QUESTIONS[language][0])
    page.locator("[class*='st-key-actions-']").first.wait_for()


def _why(page: Page, language: Language) -> None:
    tab = page.get_by_role("tab", name=label("why_title", language))
    open_expander(page.locator("[class*='st-key-how-'] details").last, tab)
    tab.click()
    page.locator("[class*='st-key-candidates-'] table").first.wait_for()


def _follow(name: str, seen: str) -> Callable[[Page, Language], None]:
    def go(page: Page, language: Language) -> None:
        page.goto(f"{page.url.rpartition('/')[0]}/{name}")
        page.locator(seen).first.wait_for()

    return go


def _page(page: Page, language: Language) -> None:
    """Open the first search result as its link would."""
    _follow("search?find=skiff", "[class*='st-key-source-found']")(page, language)
    wait_until_idle(page)
    page.get_by_role("link", name=label("source_in_page", language)).first.click()
    page.locator(".st-key-source-panel").wait_for()


VIEWS: dict[str, Callable[[Page, Language], None]] = {
    "hero": _chat,
    "answer": _answer,
    "why": _why,
    "search": _page,
    "add": _follow("add", "[data-testid=stTabs]"),
    "library": _follow("library", "[data-testid=stDataFrame]"),
    "map": _follow("library?view=map", ".page-map"),
    "evaluation": _follow("evaluation?view=compare", "[data-testid=stButtonGroup]"),
    "settings": _follow("settings", "[data-testid=stTabs]"),
}


def _opened(path: str, clicked: str, seen: str) -> Callable[[Page, Language], None]:
    def go(page: Page, language: Language) -> None:
        _follow(path, clicked)(page, language)
        wait_until_idle(page)
        click_until(page.locator(clicked).first, page.locator(seen).first)

    return go


def _found(page: Page, language: Language) -> None:
    """Open the library's detail of the page that a source links to."""
    _page(page, language)
    click_until(page.locator(".st-key-source-library button"), page.locator(".st-key-page-detail"))


def _tab(number: int) -> Callable[[Page, Language], None]:
    tab = f"[role=tab]:nth-of-type({number})"
    return _opened("settings", tab, f"{tab}[aria-selected=true]")


MORE: dict[str, Callable[[Page, Language], None]] = {
    "page": _found,
    "picker": _opened("", ".st-key-page-picker-toggle button", ".st-key-page-picker"),
    "filters": _opened("", ".st-key-filters button", ".st-key-filter-choices input"),
    "options": _opened("", ".st-key-options button", ".st-key-option-choices input"),
    "modes": _opened("", ".st-key-mode-menu button", "[role=menuitem]"),
    **{name: _follow(f"evaluation?view={name}", "[data-testid=stButtonGroup]") for name in ("sets", "runs", "judge")},
    "beside": _follow("evaluation?view=beside", "[data-testid=stForm]"),
    "memory": _tab(2),
    "prompts": _tab(3),
    "system": _tab(4),
}
"""Views that CI leaves to EVERY_VIEW: their parts also occur in the others."""

EVERY = bool(os.environ.get("EVERY_VIEW"))
SEEN = VIEWS | MORE if EVERY else VIEWS

IN_FLOW = "[data-testid=stBottom] { position: static !important; }"
"""Unpins the question box for axe, which would otherwise measure only the visible part of a button behind it."""


def violations(page: Page) -> list[str]:
    """Return axe-core's findings, retried for a while, since colours that are fading in give false ones."""
    for _ in range(6):
        if not (found := _violations(page)):
            break
        page.wait_for_timeout(500)
    return found


def _violations(page: Page) -> list[str]:
    """Return axe-core's current findings, except for Streamlit's own elements."""
    page.evaluate(AXE)
    page.add_style_tag(content=IN_FLOW)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found: list[dict[str, Any]] = page.evaluate("tags => axe.run(document, {runOnly: tags})", tags)["violations"]
    nodes = ((one["id"], node["html"], node["failureSummary"]) for one in found for node in one["nodes"])
    return [
        f"{rule}: {html[:300]}\n{why}"
        for rule, html, why in nodes
        if not any(rule == own and part in html for own, part in STREAMLITS_OWN)
    ]


def _look(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    wait_until_idle(page)


def looks(place: int, number: int) -> list[tuple[int, str]]:
    """Return the widths and themes in which to test view `number` in tab `place`."""
    if EVERY:
        return list(itertools.product(WIDTHS, THEMES))
    first, second, third = (WIDTHS[(number + more) % 3] for more in range(3))
    return [(third, THEMES[number % 2])] if place else [(first, "light"), (second, "dark")]


@pytest.mark.timeout(1800 if EVERY else 300)
@pytest.mark.parametrize("place", range(len(TABS)))
def test_axe_finds_nothing_and_every_view_fits_a_narrow_screen(open_tab: OpenTab, place: int) -> None:
    language = TABS[place]
    page = open_tab(language)
    problems: list[str] = []
    for number, (name, open_view) in enumerate(SEEN.items()):
        try:
            open_view(page, language)
        except Error as error:
            problems.append(f"{name} did not open: {error}")
            continue
        _look(page, min(WIDTHS))
        if not fits(page):
            problems.append(f"{name} is wider than a narrow screen")
        for width, theme in looks(place, number):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            _look(page, width)
            problems += [f"{name} at {width}, {theme}: {problem}" for problem in violations(page)]
    assert not problems, "\n\n".join(problems)


def test_every_two_of_view_language_width_and_theme_meet() -> None:
    rows = [
        (view, language, *look)
        for place, language in enumerate(TABS)
        for number, view in enumerate(VIEWS)
        for look in looks(place, number)
    ]
    values = [list(VIEWS), ["en", "zh"], list(WIDTHS), list(THEMES)]
    for one, other in itertools.combinations(range(4), 2):
        met = {(row[one], row[other]) for row in rows}
        assert met == set(itertools.product(values[one], values[other]))


def test_the_document_says_its_language_and_its_title_page_and_library(open_tab: OpenTab) -> None:
    page = open_tab("en", "/search")
    html = page.locator("html")
    expect(html).to_have_attribute("lang", "en")
    expect(page).to_have_title("Search · main · Pagelight")
    page.locator(".st-key-sidebar-language").get_by_text("中文").click()
    expect(html).to_have_attribute("lang", "zh-CN")
    expect(page).to_have_title("检索 · main · Pagelight")


IN_ANSWER = "() => Boolean(document.activeElement.closest('[class*=st-key-answer-], [class*=st-key-source-]'))"
COVERED = """() => {
    const box = document.querySelector('[data-testid=stBottom]'), focused = document.activeElement;
    if (box.contains(focused) || !document.querySelector('[data-testid=stMain]').contains(focused)) return false;
    return focused.getBoundingClientRect().bottom > box.getBoundingClientRect().top;
}"""


def test_keyboard_focus_reaches_an_answer_and_is_never_hidden(open_tab: OpenTab) -> None:
    page = open_tab("en")
    ask(page, QUESTIONS["en"][0])
    for width in (1440, 390):
        page.locator("[class*='st-key-actions-']").first.wait_for()
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        page.locator("[class*='st-key-actions-']").first.wait_for()
        wait_until_idle(page)
        _walk(page)


def _walk(page: Page) -> None:
    stops = 0
    while not (stops and page.evaluate(IN_ANSWER)):
        stops += 1
        assert stops <= 8
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid === 'stSkipToContent'"):
            page.keyboard.press("Enter")
    for _ in range(30):
        assert not page.evaluate(COVERED), page.evaluate("document.activeElement.outerHTML")
        page.keyboard.press("Tab")
