"""From the Enter key to what a person sees of an answer, measured inside the browser.

    python -m benchmarks.screens [--runs N] [--json]

The app is served as `make run` serves it, over the sample pages and without a chat model, so that answers are quoted.
Each run asks one of the sample questions in a new conversation: milliseconds from the key to the question on the
screen, to the first text of the answer, and to the answer with its sources. Server and browser share the machine's
processors. The browser is the Chromium in CHROMIUM or on the path, driven by Playwright.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.serving import ROOT, serving
from benchmarks.startup import chromium, lacking, load_samples

if TYPE_CHECKING:
    from playwright.sync_api import Page

_BOX = '[data-testid="stChatInputTextArea"]'
_READY = ".st-key-sidebar-foot :text('ready')"
_IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
_SEEN = {"echo_ms": "question", "text_ms": "answer", "sources_ms": "source"}
# An observer is called once the page has changed and before it is painted: a frame is added by the second callback.
_WATCH = """seen => {
    const found = window.seenAfter = {}, at = {};
    let pressed = 0;
    addEventListener('keydown', event => { if (event.key === 'Enter' && !pressed) pressed = performance.now(); }, true);
    const look = () => {
        for (const [name, key] of Object.entries(seen)) {
            if (at[name] || !document.querySelector(`[class*="st-key-${key}-"]`)?.innerText.trim()) continue;
            at[name] = true;
            requestAnimationFrame(() => setTimeout(() => { found[name] = performance.now() - pressed; }));
        }
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
_ALL_SEEN = "count => Object.keys(window.seenAfter).length === count"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if told := lacking():
        print(told, file=sys.stderr)
        return 2
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows if row["lang"] == "en"]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        load_samples(Path(folder))
        with serving(Path(folder)) as served:
            served.wait()
            page = browser.new_page(locale="en-US", viewport={"width": 1280, "height": 900})
            page.set_default_timeout(60_000)
            asked = [_asked(page, served.address, questions[n % len(questions)]) for n in range(options.runs + 1)]
    print(json.dumps({"runs": options.runs, **_medians(asked[1:])}))  # the first one loads what is loaded late
    return 0


def _asked(page: Page, address: str, question: str) -> dict[str, float]:
    """Milliseconds from the key to each of `_SEEN`."""
    page.goto(address)
    page.locator(_READY).first.wait_for()
    page.locator(_BOX).wait_for()
    page.locator(_IDLE).wait_for()
    page.evaluate(_WATCH, _SEEN)
    page.locator(_BOX).fill(question)
    page.locator(_BOX).press("Enter")
    page.wait_for_function(_ALL_SEEN, arg=len(_SEEN))
    seen: dict[str, float] = page.evaluate("window.seenAfter")
    return seen


def _medians(rows: list[dict[str, float]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in _SEEN:
        values = [row[name] for row in rows]
        found[name] = round(statistics.median(values))
        found[f"{name}_spread"] = [round(min(values)), round(max(values))]
    return found


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, metavar="N")
    parser.add_argument("--json", action="store_true", help="as it is: one line of JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
