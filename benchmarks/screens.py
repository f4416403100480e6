"""Latencies of the UI, measured in the browser: the answer, its sources, another page.

    python -m benchmarks.screens [--runs N] [--json]

The app is served as `make run` serves it, over the sample pages and without a chat model, so that answers are quoted.
Each run asks one of the sample questions in a new conversation: milliseconds from the key press to the immediate echo
of the question, to the question as the app draws it, to the first text of the answer, and to the answer with its
sources; from a click on a citation to the source next to the answer; from a click in the navigation to the library's
list, and back to the conversation. Layout shifts that no key or click caused are summed up (Cumulative Layout Shift,
the largest session window). Before that, the bytes that a browser fetches on its first visit. Server and browser share
the machine's processors. The browser is the Chromium in CHROMIUM or on the path, driven by Playwright. For many users
at once see benchmarks.streaming.
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
from benchmarks.startup import chromium, load_samples, missing_requirement

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_BOX = '[data-testid="stChatInputTextArea"]'
_READY = ".st-key-sidebar-foot :text('ready')"
_IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
_STAGES = {
    "echo_ms": "[class*='st-key-question-']",
    "question_ms": "[class*='st-key-question-']:not(.asked-now)",
    "text_ms": "[class*='st-key-answer-']",
    "sources_ms": "[class*='st-key-source-']",
}
# An observer runs after the page changes and before it is painted: the second callback adds a frame.
_WATCH = """seen => {
    const found = window.seenAfter = {}, at = {};
    let pressed = 0;
    addEventListener('keydown', event => { if (event.key === 'Enter' && !pressed) pressed = performance.now(); }, true);
    const look = () => {
        for (const [name, selector] of Object.entries(seen)) {
            if (at[name] || !document.querySelector(selector)?.innerText.trim()) continue;
            at[name] = true;
            requestAnimationFrame(() => setTimeout(() => { found[name] = performance.now() - pressed; }));
        }
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
# Milliseconds until an element of this selector is painted.
_UNTIL = """selector => new Promise(resolve => {
    const begun = performance.now();
    const look = () => {
        if (!document.querySelector(selector)) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, {subtree: true, childList: true, attributes: true});
})"""
# https://web.dev/articles/cls: windows of shifts less than a second apart, up to five seconds long.
_SHIFTS = """() => {
    window.cls = 0;
    let window_ = 0, first = 0, last = 0;
    new PerformanceObserver(list => {
        for (const {startTime, value, hadRecentInput} of list.getEntries()) {
            if (hadRecentInput) continue;
            if (startTime - last > 1000 || startTime - first > 5000) { window_ = 0; first = startTime; }
            window_ += value;
            last = startTime;
            window.cls = Math.max(window.cls, window_);
        }
    }).observe({type: 'layout-shift', buffered: true});
}"""
_CLICKS = {
    "source_ms": ("[class*='st-key-answer-'] a[href^='#source-']", ".st-key-source-panel [id^='open-source-']"),
    "library_ms": ("[data-testid=stSidebarNavLink][href$='/library']", "[data-testid=stDataFrame]"),
    "chat_ms": ("[data-testid=stSidebarNavLink] >> nth=0", "[class*='st-key-actions-']"),
}
_ALL_STAGES_SEEN = "count => Object.keys(window.seenAfter).length === count"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if problem := missing_requirement():
        print(problem, file=sys.stderr)
        return 2
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows if row["lang"] == "en"]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        load_samples(Path(folder))
        with serving(Path(folder)) as served:
            served.wait()
            first = _first_load_bytes(browser, served.address)
            page = browser.new_page(locale="en-US", viewport={"width": 1280, "height": 900})
            page.set_default_timeout(60_000)
            timings = [_time_ask(page, served.address, questions[n % len(questions)]) for n in range(options.runs + 1)]
    # The first run includes lazy loading.
    print(json.dumps({"runs": options.runs, "first_load_bytes": first, **_medians(timings[1:])}))
    return 0


def _time_ask(page: Page, address: str, question: str) -> dict[str, float]:
    """Return milliseconds from the key to each of `_STAGES`, of each of `_CLICKS`, and the layout shifts meanwhile."""
    page.goto(address)
    page.locator(_READY).first.wait_for()
    page.locator(_BOX).wait_for()
    page.locator(_IDLE).wait_for()
    page.evaluate(_SHIFTS)
    page.evaluate(_WATCH, _STAGES)
    page.locator(_BOX).fill(question)
    page.locator(_BOX).press("Enter")
    page.wait_for_function(_ALL_STAGES_SEEN, arg=len(_STAGES))
    seen: dict[str, float] = page.evaluate("window.seenAfter")
    page.locator(_IDLE).wait_for()
    for name, (target, expected) in _CLICKS.items():
        seen[name] = _time_click(page, target, expected)
    return {**seen, "cls": page.evaluate("window.cls")}


def _time_click(page: Page, target: str, expected: str) -> float:
    """Return milliseconds from the click until `expected` is on the screen."""
    page.evaluate(f"selector => {{ window.shown = ({_UNTIL})(selector); }}", expected)
    page.locator(target).first.click()
    milliseconds: float = page.evaluate("window.shown")
    page.locator(_IDLE).wait_for()
    return milliseconds


def _first_load_bytes(browser: Browser, address: str) -> int:
    """Return bytes over the network until the app is ready, with an empty browser cache."""
    page = browser.new_page(locale="en-US")
    sizes: list[int] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    # CDP encodes a binary frame as base64: four characters for three bytes.
    network.on(
        "Network.webSocketFrameReceived", lambda event: sizes.append(len(event["response"]["payloadData"]) * 3 // 4)
    )
    page.goto(address)
    page.locator(_READY).first.wait_for(timeout=60_000)
    page.locator(_IDLE).wait_for()
    page.close()
    return sum(sizes)


def _medians(rows: list[dict[str, float]]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for name in (*_STAGES, *_CLICKS):
        values = [row[name] for row in rows]
        figures[name] = round(statistics.median(values))
        figures[f"{name}_spread"] = [round(min(values)), round(max(values))]
    figures["cls"] = round(max(row["cls"] for row in rows), 3)
    return figures


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, metavar="N")
    parser.add_argument("--json", action="store_true", help="one line of JSON (always printed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
