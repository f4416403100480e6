"""Time from starting the app to a usable page, and to open a library.

    python -m benchmarks.startup [--runs N] [--chunks N] [--imports N] [--json]

Each run starts the app as `make run` does after installation, over a library of the sample pages, with a browser
already open. Rows are seconds from the start of the process to the end of each phase: first HTTP response, skeleton
(the browser's first paint), Streamlit's frame, a page that accepts typing, models loaded; `cpu` has the server's
processor seconds until then. --chunks also opens a synthetic library of that many chunks, each time in a new process;
--imports lists the N packages that take longest to import before the first page. The browser is the Chromium in
CHROMIUM or on the path, driven by Playwright.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.serving import ROOT, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_BOX = '[data-testid="stChatInputTextArea"]'
_FRAME = '[data-testid="stApp"]'
_FIRST_PAINT = "performance.getEntriesByName('first-paint')[0]?.startTime ?? 0"
PHASES = ("http", "skeleton", "frame", "page", "models")
_IMPORTS = "import main; from rag.ui.serving.startup import preload_app; preload_app()"
_IMPORT = re.compile(r"import time:\s+(?P<own>\d+) \|\s+\d+ \|\s+(?P<package>\w+)")
_READY = ".st-key-sidebar-foot :text('ready')"
_OPEN = """
import sys, time
from rag.app import App
from rag.config import load_settings
settings = load_settings(None, rag_data_dir=sys.argv[1], qdrant_url="", embedding_model="builtin")
began = time.perf_counter()
app = App(settings)
count = app.library("main").chunk_count()
print(time.perf_counter() - began, count)
app.close()
"""

BROWSERS = ("chromium", "google-chrome", "chromium-headless-shell")


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if problem := missing_requirement():
        print(problem, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        load_samples(Path(folder))
        with chromium() as browser:
            rows = [_start(browser, Path(folder)) for _ in range(options.runs)]
    result: dict[str, Any] = {"runs": options.runs}
    for name in rows[0]:
        values = [row[name] for row in rows]
        result[name] = round(statistics.median(values), 2)
        result[f"{name}_spread"] = [round(min(values), 2), round(max(values), 2)]
    if options.chunks:
        result |= {"chunks": options.chunks, "opened_s": opening_seconds(options.chunks, options.runs)}
    if options.imports:
        result["imports_s"] = import_seconds(options.imports)
    print(json.dumps(result) if options.json else _table(result))
    return 0


def missing_requirement() -> str:
    """Return what to do if Playwright is missing, which the app itself does not need; empty if it is installed."""
    if importlib.util.find_spec("playwright") is not None:
        return ""
    return "This benchmark needs Playwright, which is not installed. Run: make install-dev"


def load_samples(data: Path) -> None:
    """Create a library of the sample pages in the data folder."""
    pages = [str(path) for path in sorted((ROOT / "examples").glob("*.html"))]
    command = [sys.executable, "-W", "ignore", "-m", "rag", "--data-dir", str(data), "ingest", "--anyway", *pages]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield an open browser. Raises FileNotFoundError if there is none."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise FileNotFoundError("no browser: install Chromium, or name one in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def _start(browser: Browser, data: Path) -> dict[str, float]:
    """Return the seconds to the end of each phase, and the server's processor seconds by then."""
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    row: dict[str, float] = {}
    try:
        with serving(data) as served:

            def note(phase: str) -> None:
                row[f"{phase}_s"] = time.perf_counter() - served.started_at
                row[f"{phase}_cpu"] = served.cpu_seconds()

            served.wait()
            note("http")
            requested = time.perf_counter() - served.started_at
            page.goto(served.address, wait_until="commit")
            page.locator(_FRAME).wait_for()
            note("frame")
            page.locator(_BOX).wait_for()
            note("page")
            row["first_paint_s"] = page.evaluate(_FIRST_PAINT) / 1000  # since the request
            row["skeleton_s"] = requested + row["first_paint_s"]
            page.locator(_READY).first.wait_for()
            note("models")
    finally:
        context.close()
    return row


def import_seconds(count: int) -> dict[str, float]:
    """Return the import seconds of the slowest packages before the first page, by `python -X importtime`."""
    command = [sys.executable, "-W", "ignore", "-X", "importtime", "-c", _IMPORTS]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stderr.splitlines()
    packages: Counter[str] = Counter()
    for line in lines:
        if row := _IMPORT.match(line):
            packages[row["package"]] += int(row["own"])
    return {package: round(microseconds / 1e6, 3) for package, microseconds in packages.most_common(count)}


def _table(result: dict[str, Any]) -> str:
    lines = [f"{'phase':<10}{'seconds':>9}{'min to max':>16}{'server cpu':>12}"]
    for phase in PHASES:
        low, high = result[f"{phase}_s_spread"]
        cpu = result.get(f"{phase}_cpu")
        lines.append(
            f"{phase:<10}{result[f'{phase}_s']:>9.2f}{f'{low:.2f} to {high:.2f}':>16}{'' if cpu is None else cpu:>12}"
        )
    lines.append(f"request to first paint, the skeleton: {result['first_paint_s']} s")
    if "opened_s" in result:
        lines.append(f"opening {result['chunks']} chunks: {result['opened_s']} s")
    lines += [f"import {package}: {seconds} s" for package, seconds in result.get("imports_s", {}).items()]
    return "\n".join(lines)


def opening_seconds(chunks: int, runs: int) -> float:
    """Return median seconds to open the app with a synthetic library of `chunks` chunks, each time in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        make_library(Path(folder), chunks)
        command = [sys.executable, "-W", "ignore", "-c", _OPEN, folder]
        tries = [subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True) for _ in range(runs)]
    rows = [one.stdout.split() for one in tries]
    if any(int(count) < chunks for _, count in rows):
        raise RuntimeError("the library lacks chunks that were written to it")
    return round(statistics.median(float(seconds) for seconds, _ in rows), 3)


def make_library(data: Path, chunks: int) -> None:
    """Fill the main library of the data folder with `chunks` synthetic chunks, as if by the built-in model."""
    from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, World, fill
    from rag.config import load_settings
    from rag.models.model_files import BUILTIN
    from rag.store.qdrant.client import connect
    from rag.store.qdrant.library import open_library

    with closing(connect(load_settings(None, rag_data_dir=str(data), qdrant_url=""))) as client:
        fill(open_library(client, "main", BUILTIN, DIMENSION), World(), 0, -(-chunks // CHUNKS_A_PAGE))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    parser.add_argument("--chunks", type=int, default=0, metavar="N")
    parser.add_argument("--imports", type=int, default=0, metavar="N", help="list the N slowest packages to import")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
