"""Process identity and liveness, file permissions, and logging.

The data folder contains unencrypted questions and pages, so only its owner may read it. Control characters in logged
values are escaped to prevent log forging.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
import time
import traceback
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

log = logging.getLogger(__name__)

HEARTBEAT_TIMEOUT: Final = 20.0
"""Seconds without a heartbeat after which a process counts as dead; a run sends one every second."""


class Process:
    """The current process. Its `name` is host, process id and a random suffix, since process ids are reused."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

    def may_be_alive(self, name: str, seen_at: float) -> bool:
        """Return whether another process, last seen at `seen_at` (seconds since 1970), may still be running."""
        if not name or time.time() - seen_at > HEARTBEAT_TIMEOUT:
            return False
        host, _, pid = name.rpartition(":")[0].rpartition(":")
        own_host = self.name.split(":")[0]
        if host != own_host or not pid.isdigit():
            return True
        return int(pid) != os.getpid() and _is_running(int(pid))


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # on Windows, os.kill would end the process: rely on the heartbeat
        return True
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


_OTHERS_BITS = 0o077


def restrict_to_owner(folder: Path) -> None:
    """Restrict `folder` and everything in it to its owner: folders 0700, files 0600, now and for files created later.

    The database engine creates files too, so this sets the process umask. A shared temporary folder (sticky bit) stays
    unchanged, symbolic links are not followed, and files of other users are logged and skipped.
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


class PlainRecord(logging.LogRecord):
    """A log record on one line; the lines of a traceback are indented."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            lines = "".join(traceback.format_exception(*self.exc_info)).rstrip().split("\n")
            self.exc_text = "\n".join(f"  {_escape_controls(line)}" for line in lines)

    def getMessage(self) -> str:  # noqa: N802 - the parent's name
        return _escape_controls(super().getMessage())


def configure_logging(**options: Any) -> None:
    """Call `logging.basicConfig`, and use `PlainRecord` for all loggers, including those of libraries."""
    logging.setLogRecordFactory(PlainRecord)
    logging.basicConfig(**options)


def _escape_controls(text: str) -> str:
    """Escape characters that control a terminal or that log readers treat as line breaks."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
