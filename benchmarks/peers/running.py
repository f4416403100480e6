"""Runs of a peer over a set, in a separate process."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.peers import Peer, environment, rows
from benchmarks.run import Run

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "benchmarks" / "out" / "runs"


def run_peer(peer: Peer, data: Dataset, k: int, *, reuse: bool = False) -> Run:
    """Run the peer over the set, or with `reuse` return the cached run of the same set.

    Raises RuntimeError with the last line of the peer's stderr if it fails.
    """
    identity = _identity(data, k)
    kept = CACHE / "-".join([*data.name.split(), peer.name, f"{identity}.json"])
    if reuse and kept.exists():
        return _as_run(json.loads(kept.read_text(encoding="utf-8")))
    python = environment.python() if peer.own_packages else Path(sys.executable)
    with TemporaryDirectory() as name:
        folder = Path(name)
        datasets.write(data, folder)
        files = [str(folder / f"{part}.jsonl") for part in ("pages", "questions", "run")]
        report = _run([str(python), "-W", "ignore", "-m", peer.module, *files, str(k), *peer.options])
        row = {**report, "run": rows.read(files[2])}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(row), encoding="utf-8")
    return _as_run(row)


def _identity(data: Dataset, k: int) -> str:
    """Return a digest of what a run depends on besides the peer: the set, the peers' versions, k."""
    parts = (json.dumps([data.pages, data.questions]), environment.REQUIREMENTS.read_text(encoding="utf-8"), str(k))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _run(command: list[str]) -> dict[str, Any]:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError((ran.stderr.strip() or "no output").splitlines()[-1])
    report: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return report


def _as_run(row: dict[str, Any]) -> Run:
    hits = {str(one["id"]): [hit["text"] for hit in one["hits"]] for one in row["run"]}
    return Run(hits, row["ms"], row["chunks"], row["stored_s"], row["encoded"])
