"""Speed beside what people would otherwise use: every figure is a ratio to a named peer of the same run.

    python -m benchmarks.bench [SET] [--data FOLDER] [--runs N] [--rounds N]

Runs `benchmarks.encoding` and `benchmarks.importing`, writes bench.md and bench.json into benchmarks/out,
and rewrites the table in docs/performance.md. Without the set it runs on the sample pages, and then
leaves docs/performance.md alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.samples import find_sets

PAGE = report.ROOT / "docs" / "performance.md"
COMMAND = "make bench"
HEAD = ("what", "beside", "its seconds", "our seconds", "ratio", "lowest to highest")
ENCODED = {"chunks": "encoding {chunks} chunks", "query": "encoding 20 questions, one by one"}
ENCODERS = {"stock": "FlagEmbedding's `encode`", "sentence-transformers": "sentence-transformers' `encode`"}
IMPORTED = {"stored": "import, models loaded to all stored", "command": "import, the whole command"}
TUTORIAL = "the pipeline that tutorials show"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folders = find_sets(options.data, [options.set]) or find_sets(options.data / "none", [])
    folder = folders[0]
    known = {**machine.describe(), "limits": f"{folder.name}; medians of {options.runs} imports each"}
    encoding = _measure("encoding", "--pages", str(folder / "pages.jsonl"), "--rounds", str(options.rounds), "--json")
    known["precision"] = f"ours in {encoding['precision']}, lowest cosine to stock vectors {encoding['cosine']}"
    rows = [*_encoding_rows(encoding), *_importing(folder, options.runs)]
    markdown = report.table(HEAD, [list(map(str, row.values())) for row in rows])
    report.save("bench", known, rows, markdown)
    print(markdown)
    if folder.name == options.set:
        report.publish(PAGE, COMMAND, known, markdown)
    else:
        print(f"{options.set} is not in {options.data}: measured on the sample pages", file=sys.stderr)
    return 0


def _encoding_rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _row(ENCODED[row["what"]].format(**found), ENCODERS[peer], row[peer], row["ours"], ratio, row["spread"][peer])
        for row in found["rows"]
        for peer, ratio in row["ratios"].items()
    ]


def _importing(folder: Path, runs: int) -> list[dict[str, Any]]:
    found = _measure("importing", folder.name, "--data", str(folder.parent), "--runs", str(runs))
    return [
        _row(what, TUTORIAL, found[f"tutorial_{part}_s"], found[f"ours_{part}_s"], found[f"ratio_{part}"])
        for part, what in IMPORTED.items()
    ]


def _row(what: str, peer: str, its: float, ours: float, ratio: float, spread: Any = None) -> dict[str, Any]:
    span = f"{spread[0]:.1f} to {spread[1]:.1f}" if spread else "–"
    return dict(zip(HEAD, (what, peer, its, ours, f"**{ratio:.1f}**", span), strict=True))


def _measure(name: str, *options: str) -> Mapping[str, Any]:
    """The last line that a benchmark prints, from a process of its own."""
    print(f"benchmarks.{name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{name}", *options]
    ran = subprocess.run(command, cwd=report.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: Mapping[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", default="xquad-en", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="imports of each (default 3)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of encoding (default 5)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
