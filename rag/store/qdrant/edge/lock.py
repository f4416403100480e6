"""One process at a time in the embedded folder.

The engine's own lock shows only once a collection is opened, so a lock file guards the folder
as a whole. The operating system drops the lock when the process ends, however it ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rag.errors import StoreBusyError, StoreError

_NAME = "in-use.lock"


class FolderLock:
    """Holds `folder` from construction until `release`.

    Raises StoreBusyError when another holder is alive, StoreError when the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError("store_unwritable", path=str(folder)) from error
        try:
            _lock(self._file)
        except OSError as error:
            os.close(self._file)
            raise StoreBusyError("store_busy", path=str(folder)) from error

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
