"""Throughput of bulk imports with one process, several, and Ray, and their result after kills.

    python -m benchmarks.bulk [--pages 5000] [--batch 250] [--workers 2] [--runs here,processes,ray,killed]

Each run executes the command with the built-in model and a separate library on the tests' Qdrant stand-in; the input
is a JSONL file with a page per paragraph of xquad-en. "killed" uses Ray: the command is killed after its second batch,
and an actor in the run that resumes it. Exits with 1 if addresses, titles or passages differ between libraries.
Seconds include the start of the processes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks import machine, report
from benchmarks.datasets import DEFAULT_FOLDER, load
from benchmarks.samples import find_sets
from rag.app import App
from rag.config import load_settings
from tests.support.import_process import kill_named
from tests.support.qdrant_server import QdrantServer

_ACTOR = "ray::MapWorker"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[list[str]] = []
    digests: set[str] = set()
    with tempfile.TemporaryDirectory() as place, QdrantServer(Path(place) / "server") as server:
        dump = _write_dump(Path(place) / "dump.jsonl", options.pages)
        for name in options.runs.split(","):
            run = BulkRun(Path(place) / name, server.url, dump, options.batch, options.workers)
            seconds = run.run_killed() if name == "killed" else run.run_undisturbed(name)
            digest, pages = run.contents()
            digests.add(digest)
            rows.append([name, str(pages), f"{seconds:.0f}", f"{pages / seconds:.1f}", digest])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    table = report.table("run|pages|seconds|pages per second|library".split("|"), rows)
    print(table)
    report.save("bulk", machine.describe(()), [], table)
    return int(len(digests) != 1)


class BulkRun:
    """One import into a separate library."""

    def __init__(self, folder: Path, url: str, dump: Path, batch: int, workers: int) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "rag", "--data-dir", str(folder), "--library", folder.name]
        self._command += ["bulk", "--input", str(dump), "--batch", str(batch), "--workers", str(workers)]
        self._environment = {**os.environ, "QDRANT_URL": url, "LLM_MODEL": "", "LLM_BASE_URL": ""}

    def run_undisturbed(self, runner: str) -> float:
        """Return the seconds of an undisturbed import."""
        began = time.perf_counter()
        process = self._begin(runner)
        process.communicate()
        assert process.returncode == 0, process.returncode
        return time.perf_counter() - began

    def run_killed(self) -> float:
        """Return the seconds of an import by Ray whose driver and one of whose actors are killed."""
        began = time.perf_counter()
        self._act_after_batches(self._begin("ray"), 2, lambda process: process.send_signal(signal.SIGKILL))
        process = self._begin("ray")
        self._act_after_batches(process, 1, lambda process: print("killed", kill_named(_ACTOR), file=sys.stderr))
        assert process.returncode == 0, process.returncode
        return time.perf_counter() - began

    def contents(self) -> tuple[str, int]:
        """Return a digest of the library's contents, and its number of pages."""
        url = self._environment["QDRANT_URL"]
        overrides = {"qdrant_url": url, "rag_library": self._folder.name, "llm_model": "", "llm_base_url": ""}
        with closing(App(load_settings(None, rag_data_dir=self._folder, **overrides))) as app:
            library = app.library(self._folder.name)
            pages = sorted(library.pages(), key=lambda page: page.url)
            contents = [(page.url, page.title, [one.text for one in library.chunks(page.url_hash)]) for page in pages]
        return hashlib.sha256(repr(contents).encode()).hexdigest()[:12], len(pages)

    def _begin(self, runner: str) -> subprocess.Popen[str]:
        command = [*self._command, "--runner", runner]
        errors = subprocess.DEVNULL if runner == "ray" else None
        return subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, stderr=errors, text=True)

    def _act_after_batches(
        self, process: subprocess.Popen[str], count: int, act: Callable[[subprocess.Popen[str]], object]
    ) -> None:
        """Call `act` once the process has printed `count` batches, then wait for it to exit."""
        assert process.stdout is not None
        for number, _ in enumerate(process.stdout, 1):
            if number == count:
                act(process)
        process.wait()


def _write_dump(path: Path, pages: int) -> Path:
    (folder,) = find_sets(DEFAULT_FOLDER, ["xquad-en"])
    paragraphs = [part for page in load(folder).pages for part in page["text"].split("\n") if len(part) > 200]
    chance = random.Random(5)
    with path.open("w", encoding="utf-8") as file:
        for number in range(pages):
            text = f"Page number {number}.\n\n{chance.choice(paragraphs)}"
            url = f"https://dump.example/{number}"
            file.write(json.dumps({"url": url, "title": f"Page {number}", "text": text}) + "\n")
    return path


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", default="here,processes,ray,killed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
