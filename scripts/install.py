"""Create .venv and install the packages in locks/, each file checked by its SHA-256; a second call returns immediately.

    python3 scripts/install.py [--office] [--ocr] [--postgres] [--bulk] [--dev] [--venv DIR]

Runs on the system's Python with nothing installed, and says in one sentence what is missing. Without an NVIDIA GPU, or
with TORCH_BUILD=cpu, it tries once to install the CPU build of torch, then PyPI's. Only that build is not checked: its
files, from PyTorch's index or from a mirror or folder in pip's settings, are not those of PyPI.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
OPTIONAL = {
    "office": "the reader of .xls, .ods, .odp, .rtf and .msg",
    "ocr": "text recognition for pictures and scans",
    "postgres": "what several apps need to share a Postgres database",
    "bulk": "web archives, and imports on several machines",
}
CUDA_SIZE = "about 6 GB"  # of .venv, with the libraries that PyPI's build for Linux brings
CPU_INDEX = os.environ.get("TORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")


def say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def fail(sentence: str) -> None:
    say(sentence)
    raise SystemExit(1)


def check_python() -> None:
    """Refuse an older Python, or one without venv, and say how to fix it."""
    version = platform.python_version()
    if sys.version_info < OLDEST:
        fail(f"Python {version} is too old: 3.11 or newer is needed. Try: make run PYTHON=python3.12")
    try:
        import ensurepip
        import venv  # noqa: F401
    except ImportError:
        fail(f"Python {version} lacks its venv module. On Debian or Ubuntu: sudo apt install python3-venv")
    else:
        del ensurepip


def make_venv(folder: Path) -> Path:
    """Create the environment if it is missing; return its Python."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        say(f"Making {folder.name} with Python {platform.python_version()} ...")
        if subprocess.call([sys.executable, "-m", "venv", "--clear", str(folder)]):
            fail(f"{folder} could not be made. On Debian or Ubuntu: sudo apt install python3-venv")
    return python


def pinned_requirement(name: str) -> str:
    """Return the requirement line of `name` in requirements.txt, such as `torch==2.13.0`."""
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
    """Return whether the environment has the pinned torch, of any build."""
    code = "import importlib.metadata as m; print(m.version('torch').split('+')[0])"
    process = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return "torch==" + process.stdout.strip() == pinned_requirement("torch")


def install_torch(python: Path) -> None:
    """Install torch, as its CPU build if that is enough: pip would fetch CUDA's gigabytes on Linux."""
    if has_torch(python) or (wants_cpu_build() and install_cpu_build(python)):
        return
    if sys.platform == "linux" and not wants_cpu_build():
        say(
            f"NVIDIA GPU found: installing the CUDA build of torch, {CUDA_SIZE}. "
            "For the smaller CPU build, stop now and set TORCH_BUILD=cpu."
        )
    say("Installing torch from PyPI ...")
    install_locked(python, ["torch"])


def wants_cpu_build() -> bool:
    return sys.platform != "darwin" and (os.environ.get("TORCH_BUILD") == "cpu" or not has_nvidia_gpu())


def install_cpu_build(python: Path) -> bool:
    """Request exactly the label `+cpu`, so that no index can serve another build."""
    say("Installing the CPU build of torch ...")
    one_short_try = ["--retries", "0", "--timeout", "8", "--extra-index-url", CPU_INDEX]
    if not subprocess.call([*pip(python), "--no-deps", *one_short_try, pinned_requirement("torch") + "+cpu"]):
        return True
    confirm_large_download()
    return False


def confirm_large_download() -> None:
    say(f"The CPU build of torch is out of reach. PyPI's build works too; on Linux it is the CUDA build, {CUDA_SIZE}.")
    if not sys.stdin or not sys.stdin.isatty():
        say("Installing PyPI's build. To avoid it, stop now and set TORCH_CPU_INDEX to a mirror.")
        return
    sys.stderr.write("Install PyPI's build now? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        fail("Nothing more was installed. Set TORCH_CPU_INDEX to a mirror of that index, and try again.")


def pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def lock_files(names: list[str]) -> list[Path]:
    return [ROOT / "locks" / f"{name}.txt" for name in names]


def install_locked(python: Path, names: list[str]) -> None:
    """Install these lock files: only what they name, and no file with another hash.

    Of the development packages, most modules are never imported: Python compiles the others on first use.
    """
    lists = [argument for path in lock_files(names) for argument in ("-r", str(path))]
    lazily = ["--no-compile"] * ("dev" in names)
    if subprocess.call([*pip(python), "--no-deps", "--require-hashes", *lazily, *lists]):
        fail("The requirements could not be installed; pip says why above. Then run the same command again.")


def fingerprint(names: list[str]) -> str:
    digest = hashlib.sha256(platform.python_version().encode())
    for path in lock_files(names):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def install(python: Path, *, dev: bool, optional: Sequence[str] = ()) -> None:
    """Install the lock files, with some of OPTIONAL, unless the same files were installed before."""
    selected = list(OPTIONAL if dev else optional)
    stamps = {python.parent.parent / ".installed": ["app"]}
    for name in selected:
        stamps[python.parent.parent / f".installed-{name}"] = ["app", name]
    if dev:
        stamps[python.parent.parent / ".installed-dev"] = ["app", *selected, "dev"]
    marks = {stamp: fingerprint([*names, "torch"]) for stamp, names in stamps.items()}
    if all(stamp.exists() and stamp.read_text(encoding="utf-8") == mark for stamp, mark in marks.items()):
        return
    install_torch(python)
    say("Installing the requirements (a few minutes the first time) ...")
    install_locked(python, list(dict.fromkeys(name for names in stamps.values() for name in names)))
    for stamp, mark in marks.items():
        stamp.write_text(mark, encoding="utf-8")


def main() -> None:
    check_python()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, description in OPTIONAL.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"also {description}")
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="the environment's folder")
    options = parser.parse_args()
    selected = [name for name in OPTIONAL if getattr(options, name)]
    install(make_venv(options.venv.absolute()), dev=options.dev, optional=selected)


if __name__ == "__main__":
    main()
