"""Speed of an import compared with the pipeline of tutorials, in the same run.

    python -m benchmarks.importing [SET] [--data FOLDER] [--runs N] [--no-peer]

The peer is FlagEmbedding's stock encode of the same weights, SemanticChunker with its defaults, langchain-qdrant over
qdrant-client's local mode, one dense vector, one scroll per URL to find duplicates: `tutorial.py` in this folder. Two
ratios of medians: from models loaded to everything stored, and of the whole command. `ratio_encoding` is the median,
over our runs, of the first of these divided by only encoding the same chunks in the same process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.datasets import DEFAULT_FOLDER

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    options = _options()
    pages = options.data / options.set / "pages.jsonl"
    if not pages.is_file():
        print(f"no {pages}: give a folder with --data", file=sys.stderr)
        return 2
    ours, peer = [], []
    for _ in range(options.runs):
        ours.append(_run("benchmarks.importing_ours", pages))
        if not options.no_peer:
            peer.append(_run("benchmarks.tutorial", pages))
    ratios = [run["stored"] / run["encode"] for run in ours]
    row: dict[str, Any] = {
        "set": options.set,
        "runs": options.runs,
        **{f"ours_{name}_s": _median(ours, name) for name in ("stored", "encode", "command")},
        "ratio_encoding": round(statistics.median(ratios), 2),
        "spread_encoding": [round(min(ratios), 2), round(max(ratios), 2)],
    }
    for name in ("stored", "command") if peer else ():
        row[f"tutorial_{name}_s"] = _median(peer, name)
        row[f"ratio_{name}"] = round(_median(peer, name) / _median(ours, name), 1)
    print(json.dumps(row))
    return 0


def _run(module: str, pages: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", module, str(pages), folder],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        seconds = time.perf_counter() - began
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    encode = float(result.get("encode_s", 0.0))
    # The extra encoding for the measurement is not part of the command.
    return {"stored": float(result["stored_s"]), "encode": encode, "command": seconds - encode}


def _median(rows: list[dict[str, float]], name: str) -> float:
    return round(statistics.median(row[name] for row in rows), 2)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", default="xquad-en", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    parser.add_argument("--no-peer", action="store_true", help="only ours: the peer takes minutes per run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
