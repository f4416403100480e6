"""Write the lock files: `make lock`, or with uv's options, such as --upgrade-package lxml.

    .venv/bin/python scripts/lock.py [OPTION …]

    locks/app.txt     packages of the app: every release with the SHA-256 of each of its files, for all platforms
    locks/torch.txt   torch from PyPI, and the libraries that only its CUDA build needs
    locks/office.txt  additional packages of requirements-office.txt, which is optional, and so are those in
                      locks/ocr.txt, locks/postgres.txt and locks/bulk.txt
    locks/dev.txt     additional packages for tests and checks
    constraints.txt   the same versions without the hashes, for plain pip

A locked version stays, unless requirements.txt, requirements-dev.txt or an option asks for another.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "locks"
OLDEST = "3.11"
OPTIONAL = ("office", "ocr", "postgres", "bulk")
_RELEASE = re.compile(r"^(?P<name>[a-z0-9-]+)==\S+.*?(?=^[a-z]|\Z)", re.MULTILINE | re.DOTALL)
_WITH_TORCH = re.compile(r"torch|triton|(?:cuda|nvidia)-.*")
_MADE_BY = "# Made by `make lock`. Do not edit.\n"


def main() -> int:
    app = resolve("requirements.txt", sys.argv[1:])
    optional = {name: resolve(f"requirements-{name}.txt", sys.argv[1:], seed=app) for name in OPTIONAL}
    seed = {name: rows for releases in (*optional.values(), app) for name, rows in releases.items()}
    dev = resolve("requirements-dev.txt", sys.argv[1:], seed=seed)
    torch = {name: rows for name, rows in app.items() if _WITH_TORCH.fullmatch(name)}
    LOCKS.mkdir(exist_ok=True)
    write("app", (rows for name, rows in app.items() if name not in torch))
    write("torch", torch.values())
    for extra, releases in optional.items():
        write(extra, (rows for name, rows in releases.items() if name not in app))
    write("dev", (rows for name, rows in dev.items() if name not in seed))
    pins = (rows.partition(" \\\n")[0] for rows in dev.values())
    (ROOT / "constraints.txt").write_text(_MADE_BY + "\n".join(pins) + "\n", "utf-8")
    return 0


def resolve(requirements: str, options: Iterable[str], seed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the lines of each release that `requirements` needs on any platform, by name.

    Those of `seed`, or else of the current locks, stay if they fit.
    """
    before = seed or {path.name: path.read_text("utf-8") for path in sorted(LOCKS.glob("*.txt"))}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "lock.txt"
        output.write_text("\n".join(before.values()), "utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--no-annotate", "--no-header", "--python-version", OLDEST, "--output-file", str(output)]
        subprocess.run([*command, *options, str(ROOT / requirements)], check=True)
        return {match["name"]: match[0] for match in _RELEASE.finditer(output.read_text("utf-8"))}


def write(name: str, releases: Iterable[str]) -> None:
    (LOCKS / f"{name}.txt").write_text(_MADE_BY + "".join(releases), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
