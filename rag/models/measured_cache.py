"""What was measured at an earlier start, so that it is not measured again: one small JSON file."""

from __future__ import annotations

import json
import logging
import os
import platform
from pathlib import Path

from rag.models.engines import Choice
from rag.models.families import read_json

log = logging.getLogger(__name__)


def recall(file: Path | None, model: str, device: str) -> Choice | None:
    """The choice made for `model` with this version of torch on this processor, if there was one."""
    row = read_json(file).get(_key(model, device)) if file else None
    if not isinstance(row, dict) or row.get("kind") not in ("own", "loaded"):
        return None
    half, times = row.get("half"), row.get("times")
    if not isinstance(half, bool) or not isinstance(times, int | float):
        return None
    return Choice(row["kind"], half, float(times))


def remember(file: Path | None, model: str, device: str, choice: Choice) -> None:
    """Add the choice to the file; a file that cannot be written is no reason to fail."""
    if file is None:
        return
    row = {"kind": choice.kind, "half": choice.half, "times": choice.times}
    new = file.with_suffix(f".{os.getpid()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps({**read_json(file), _key(model, device): row}, indent=1), "utf-8")
        new.replace(file)
    except OSError as error:
        log.info("The choice of forward pass could not be kept: %s", error)


def _key(model: str, device: str) -> str:
    import torch

    return " · ".join((model, f"torch {torch.__version__}", device, _processor(), f"{torch.get_num_threads()} cores"))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
