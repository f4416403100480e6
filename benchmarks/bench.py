"""Speed compared with common alternatives, and with fixed limits.

    python -m benchmarks.bench [SET …] [--data FOLDER] [--runs N] [--rounds N] [--only NAME …]

Runs `benchmarks.encoding`, `benchmarks.importing` and those in figures.py one after the other, writes bench.md and
bench.json into benchmarks/out, and updates the tables in docs/performance.md, except with --only, which selects some
of them, and on the sample pages, which replace missing sets.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures, machine, report, startup
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.figures import FIGURES, Figures
from benchmarks.samples import find_sets

PAGE = report.ROOT / "docs" / "performance.md"
COMMAND = "make bench"
HEAD = ("what", "compared with", "peer seconds", "our seconds", "ratio", "lowest to highest")
ENCODED = {"chunks": "encoding {chunks} chunks", "query": "encoding 20 questions, one by one"}
ENCODERS = {
    "loaded": "ours with the loaded model's forward pass",
    "stock": "FlagEmbedding's `encode`",
    "sentence-transformers": "sentence-transformers' `encode`",
}
IMPORTED = {"stored": "import of {}, models loaded to all stored", "command": "import of {}, the whole command"}
TUTORIAL = "the pipeline of tutorials"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if _is_selected("startup", options) and (problem := startup.missing_requirement()):
        print(problem, file=sys.stderr)
        return 2
    folders = find_sets(options.data, options.sets) or find_sets(options.data / "none", [])
    names = [folder.name for folder in folders]
    facts = {**machine.describe(), "limits": f"{', '.join(names)}; medians of {options.runs} imports of {names[0]}"}
    ratios, bounds = _compare_with_peers(folders, options, facts)
    for one in FIGURES:
        if _is_selected(one.name, options):
            bounds += _rows_with_limits(one)
    markdown = "\n\n".join(
        [
            report.table(HEAD, [list(map(str, row.values())) for row in ratios]),
            report.table(figures.HEAD, map(figures.cells, bounds)),
        ]
    )
    rows = [*ratios, *(dict(zip((*figures.HEAD, "unit"), row, strict=True)) for row in bounds)]
    report.save("bench", facts, rows, markdown)
    print(markdown)
    if names == options.sets and not options.only:
        report.publish(PAGE, COMMAND, facts, markdown)
    elif not options.only:
        print(f"{' '.join(options.sets)} not all in {options.data}; measured {' '.join(names)}", file=sys.stderr)
    return 0


def _is_selected(name: str, options: argparse.Namespace) -> bool:
    return not options.only or name in options.only


def _compare_with_peers(
    folders: Sequence[Path], options: argparse.Namespace, facts: dict[str, str]
) -> tuple[list[dict[str, Any]], list[figures.Row]]:
    """Return ratios to peers, and import compared with encoding alone; add the precision to `facts`."""
    ratios: list[dict[str, Any]] = []
    bounds: list[figures.Row] = []
    if _is_selected("encoding", options):
        result = _measure("encoding", "--pages", f"{folders[0]}/pages.jsonl", "--rounds", str(options.rounds), "--json")
        facts["precision"] = f"ours in {result['precision']}, lowest cosine to stock vectors {result['cosine']}"
        ratios += _encoding_rows(result)
    for folder in folders if _is_selected("importing", options) else ():
        is_first = folder == folders[0]  # the peer takes a quarter of an hour for a large set
        runs = ["--runs", str(options.runs)] if is_first else ["--no-peer"]
        result = _measure("importing", folder.name, "--data", str(folder.parent), *runs)
        ratios += _importing_rows(result, folder.name) if is_first else []
        alone = f"import of {folder.name}, models loaded to all stored, compared with only encoding its chunks"
        bounds.append((alone, result["ratio_encoding"], 1.25, "times"))
    return ratios, bounds


def _rows_with_limits(one: Figures) -> list[figures.Row]:
    """Return the rows of one benchmark, or one row saying that it cannot run here (without a browser, say)."""
    try:
        return list(one.rows(_measure(one.name, *one.options, "--json")))
    except (subprocess.CalledProcessError, ValueError, LookupError) as error:  # the others' figures take half an hour
        print(f"benchmarks.{one.name}: {error!r}", file=sys.stderr)
        return [(f"benchmarks.{one.name} could not run here", None, None, "")]


def _encoding_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _row(ENCODED[row["what"]].format(**result), ENCODERS[peer], row[peer], row["ours"], ratio, row["spread"][peer])
        for row in result["rows"]
        for peer, ratio in row["ratios"].items()
    ]


def _importing_rows(run: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [
        _row(what.format(name), TUTORIAL, run[f"tutorial_{part}_s"], run[f"ours_{part}_s"], run[f"ratio_{part}"])
        for part, what in IMPORTED.items()
    ]


def _row(what: str, peer: str, theirs: float, ours: float, ratio: float, spread: Any = None) -> dict[str, Any]:
    span = f"{spread[0]:.1f} to {spread[1]:.1f}" if spread else "–"
    return dict(zip(HEAD, (what, peer, theirs, ours, f"**{ratio:.1f}**", span), strict=True))


def _measure(name: str, *options: str) -> Mapping[str, Any]:
    """Run a benchmark in a separate process and return its last line, parsed as JSON."""
    print(f"benchmarks.{name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{name}", *options]
    process = subprocess.run(command, cwd=report.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result: Mapping[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["xquad-en", "chroma"], metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="imports of the first set, default 3")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of encoding (default 5)")
    names = ["encoding", "importing", *(one.name for one in FIGURES)]
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
