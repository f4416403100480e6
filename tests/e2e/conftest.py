"""The served app, driven by a real browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from rag.locales import Language, label
from rag.types import RunMode

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-smooth-scrolling",  # scrolling takes effect immediately
]
LOCALES = {"en": "en-US", "zh": "zh-CN"}

HASHED = "tests.support.hashed_model"
"""A module that serves the app like `streamlit`, but without weights, which take seconds to load."""

OpenTab = Callable[..., Page]

# Generous, since a machine that runs the whole suite at once is slow.
expect.set_options(timeout=60_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            # A click on an element that is being redrawn is lost; a user clicks again, and so does the test.
            item.add_marker(pytest.mark.flaky(reruns=1))


def browser_path() -> str:
    """Return the path of Debian's Chromium, headless-shell if installed; skip the test without one.

    Full Chromium takes twice the processor time even when headless, since it also renders its own pages.
    """
    path = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        pytest.skip("no browser: install Debian's chromium-headless-shell, or name a Chromium in CHROMIUM")
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield an open browser."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield a browser for these tests only: while it is open, its event loop blocks tests that run their own."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def idle_tabs(browser: Browser) -> dict[str, list[Page]]:
    """Return blank tabs by language. Reloading the app in one takes a quarter of a new tab's processor time."""
    return {language: [] for language in LOCALES}


@pytest.fixture(scope="session")
def app_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder to which the served app writes `data` and `log`."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def address(app_folder: Path) -> Iterator[str]:
    """Serve the app with an empty data folder and no settings; yield its address."""
    browser_path()
    with serve(app_folder, "streamlit") as opened:
        yield opened


@contextmanager
def serve(folder: Path, program: str = HASHED, **settings: str) -> Iterator[str]:
    """Serve the app in a separate process with only these settings; yield its address."""
    with serve_with_process(folder, program, **settings) as (address, _):
        yield address


@contextmanager
def serve_with_process(
    folder: Path, program: str = HASHED, **settings: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve the app like `serve`; yield its address and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    unset = dict.fromkeys(("QDRANT_URL", "EMBEDDING_MODEL", "LLM_MODEL", "LLM_BASE_URL", "RAG_LIBRARY"), "")
    places = {"RAG_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **unset, **settings, **places}
    command = [sys.executable, "-m", program, "run", str(ROOT / "main.py"), "--server.port", str(port)]
    with (folder / "log").open("wb") as log:
        # Not in the project's folder, so that a developer's .env is not read.
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}", process, folder / "log")
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait(60)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the app did not start:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def open_tab(browser: Browser, idle_tabs: dict[str, list[Page]], address: str) -> Iterator[OpenTab]:
    """Yield a function that opens a tab without cookies; the page's `requests` collects the URLs of its requests."""
    opened: list[tuple[str, Page]] = []

    def open_(language: str = "en", path: str = "/", width: int = 1280) -> Page:
        page = idle_tabs[language].pop() if idle_tabs[language] else _new_tab(browser, language)
        opened.append((language, page))
        page.set_viewport_size({"width": width, "height": 900})
        page.requests = []  # type: ignore[attr-defined]
        page.goto(address + path)
        return page

    yield open_
    for language, page in opened:
        if _clear(page):
            idle_tabs[language].append(page)


def _new_tab(browser: Browser, language: str) -> Page:
    page = browser.new_context(locale=LOCALES[language], color_scheme="light").new_page()
    page.set_default_timeout(60_000)
    page.on("request", lambda request: page.requests.append(request.url))  # type: ignore[attr-defined]
    return page


def _clear(page: Page) -> bool:
    """Make the tab as good as new; close it and return False if a test opened others from it or closed it."""
    if page.is_closed() or len(page.context.pages) > 1:
        page.context.close()
        return False
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.emulate_media(color_scheme="light")
    page.goto("about:blank")
    page.context.clear_cookies()
    return True


@pytest.fixture(scope="session")
def samples(address: str) -> None:
    """Load the sample pages as a new user does: with the button of the empty state."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_load_samples, address).result()


def _load_samples(address: str) -> None:
    """Load the sample pages; runs in a separate thread, since a browser may already be open in the caller's."""
    with chromium() as opened:
        page = opened.new_page(locale="en-US")
        page.set_default_timeout(120_000)
        page.goto(address)
        load = page.get_by_role("button", name="Load sample pages")
        load.or_(page.get_by_text("Try asking")).first.wait_for()
        if not load.is_visible():  # loaded by an earlier attempt, which a slow machine broke off
            return
        load.click()
        page.locator(".st-key-job-ask button").wait_for(timeout=300_000)
        assert page.get_by_text("Failed").count() == 0


def click_until(wanted: Locator, seen: Locator) -> None:
    """Click until `seen` is visible: clicks on an element that is being redrawn are lost."""
    for _ in range(5):
        wanted.click()
        with suppress(AssertionError):
            return expect(seen).to_be_visible(timeout=10_000)
    return expect(seen).to_be_visible()


def open_expander(details: Locator, seen: Locator) -> None:
    """Open an expander, again if it was being redrawn."""
    for _ in range(5):
        if details.get_attribute("open") is None:
            details.locator("summary").first.click()
        with suppress(AssertionError):
            return expect(seen).to_be_visible(timeout=10_000)
    return expect(seen).to_be_visible()


def wait_until_idle(page: Page) -> None:
    """Wait until the page's script has finished."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def fits(page: Page) -> bool:
    """Return whether the page does not overflow horizontally."""
    wide = "[...document.querySelectorAll('html, [data-testid=stMain]')].map(e => e.scrollWidth - e.clientWidth)"
    return max(page.evaluate(wide)) <= 0


def send(page: Page, question: str) -> None:
    """Type a question and send it."""
    box = page.get_by_test_id("stChatInputTextArea")
    box.wait_for()
    wait_until_idle(page)
    box.fill(question)
    box.press("Enter")


def ask(page: Page, question: str) -> None:
    """Send a question, and wait for its sources."""
    send(page, question)
    page.locator("[class*='st-key-source-']").first.wait_for()


def choose_mode(page: Page, mode: RunMode, language: Language = "en") -> None:
    """Choose a mode in the menu next to the box."""
    page.locator(".st-key-mode-menu button").click()
    name = page.get_by_text(label(f"mode_{mode}", language), exact=True)
    page.get_by_role("menuitem").filter(has=name).first.click()
    expect(page.locator(".st-key-mode-menu button")).to_contain_text(label(f"mode_{mode}", language))
    wait_until_idle(page)
