"""Crash safety: a site imported by processes that get kill -9 at random moments, compared with an undisturbed import.

    python -m benchmarks.import_kills [--pages N] [--kills N] [--delay SECONDS] [--seed N] [--json]

The site is a real server on loopback with faults and second addresses. It is imported once without a kill, then again
by processes that are killed one after another at random moments, each of which resumes the previous one's work; the
last may finish. Hashed words replace the embedding model, since only the stored data matters. The pages with their
texts, the chunks with their texts and spans, and the outcome of each address must be equal; none may be open, lost, or
stored twice.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.import_process import (
    ImportProcess,
    digest,
    expected_outcomes,
    items,
    outcomes_by_path,
    stored,
    timed_run,
)
from tests.support.site_server import SiteServer

Row = dict[str, Any]


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as name, SiteServer(options.pages, delay=options.delay) as site:
        folder = Path(name)
        usual = timed_run(folder / "whole", site)
        chance = random.Random(options.seed)
        moments = [chance.uniform(0.0, 1.6 * usual / options.kills) for _ in range(options.kills)]
        rows = [_kill_import(folder / "killed", site, number, moment) for number, moment in enumerate(moments, 1)]
        with ImportProcess(folder / "killed", site) as process:
            process.wait()
        verdict = {**_compare(folder, site), "kills": sum(row["killed"] for row in rows), "usual s": round(usual, 1)}
    print(json.dumps({"kills": rows, "verdict": verdict}) if options.json else _table(rows, verdict))
    return 0 if verdict["equal"] else 1


def _kill_import(folder: Path, site: SiteServer, number: int, moment: float) -> Row:
    """Resume the import, kill it, and return the state it leaves. Every fifth process is killed while it starts."""
    starting = number % 5 == 0
    with ImportProcess(folder, site) as process:
        killed = process.kill_after(moment, starting=starting)
    rows = items(folder)
    open_stages = Counter(item.stage for item in rows if item.result is None and item.stage != "waiting")
    return {
        "kill": number,
        "after s": round(moment, 2),
        "since": "its start" if starting else "its first page",
        "killed": killed,
        "done": sum(item.result is not None for item in rows),
        "found": len(rows),
        "under way": " ".join(f"{stage} {count}" for stage, count in sorted(open_stages.items())) or "-",
    }


def _compare(folder: Path, site: SiteServer) -> Row:
    whole, killed = stored(folder / "whole"), stored(folder / "killed")
    rows = items(folder / "killed")
    outcomes = outcomes_by_path(rows, site)
    row = {
        "pages": f"{killed.page_records} of {whole.page_records}",
        "chunks": f"{killed.chunk_records} of {whole.chunk_records}",
        "orphaned chunks": killed.orphaned_chunks,
        "addresses": len(rows),
        "open": sum(outcome == "open" for outcome in outcomes.values()),
        "twice": len(rows) - len(outcomes),
        "begun again": sum(item.attempts > 1 for item in rows),
        "digest": digest(killed),
    }
    equal = (
        killed == whole and killed.orphaned_chunks == 0 and outcomes == expected_outcomes(site) and row["twice"] == 0
    )
    return {**row, "equal": equal}


def _table(rows: list[Row], verdict: Row) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"{name}: {value}" for name, value in verdict.items())])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300, metavar="N")
    parser.add_argument("--kills", type=int, default=20, metavar="N")
    parser.add_argument("--delay", type=float, default=0.15, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
