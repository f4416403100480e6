"""Permissions of the data folder, which has questions and pages unencrypted: only its owner may read it."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

_OTHERS_BITS = 0o077


def restrict_to_owner(folder: Path) -> None:
    """Restrict `folder` and everything in it to its owner: folders 0700, files 0600, now and for files created later.

    The database engine creates files on its own, so this sets the umask of the process. A shared temporary folder
    (sticky) is left alone; links are not followed. Files of other users are left alone and logged.
    """
    os.umask(_OTHERS_BITS)
    if os.name == "nt" or folder.stat().st_mode & stat.S_ISVTX:
        return
    _restrict(folder.resolve())
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _restrict(Path(parent, name))


def _restrict(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
        if mode & _OTHERS_BITS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS_BITS)
    except FileNotFoundError:  # a temporary file that was renamed or deleted meanwhile
        return
    except OSError as error:
        log.warning("%s stays open to other users: %s", path, error)
