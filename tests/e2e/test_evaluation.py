"""An evaluation end to end: upload a set, run it with two settings, compare, inspect the worst question, set limits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rag.locales import Language, label
from tests.e2e.conftest import ROOT, OpenTab, click_until, wait_until_idle


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Write the samples' questions as a set, in both languages."""
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))[::3]
    path = tmp_path / "samples.jsonl"
    flat = [{**row, "answers": [one for each in row["answers"] for one in each]} for row in rows]
    path.write_text("\n".join(json.dumps(row) for row in flat), encoding="utf-8")
    return path


def view(page: Page, name: str, seen: str, language: Language) -> None:
    button = page.get_by_test_id("stButtonGroup").get_by_text(label(f"evaluation_{name}", language), exact=True).first
    click_until(button, page.get_by_text(label(seen, language)).first)
    wait_until_idle(page)


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(("language", "width"), [("en", 1280)])
def test_a_set_is_run_under_two_settings_and_compared(
    open_tab: OpenTab, questions: Path, language: Language, width: int
) -> None:
    page = open_tab(language, "/evaluation", width=width)
    make = page.get_by_role("button", name=label("sets_make", language))
    page.get_by_text(label("sets_new", language)).wait_for()
    wait_until_idle(page)
    if not make.is_visible():
        page.get_by_text(label("sets_new", language)).click()
    page.locator(".st-key-set-name input").fill(f"samples {language}")
    page.locator("input[type=file]").set_input_files(questions)
    page.get_by_text(questions.name).wait_for()
    make.click()
    expect(page.locator(".st-key-evaluation-set input")).to_have_value(re.compile(f"samples {language}"))
    wait_until_idle(page)
    view(page, "runs", "run_classic", language)
    page.get_by_text(label("run_classic", language)).first.click()
    expect(page.get_by_text(label("run_count", language, questions=12, settings=2))).to_be_visible()
    page.get_by_role("button", name=label("run_begin", language), exact=True).click()
    mine = page.locator("[class*='st-key-run-']").filter(has_text=f"samples {language}")
    mine.filter(has_text=label("run_state_done", language)).first.wait_for(timeout=240_000)
    row = mine.filter(has_text=label("run_state_done", language)).first
    expect(row).to_contain_text(re.compile(f"{label('mode_fast', language)}: .*[01]\\.\\d{{3}} · .*\\d"))
    expect(row).to_contain_text(label("run_classic", language))
    view(page, "compare", "compare_by", language)
    page.get_by_text(label("compare_gate", language), exact=True).first.click()
    limits = page.get_by_label(label("compare_limits", language))
    limits.fill("failed:+0,calls:+0")
    limits.press("Enter")
    expect(page.get_by_text(label("gate_held", language)).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
