"""The main job as an animated image: paste links, watch them being added, ask, and read the source of a sentence.

    PYTHONPATH=. .venv/bin/python scripts/film.py docs/images/main-job.webp [zh]

Needs Debian's Chromium, as the browser tests do; the pages come from a server on loopback.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Locator, Page

from rag.locales import Language, label
from tests.e2e.conftest import LOCALES, chromium, serve, wait_until_idle
from tests.support.page_server import PageServer

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
SIZE: Final = (1200, 760)
STORY: Final[dict[Language, tuple[tuple[str, ...], str]]] = {
    "en": (
        ("skiff-pricing", "skiff-handbook", "skiff-security", "skiff-release-notes"),
        "How long does a deleted file stay in the bilge?",
    ),
    "zh": (
        ("backup-standard-zh", "metro-fares-zh", "campus-library-zh", "tea-brewing-zh"),
        "异地机房与主机房的距离至少是多少？",
    ),
}
POINTER: Final = """([x, y]) => {
    const dot = document.createElement('div');
    dot.id = 'pointer';
    dot.style = `position: fixed; left: ${x - 14}px; top: ${y - 14}px; width: 28px; height: 28px; z-index: 2000000;
        border-radius: 50%; background: #f59e0b88; border: 2px solid #b45309; pointer-events: none`;
    document.body.append(dot);
}"""


class Recorder:
    """Screenshots of a tab, each with its milliseconds; an unchanged one extends the last."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pictures: list[tuple[bytes, int]] = []

    def wait(self, milliseconds: int) -> None:
        picture = self.page.screenshot()
        if self.pictures and self.pictures[-1][0] == picture:
            milliseconds += self.pictures.pop()[1]
        self.pictures.append((picture, milliseconds))

    def until(self, target: Locator, limit: int = 12) -> None:
        """Film until `target` appears, with up to `limit` screenshots; raises TimeoutError after a minute."""
        for attempt in range(120):
            if target.count():
                return wait_until_idle(self.page)
            if attempt < limit:
                self.wait(400)
            time.sleep(0.5)
        raise TimeoutError(f"{target} did not appear")

    def click(self, target: Locator) -> None:
        """Show a pointer on the target, then click it."""
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box is not None
        self.page.evaluate(POINTER, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        self.wait(700)
        self.page.evaluate("document.getElementById('pointer').remove()")
        target.click()

    def write(self, box: Locator, text: str, strokes: int) -> None:
        box.click()
        for stroke in range(1, strokes + 1):
            box.fill(text[: len(text) * stroke // strokes])
            self.wait(150)

    def save(self, path: Path) -> None:
        images = [Image.open(io.BytesIO(data)).convert("RGB") for data, _ in self.pictures]
        durations = [milliseconds for _, milliseconds in self.pictures]
        first, *rest = images
        first.save(
            path,
            save_all=True,
            append_images=rest,
            duration=durations,
            loop=0,
            quality=75,
            method=6,
            minimize_size=True,
        )


def play(film: Recorder, addresses: list[str], question: str, language: Language) -> None:
    page = film.page
    pasted = page.locator("[class*='st-key-pasted-'] textarea")
    pasted.wait_for()
    wait_until_idle(page)
    film.wait(1200)
    pasted.fill("\n".join(addresses))
    film.wait(1500)
    film.click(page.locator(".st-key-add-links button"))
    film.until(page.locator(".st-key-job-ask button"))
    film.wait(2500)
    film.click(page.locator(".st-key-job-ask button"))
    box = page.get_by_test_id("stChatInputTextArea")
    box.wait_for()
    wait_until_idle(page)
    film.wait(1200)
    film.write(box, question, 8)
    film.wait(500)
    box.press("Enter")
    film.until(page.locator("[class*='st-key-actions-']"))
    mark = page.locator("[class*='st-key-answer-'] a[href^='#source-']").first
    film.wait(2500)
    mark.hover()
    page.locator("#source-tip").wait_for()
    film.wait(2500)
    film.click(mark)
    page.locator(".st-key-source-panel").wait_for()
    wait_until_idle(page)
    page.mouse.move(5, 5)
    time.sleep(1)
    film.wait(3500)
    after = page.locator(".st-key-source-panel").get_by_role("button", name=label("source_after", language))
    if after.count() and after.is_enabled():
        film.click(after)
        wait_until_idle(page)
        page.mouse.move(5, 5)
        time.sleep(1)
        film.wait(4500)


def main(path: Path, language: Language) -> None:
    names, question = STORY[language]
    with PageServer() as pages, tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name in names:
            pages.add(f"/{name}", (EXAMPLES / f"{name}.html").read_bytes(), content_type="text/html")
        with serve(Path(folder), FETCH_ALLOW_PRIVATE_HOSTS=f"{pages.host}:{pages.port}") as address:
            width, height = SIZE
            page = browser.new_page(locale=LOCALES[language], viewport={"width": width, "height": height})
            page.set_default_timeout(60_000)
            page.goto(f"{address}/add")
            film = Recorder(page)
            play(film, [pages.url(f"/{name}") for name in names], question, language)
            film.save(path)
    duration = sum(milliseconds for _, milliseconds in film.pictures) / 1000
    sys.stdout.write(f"{path}: {len(film.pictures)} pictures, {duration:.0f} s, {path.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "zh" if "zh" in sys.argv[2:] else "en")
