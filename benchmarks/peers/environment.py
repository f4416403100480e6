"""The peers' own environment, so that the project's pins stay what they are.

    python -m benchmarks.peers.environment      make it now; a benchmark that needs it does so by itself

It lies in benchmarks/out/peers, holds what benchmarks/requirements.txt names, and finds everything else
(torch, the weights) where the project's Python has it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
REQUIREMENTS = HERE / "requirements.txt"
FOLDER = HERE / "out" / "peers"


def pinned() -> dict[str, str]:
    """The peers' packages with their versions."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("#")[0].strip().split("==") for line in lines if "==" in line)


def python() -> Path:
    """The environment's Python, made when it is missing or its requirements changed.

    Raises RuntimeError, with pip's last line, when the packages cannot be installed.
    """
    program = FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = FOLDER / "installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if program.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return program
    print("Installing the peers' packages into benchmarks/out/peers ...", file=sys.stderr, flush=True)
    _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(FOLDER)])
    site = _run([str(program), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    Path(site, "project.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    _run([str(program), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)])
    stamp.write_text(wanted, encoding="utf-8")
    return program


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "no reason given").splitlines()[-1]
        raise RuntimeError(f"the peers' packages could not be installed: {last}")
    return ran.stdout.strip()


if __name__ == "__main__":
    print(python())
