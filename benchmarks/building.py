"""Effect of an index build on the rest of the app: search latency, and stalls of other threads.

    python -m benchmarks.building [--chunks N] [--json]

A library of --chunks (default 100 000) synthetic chunks grows by a tenth, and its index is rebuilt as the app does
automatically. Meanwhile one thread searches, one commits pages, and one measures how late its timer fires: the stall
that a user would see. The baseline is the five seconds before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.searching import build_library, searches_of
from benchmarks.synthetic import CHUNKS_A_PAGE, World, fill
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library
from rag.store.values import Filters

QUESTIONS, WARM_UP = 200, 30
_BEFORE = 5.0  # seconds
_TICK, _BETWEEN_SEARCHES, _BETWEEN_COMMITS = 0.002, 0.02, 0.1


class Load:
    """Threads that put load on a library, and the seconds of each of their operations by kind."""

    def __init__(self, library: Library, world: World, pages: int) -> None:
        self._stop = threading.Event()
        self.seconds: dict[str, list[float]] = {"tick": [], "search": [], "commit": []}
        questions = [world.question(number, pages) for number in range(WARM_UP + QUESTIONS)]
        search = searches_of(library, questions)["mmr"]
        for question, _ in questions[:WARM_UP]:
            search(question, Filters())
        self._works: list[tuple[str, Callable[[int], object], float]] = [
            ("tick", lambda _: None, _TICK),
            ("search", lambda number: search(questions[number % len(questions)][0], Filters()), _BETWEEN_SEARCHES),
            ("commit", lambda number: world.page(pages + number).commit(library), _BETWEEN_COMMITS),
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._repeat, args=work) for work in self._works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _repeat(self, name: str, work: Callable[[int], object], pause: float) -> None:
        number = 0
        while not self._stop.is_set():
            began = time.perf_counter()
            if name == "tick":
                time.sleep(pause)
            work(number)
            self.seconds[name].append(time.perf_counter() - began)
            if name != "tick":
                time.sleep(pause)
            number += 1

    def pop_figures(self) -> dict[str, float]:
        """Return milliseconds since the last call: the longest stall, and p95 and maximum of a search."""
        seconds = {name: np.array(values) * 1000 for name, values in self.seconds.items()}
        for values in self.seconds.values():
            values.clear()
        return {
            "stall_ms": round(float(seconds["tick"].max()) - _TICK * 1000, 1),
            "search_p95_ms": round(float(np.percentile(seconds["search"], 95)), 1),
            "search_worst_ms": round(float(seconds["search"].max()), 1),
        }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="building-") as folder:
        print(json.dumps({"chunks": options.chunks, **_measure(options.chunks // CHUNKS_A_PAGE, Path(folder))}))
    return 0


def _measure(pages: int, folder: Path) -> dict[str, Any]:
    world = World()
    with closing(EdgeClient(folder)) as client:
        library = build_library(client, world, pages)
        total = pages + max(1, pages // 10)
        fill(library, world, pages, total)
        load = Load(library, world, total)
        with load.running():
            time.sleep(_BEFORE)
            before = load.pop_figures()
            began = time.perf_counter()
            client.backend.builder(library.chunks_collection).build()
            seconds = time.perf_counter() - began
            during = load.pop_figures()
    ratio = during["search_p95_ms"] / before["search_p95_ms"]
    return {"build_s": round(seconds, 1), "before": before, "during": during, "ratio_p95": round(ratio, 2)}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="one line of JSON (always printed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
