"""Separate environments for peers and other packages, so that the project's pins stay unchanged.

    python -m benchmarks.peers.environment      create the peers' environment; benchmarks create theirs on demand

The peers' environment is benchmarks/out/peers, with the packages of benchmarks/requirements.txt; everything else
(torch, the weights) comes from the project's Python. METRICS shares nothing.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
REQUIREMENTS = HERE / "requirements.txt"


@dataclass(frozen=True)
class Environment:
    """A virtual environment; with `shares` it also sees the project's packages."""

    requirements: Path
    folder: Path
    shares: bool = True


PEERS = Environment(REQUIREMENTS, HERE / "out" / "peers")
METRICS = Environment(HERE / "requirements-metrics.txt", HERE / "out" / "metrics", shares=False)


def pinned(requirements: Path = REQUIREMENTS) -> dict[str, str]:
    """Return the pinned version of each package."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return dict(line.split("#")[0].strip().split("==") for line in lines if "==" in line)


def python(wanted: Environment = PEERS) -> Path:
    """Return the environment's Python; create the environment if it is missing or its requirements changed.

    Raises RuntimeError with pip's last line if the packages cannot be installed.
    """
    program = wanted.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = wanted.folder / "installed"
    digest = hashlib.sha256(wanted.requirements.read_bytes()).hexdigest()
    if program.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return program
    print(f"Installing packages into benchmarks/out/{wanted.folder.name} ...", file=sys.stderr, flush=True)
    _run([sys.executable, "-m", "venv", "--clear", *(["--without-pip"] if wanted.shares else []), str(wanted.folder)])
    if wanted.shares:
        site = _run([str(program), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        Path(site, "project.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    _run([str(program), "-m", "pip", "install", "--quiet", "--requirement", str(wanted.requirements)])
    stamp.write_text(digest, encoding="utf-8")
    return program


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "no reason given").splitlines()[-1]
        raise RuntimeError(f"packages could not be installed: {last}")
    return ran.stdout.strip()


if __name__ == "__main__":
    print(python())
