"""The gate over the sample pages, as in a team's CI: `rag evaluate` against an earlier baseline.

    python -m benchmarks.sample_gate [--write]

Exits with 1 if answers got significantly worse; --write saves the current results as the baseline.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import datasets
from benchmarks.samples import samples
from rag.cli import main as rag

BASELINE = Path(__file__).resolve().parent / "baseline.jsonl"
LIMITS = "recall@4000:0,all@4000:0,contains:0,faithfulness:0,citation_recall:0,refusal_right:0,calls:+0"
_METRICS = [limit.rpartition(":")[0] for limit in LIMITS.split(",")]


def main(arguments: Sequence[str]) -> int:
    with TemporaryDirectory() as folder:
        datasets.write(samples(), Path(folder) / "set")
        command = ["--data-dir", f"{folder}/data"]
        with contextlib.redirect_stdout(io.StringIO()):
            rag([*command, "import", f"{folder}/set/pages.jsonl"])
        if "--write" not in arguments:
            return rag([*command, "evaluate", f"{folder}/set", "--baseline", str(BASELINE), "--gate", LIMITS])
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = rag([*command, "evaluate", f"{folder}/set", "--json"])
    BASELINE.write_text("".join(map(_baseline_line, output.getvalue().splitlines())), encoding="utf-8")
    return status


def _baseline_line(row: str) -> str:
    """Return the fields of a row that the gate needs; empty for the summary figures that follow the rows."""
    result = json.loads(row)
    if "scores" not in result:
        return ""
    scores = {name: result["scores"].get(name) for name in _METRICS}
    return json.dumps({"setting": result["setting"], "id": result["id"], "scores": scores}) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
