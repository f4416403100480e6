"""Make .venv and install the pinned requirements; a second call returns at once.

    python3 scripts/install.py [--dev] [--venv DIR]

Runs on the system's Python with nothing installed, and says in one sentence what is missing.
Where there is no NVIDIA GPU, torch comes as its CPU build: one short try, then the plain pin.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
CPU_INDEX = os.environ.get("TORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")


def say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def stop(sentence: str) -> None:
    say(sentence)
    raise SystemExit(1)


def check_python() -> None:
    """Refuse an older Python, or one without venv, with what to do about it."""
    version = platform.python_version()
    if sys.version_info < OLDEST:
        stop(f"Python {version} is too old: 3.11 or newer is needed. Try: make run PYTHON=python3.12")
    try:
        import ensurepip
        import venv  # noqa: F401
    except ImportError:
        stop(f"Python {version} lacks its venv module. On Debian or Ubuntu: sudo apt install python3-venv")
    else:
        del ensurepip


def make_venv(folder: Path) -> Path:
    """Create the environment if it is not there yet; returns its Python."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        say(f"Making {folder.name} with Python {platform.python_version()} ...")
        if subprocess.call([sys.executable, "-m", "venv", "--clear", str(folder)]):
            stop(f"{folder} could not be made. On Debian or Ubuntu: sudo apt install python3-venv")
    return python


def pinned(name: str) -> str:
    """The requirement line of `name` in requirements.txt, such as `torch==2.13.0`."""
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        requirement = line.split("#")[0].strip()
        if requirement.startswith(name + "=="):
            return requirement
    raise LookupError(name)


def has_nvidia_gpu() -> bool:
    command = shutil.which("nvidia-smi")
    if command is None:
        return False
    return subprocess.call([command, "-L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def has_torch(python: Path) -> bool:
    """Whether the environment holds the pinned torch already, whatever its build."""
    code = "import importlib.metadata as m; print(m.version('torch').split('+')[0])"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return "torch==" + found.stdout.strip() == pinned("torch")


def install_torch(python: Path) -> None:
    """Put the CPU build in place; without a word to the contrary, pip would fetch CUDA's gigabytes on Linux.

    Only the label `+cpu` is asked for, so whichever index answers, no other build can come.
    """
    if sys.platform == "darwin" or has_nvidia_gpu() or has_torch(python):
        return
    say("No NVIDIA GPU found: installing the CPU build of torch ...")
    one_short_try = ["--retries", "0", "--timeout", "8", "--extra-index-url", CPU_INDEX]
    if subprocess.call([*pip(python), "--no-deps", *one_short_try, pinned("torch") + "+cpu"]):
        confirm_large_download()


def confirm_large_download() -> None:
    say("The CPU build of torch is out of reach. The plain build works too; on Linux it brings about 3 GB.")
    if not sys.stdin or not sys.stdin.isatty():
        say("Going on with the plain build. To avoid it: stop now, and set TORCH_CPU_INDEX to a mirror.")
        return
    sys.stderr.write("Install the plain build now? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        stop("Nothing more was installed. Set TORCH_CPU_INDEX to a mirror of that index, and try again.")


def pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def fingerprint(names: list[str]) -> str:
    digest = hashlib.sha256(platform.python_version().encode())
    for name in names:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def install(python: Path, *, dev: bool) -> None:
    """Install what the requirement files name, unless the same files were installed before."""
    names = ["requirements.txt", "constraints.txt"] + (["requirements-dev.txt"] if dev else [])
    stamp = python.parent.parent / (".installed-dev" if dev else ".installed")
    wanted = fingerprint(names)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    install_torch(python)
    say(f"Installing {names[-1] if dev else names[0]} (a few minutes the first time) ...")
    arguments = ["-r", str(ROOT / (names[-1] if dev else names[0])), "-c", str(ROOT / "constraints.txt")]
    if subprocess.call([*pip(python), *arguments]):
        stop("The requirements could not be installed; pip says why above. Then run the same command again.")
    stamp.write_text(wanted, encoding="utf-8")
    if dev:
        install(python, dev=False)


def main() -> None:
    check_python()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="the environment's folder")
    options = parser.parse_args()
    install(make_venv(options.venv.absolute()), dev=options.dev)


if __name__ == "__main__":
    main()
