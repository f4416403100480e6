"""Importing pages and managing them in the library; all from files, so that nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import FilePayload, Page, expect

from rag.locales import Language, label
from tests.e2e.conftest import OpenTab, fits, wait_until_idle
from tests.support.lighthouse import CHINESE, ENGLISH

LOGIN = (
    "<html lang='en'><title>Sign in</title><body><main><h1>Sign in to continue</h1><form method='post'>"
    "<input name='user'><input type='password' name='word'><button>Log in</button></form>"
    "<p>Forgot your password? Create an account to read on.</p></main></body></html>"
)


def file(name: str, text: str) -> FilePayload:
    kind = "text/html" if name.endswith(".html") else "text/markdown"
    return {"name": name, "mimeType": kind, "buffer": text.encode()}


def add(page: Page, language: str, *files: FilePayload) -> None:
    """Upload files on the Add pages page, and wait for the end of the import."""
    page.get_by_role("tab", name=label("add_tab_files", language)).click()  # type: ignore[arg-type]
    uploader = page.locator("[class*='st-key-files-'] input[type=file]")
    wait_until_idle(page)
    uploader.set_input_files(list(files))
    page.locator(".st-key-add-files button").click()
    page.locator(".st-key-job-ask button").wait_for(timeout=120_000)


def in_library(open_tab: OpenTab, language: str, name: str, width: int = 1280) -> Page:
    """Return the Add pages page of a new library, which is created with the button, as no address creates one."""
    maker = open_tab(language, "/library")
    wait_until_idle(maker)
    maker.get_by_role("button", name=label("library_new", language)).click()  # type: ignore[arg-type]
    maker.get_by_label(label("library_new_name", language), exact=True).last.fill(name)  # type: ignore[arg-type]
    maker.get_by_role("button", name=label("library_create", language), exact=True).click()  # type: ignore[arg-type]
    maker.wait_for_url(f"**/library?library={name}")
    return open_tab(language, f"/add?library={name}", width)


def test_pages_in_review_and_duplicates_can_be_added(open_tab: OpenTab) -> None:
    language: Language = "zh"
    page = in_library(open_tab, language, f"gate-{uuid4().hex[:4]}", 390)  # a rerun needs another
    add(page, language, file("lamps.md", CHINESE), file("copy.md", CHINESE), file("login.html", LOGIN))
    held = page.locator("[class*='st-key-job-row-']").filter(has=page.locator("[class*='st-key-decide-add_anyway-']"))
    expect(held).to_contain_text(label("status_held", language))
    held.get_by_text(label("decide_preview", language)).click()
    expect(held).to_contain_text("Forgot your password?")
    assert fits(page)
    held.get_by_role("button", name=label("decide_add_anyway", language)).click()
    job = page.locator(".st-key-job")
    expect(job).to_contain_text("添加 2 ·")
    page.locator("[class*='st-key-decide-keep_both-'] button").click()
    expect(job).to_contain_text("添加 3")
    page.reload()
    expect(job).to_contain_text("添加 3")


def test_a_page_is_opened_from_the_list_and_shows_what_changed(open_tab: OpenTab) -> None:
    page = in_library(open_tab, "en", f"versions-{uuid4().hex[:4]}")  # a rerun needs another
    add(page, "en", file("lamps.md", ENGLISH))
    page.locator(".st-key-job-close button").click()
    expect(page.locator(".st-key-job-close")).to_have_count(0)
    add(page, "en", file("lamps.md", ENGLISH.replace("four hours", "six hours")))
    page.locator(".st-key-job-library button").click()
    table = page.get_by_test_id("stDataFrame")
    table.wait_for()
    page.wait_for_timeout(1000)
    box = table.bounding_box()
    assert box
    page.mouse.click(box["x"] + 160, box["y"] + 35 * 1.5)
    page.locator(".st-key-page-detail").wait_for()
    expect(page).to_have_url(re.compile("page="))
    page.get_by_role("radio", name=label("page_chunks", "en")).click()
    expect(page.locator(".page-html .chunk-mark").first).to_contain_text("1 characters 0–")
    page.get_by_role("radio", name=label("page_versions", "en")).click()
    expect(page.locator(".page-html del")).to_have_text(re.compile("four"))
    struck = page.locator(".page-html del").evaluate("e => getComputedStyle(e).textDecorationLine")
    assert struck == "line-through"
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(500)
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("[data-testid=stSidebarNavLink][aria-current]").click()  # Library, from one of its pages
    table.wait_for()
    expect(page).not_to_have_url(re.compile("page="))


def test_a_library_is_downloaded_and_becomes_another(open_tab: OpenTab, tmp_path: Path) -> None:
    page = in_library(open_tab, "en", "here")
    add(page, "en", file("lamps.md", ENGLISH))
    page.locator(".st-key-job-library button").click()
    page.get_by_role("button", name=label("exchange", "en")).click()
    page.get_by_role("button", name=label("export_go", "en")).click()
    page.locator(".st-key-export-download button").wait_for()
    page.wait_for_timeout(1500)  # until it is no longer redrawn
    with page.expect_download() as started:
        page.locator(".st-key-export-download button").click()
    kept = tmp_path / started.value.suggested_filename
    started.value.save_as(kept)
    assert kept.name == "here.pagelight"
    page.get_by_role("button", name=label("exchange", "en")).click()
    page.locator("[class*='st-key-import-file-'] input[type=file]").set_input_files(kept)
    name = page.locator("[class*='st-key-import-name-'] input")
    name.fill("there")
    name.press("Enter")
    page.get_by_text("here.pagelight").wait_for()
    page.wait_for_timeout(1500)  # until the server has the file and the name
    page.locator(".st-key-import-go button").click()
    page.locator(".st-key-import-open button").click()
    page.wait_for_url(re.compile("library=there"))
    expect(page.get_by_text("1 page · 3 passages")).to_be_visible()
