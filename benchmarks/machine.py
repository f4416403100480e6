"""Facts about the machine, published with all figures because absolute times mean little without them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "torch",
    "transformers",
    "FlagEmbedding",
    "sentence-transformers",
    "qdrant-edge-py",
    "qdrant-client",
    "langchain-qdrant",
    "langchain-experimental",
    "langchain-community",
)


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return date, commit, machine, load and versions, by name."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()} {platform.machine()}",
        "load when it began": _load(),
        "Python": platform.python_version(),
        **{name: version for name in packages if (version := _version(name))},
    }


def _commit() -> str:
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty=, with changes on top"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or "unknown"


def _processor() -> str:
    cpu_file = Path("/proc/cpuinfo")
    lines = cpu_file.read_text(encoding="utf-8").splitlines() if cpu_file.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "memory unknown"
    return f"{size / 2**30:.0f} GB"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
