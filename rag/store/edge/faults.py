"""The engine raises bare exceptions with the reason in the text; here they become one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.errors import RagError, StoreBusyError, StoreError

_FULL = ("no space left", "os error 28", "disk quota", "os error 122", "not enough space")
_UNWRITABLE = ("permission denied", "os error 13", "read-only file system", "os error 30")
_BUSY = ("wouldblock", "resource temporarily unavailable", "already locked")


@contextmanager
def engine_faults(call: str, path: Path) -> Iterator[None]:
    """Turn what the engine raises inside the block into StoreError; `call` names what was asked."""
    try:
        yield
    except (RagError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the engine derives from BaseException
        raise _sentence(call, path, error) from error


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
    detail = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    return StoreError("store_failed", call=call, detail=detail)
