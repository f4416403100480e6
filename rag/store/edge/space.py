"""Room on the disk, asked for beforehand.

The engine writes through memory maps of sparse files: when the disk is full, the system ends the
whole process (SIGBUS) in the middle of a call, and no exception tells why. So writes stop earlier.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rag.errors import StoreError
from rag.store.edge.faults import os_fault

TO_ADD = 64 << 20  # bytes free to add points: the batches of several threads, and the logs
TO_CHANGE = 16 << 20  # to delete and to flag, which is also the way to make room


def require_space(path: Path, needed: int) -> None:
    """StoreError unless the disk of `path` has `needed` bytes free. Takes microseconds."""
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise os_fault(path, error) from error
    if free < needed:
        raise StoreError("store_disk_low", path=str(path), needed=-(-needed // (1 << 20)))


def occupied(folder: Path) -> int:
    """Bytes that the files below `folder` occupy, which is far less than their lengths."""
    total = 0.0
    for path, _, names in os.walk(folder):
        for name in names:
            status = (Path(path) / name).stat()
            total += getattr(status, "st_blocks", status.st_size / 512) * 512
    return int(total)
