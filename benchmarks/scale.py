"""Scaling of a library on one machine to a million chunks, as a table and a chart.

    python -m benchmarks.scale [--sizes 10000,30000,100000,300000,1000000] [--folder FOLDER] [--json]

One library grows to each size, and its index is built; then a new process, whose memory is measured alone, opens it,
searches, looks up 10 000 addresses, and commits pages. Pages are written in batches between the sizes; the commit rate
is that of single pages with precomputed vectors, at the size reached. Texts and vectors are synthetic
(`benchmarks.synthetic`). Writes scale.md, scale.json and scale.svg into benchmarks/out; with the default sizes also the
table into docs/performance.md and the chart into docs/images. On 2 cores it takes 2 minutes to 100 000 chunks and a
quarter of an hour to a million, with 12 GB of memory and 15 GB of disk while the largest index is built.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.dedupe import known_seconds
from benchmarks.drawing import curves
from benchmarks.searching import WARM_UP, searches_of, time_searches
from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, MODEL, World, fill
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.edge.translation import disk_use
from rag.store.qdrant.library import open_library

SIZES = "10000,30000,100000,300000,1000000"
QUESTIONS, COMMITS, ADDRESSES = 100, 50, 10_000
PAGE, IMAGE = report.ROOT / "docs" / "performance.md", report.ROOT / "docs" / "images" / "scale.svg"
COMMAND = "make bench-scale"
COLUMNS = {
    "chunks": "chunks",
    "fill_chunks_s": "batches, chunks/s",
    "commit_chunks_s": "commit, chunks/s",
    "index_s": "index build, s",
    "open_s": "open, s",
    "first_ms": "first search, ms",
    "mmr_found_p95_ms": "hybrid, filter, MMR: p95, ms",
    "rerank_p95_ms": "default search with answerability: p95, ms",
    "dedupe_s": "dedupe of 10 000, s",
    "memory_mb": "memory, MB",
    "heap_mb": "not file-backed, MB",
    "disk_mb": "disk, MB",
}


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    if options.serve:
        print(json.dumps(_serve(options.folder, options.serve)))
        return
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder:
        rows = _grow(Path(folder), sorted(int(size) for size in options.sizes.split(",")))
    facts = {**machine.describe(), "limits": f"{QUESTIONS} questions and {COMMITS} commits at each size"}
    report_rows(rows, facts, publish=options.sizes == SIZES)
    if options.json:
        print(json.dumps({"rows": rows}))


def report_rows(rows: Sequence[Mapping[str, Any]], known: Mapping[str, str], *, publish: bool) -> None:
    """Print a table with a row per figure and a column per size; save and, with `publish`, publish it and the chart."""
    figures = {key: name for key, name in COLUMNS.items() if key != "chunks"}
    head = ["", *(f"{row['chunks']:,}" for row in rows)]
    markdown = report.table(head, [[name, *(f"{row[key]:,}" for row in rows)] for key, name in figures.items()])
    report.save("scale", known, rows, markdown)
    drawing = curves(rows, "chunks", figures)
    (report.OUT / "scale.svg").write_text(drawing, "utf-8")
    if publish:
        IMAGE.write_text(drawing, "utf-8")
        report.publish(PAGE, COMMAND, known, markdown)
    print(markdown)


def _grow(folder: Path, sizes: list[int]) -> list[dict[str, Any]]:
    rows = []
    reached = 0
    for size in sizes:
        print(f"{size} chunks ...", file=sys.stderr, flush=True)
        pages = size // CHUNKS_A_PAGE
        fill_figures = _write(folder / "qdrant", reached, pages)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", "--folder", str(folder / "qdrant")]
        process = subprocess.run([*command, "--serve", str(pages)], cwd=report.ROOT, stdout=subprocess.PIPE, check=True)
        rows.append({"chunks": size, **fill_figures, **json.loads(process.stdout.splitlines()[-1])})
        reached = pages
    return rows


def _write(folder: Path, first: int, last: int) -> dict[str, float]:
    """Fill the library and build its index."""
    client = EdgeClient(folder)
    library = open_library(client, "main", MODEL, DIMENSION)
    builder = client.backend.builder(library.chunks_collection)
    builder.pause()
    began = time.perf_counter()
    fill(library, World(), first, last)
    fill_end = time.perf_counter()
    builder.build()
    build_end = time.perf_counter()
    client.close()
    rate = (last - first) * CHUNKS_A_PAGE / (fill_end - began)
    return {"fill_chunks_s": round(rate), "index_s": round(build_end - fill_end, 1)}


def _serve(folder: Path, pages: int) -> dict[str, float]:
    """Measure in a separate process that serves the library."""
    world = World()
    questions = [world.question(number, pages) for number in range(WARM_UP + QUESTIONS)]
    began = time.perf_counter()
    client = EdgeClient(folder)
    library = open_library(client, "main", MODEL, DIMENSION)
    opened = time.perf_counter()
    client.backend.builder(library.chunks_collection).pause()
    ways = searches_of(library, questions)
    first = time_searches(ways, questions[:1], warm_up=0)["mmr"]["p50"]
    timings = time_searches(ways, questions)
    dedupe, _ = known_seconds(library, ADDRESSES, pages)
    memory, heap = _memory()
    disk = sum(disk_use(path) for path in folder.iterdir() if path.is_dir())
    # Existing pages are rewritten in full, and the library keeps its size.
    drafts = [world.page(number) for number in range(0, pages, max(1, pages // COMMITS))][:COMMITS]
    started = time.perf_counter()
    for draft in drafts:
        draft.commit(library)
    rate = len(drafts) * CHUNKS_A_PAGE / (time.perf_counter() - started)
    client.close()
    return {
        "open_s": round(opened - began, 2),
        "first_ms": first,
        **{f"{name}_{part}_ms": value for name, parts in timings.items() for part, value in parts.items()},
        "dedupe_s": round(dedupe, 2),
        "memory_mb": memory,
        "heap_mb": heap,
        "disk_mb": round(disk / 2**20),
        "commit_chunks_s": round(rate),
    }


def _memory() -> tuple[int, int]:
    """Return the process's resident megabytes, and those of them that no file backs."""
    status = Path("/proc/self/status").read_text("utf-8")
    values = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if "Rss" in line or "VmRSS" in line}
    return int(values["VmRSS"]) // 1024, int(values["RssAnon"]) // 1024


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES, metavar="N,N")
    parser.add_argument("--folder", type=Path, help="folder for the library (default: the system's temporary folder)")
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
