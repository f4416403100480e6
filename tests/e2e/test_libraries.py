"""A new library is selected in the tab, however quickly the user clicks on."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, wait_until_idle


@pytest.mark.parametrize(("language", "pause"), [("en", 0), ("zh", 60)])
def test_enter_and_a_click_make_one_library_and_open_it(open_tab: OpenTab, language: Language, pause: int) -> None:
    page = open_tab(language)
    wait_until_idle(page)
    page.get_by_role("button", name=label("library_new", language)).click()
    title = f"Ferries {language} {pause} {time.monotonic_ns()}"
    field = page.locator("[class*='st-key-library-name-'] input")
    field.fill(title)
    create = page.locator(".st-key-library-create button").bounding_box()
    assert create is not None
    field.press("Enter")
    page.wait_for_timeout(pause)
    page.mouse.click(create["x"] + 10, create["y"] + 10)  # where the button was, as a hasty user does
    expect(page).to_have_url(re.compile(f"library=ferries-{language}-{pause}"))
    page.wait_for_timeout(1500)
    wait_until_idle(page)
    chosen = page.get_by_role("combobox", name=label("library", language))
    expect(chosen).to_have_value(title)
    expect(page.get_by_role("alert")).to_have_count(0)
    chosen.click()
    expect(page.get_by_role("option", name=title)).to_have_count(1)
