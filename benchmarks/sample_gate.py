"""The gate over the sample pages, as a team would have it in its CI: `rag evaluate` against what was kept before.

    python -m benchmarks.sample_gate [--write]

Exit status 1 where answers got worse for certain; --write keeps what is found now as the baseline.
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
_KEPT = [limit.rpartition(":")[0] for limit in LIMITS.split(",")]


def main(arguments: Sequence[str]) -> int:
    with TemporaryDirectory() as folder:
        datasets.write(samples(), Path(folder) / "set")
        command = ["--data-dir", f"{folder}/data"]
        with contextlib.redirect_stdout(io.StringIO()):
            rag([*command, "import", f"{folder}/set/pages.jsonl"])
        if "--write" not in arguments:
            return rag([*command, "evaluate", f"{folder}/set", "--baseline", str(BASELINE), "--gate", LIMITS])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = rag([*command, "evaluate", f"{folder}/set", "--json"])
    BASELINE.write_text("".join(map(_line, printed.getvalue().splitlines())), encoding="utf-8")
    return status


def _line(row: str) -> str:
    """What the gate needs of a row; nothing of the figures that follow the rows."""
    found = json.loads(row)
    if "scores" not in found:
        return ""
    scores = {name: found["scores"].get(name) for name in _KEPT}
    return json.dumps({"setting": found["setting"], "id": found["id"], "scores": scores}) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
