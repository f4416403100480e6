"""The engine raises bare exceptions with the reason in the text; here they become one sentence.

It writes through memory maps of sparse files: when the disk is full, the system ends the whole process (SIGBUS) in the
middle of a call, and no exception tells why. So room on the disk is asked for before each write.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.errors import RagError, StoreBusyError, StoreError

_FULL = ("no space left", "os error 28", "disk quota", "os error 122", "not enough space")
_UNWRITABLE = ("permission denied", "os error 13", "read-only file system", "os error 30")
_BUSY = ("wouldblock", "resource temporarily unavailable", "already locked")
_MISREAD = (TypeError, AttributeError, ValueError, ArithmeticError, AssertionError, RecursionError)
"""What qdrant-client, its models and the engine's binding raise for a value of another kind than they take."""
TO_ADD = 64 << 20  # bytes free to add points: the batches of several threads, and the logs
TO_CHANGE = 16 << 20  # to delete and to flag, which is also the way to make room


@contextmanager
def engine_faults(call: str, path: Path) -> Iterator[None]:
    """Turn what the engine raises inside the block into StoreError; `call` names what was asked."""
    try:
        yield
    except (RagError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the engine derives from BaseException
        raise _sentence(call, path, error) from error


@contextmanager
def argument_faults(call: str) -> Iterator[None]:
    """Turn what a value of a wrong kind raises inside the block into StoreError; `call` names what was asked."""
    try:
        yield
    except _MISREAD as error:
        raise _misread(call, error) from error


def unsupported(call: str) -> StoreError:
    """The error for what the embedded engine, or its translation here, does not do."""
    return StoreError("store_unsupported", call=call)


def os_fault(path: Path, error: OSError) -> StoreError:
    """The sentence for a file operation of ours that failed under `path`."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return StoreError("store_disk_full", path=str(path))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError("store_unwritable", path=str(path))
    return StoreError("store_damaged", path=str(path), detail=error.strerror or type(error).__name__)


def _sentence(call: str, path: Path, error: BaseException) -> StoreError:
    text = str(error).lower()
    if any(mark in text for mark in _FULL):
        return StoreError("store_disk_full", path=str(path))
    if any(mark in text for mark in _UNWRITABLE):
        return StoreError("store_unwritable", path=str(path))
    if any(mark in text for mark in _BUSY):
        return StoreBusyError("store_busy", path=str(path))
    if _is_damage(call, text) or not isinstance(error, Exception):
        return StoreError("store_damaged", path=str(path), detail=_detail(error))
    if isinstance(error, _MISREAD):
        return _misread(call, error)
    return StoreError("store_failed", call=call, detail=_detail(error))


def _is_damage(call: str, text: str) -> bool:
    """What the engine wrote, it could read; "Service runtime error" is its word for what no caller is to blame for."""
    return call == "open" or ("service runtime error" in text and call != "create_collection")


def _misread(call: str, error: BaseException) -> StoreError:
    return StoreError("store_argument", call=call, detail=_detail(error).partition(" - variant ")[0])


def _detail(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].rstrip(".:") or type(error).__name__


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
