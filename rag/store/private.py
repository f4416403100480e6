"""The data folder is its owner's alone: what people asked and read lies in it, unencrypted."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

_OTHERS = 0o077


def keep_private(folder: Path) -> None:
    """Shut `folder` and all below it to other users: 0700, files 0600, those that this process will make too.

    The database engine makes its files itself, so the mask is the process's. A shared temporary folder (sticky)
    stays as it is; links are not followed. What belongs to somebody else stays, and the log names it.
    """
    os.umask(_OTHERS)
    if os.name == "nt" or folder.stat().st_mode & stat.S_ISVTX:
        return
    _shut(folder.resolve())
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _shut(Path(place, name))


def _shut(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:  # it was a draft
        return
    except OSError as error:
        log.warning("%s stays open to other users: %s", path, error)
