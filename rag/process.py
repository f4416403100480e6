"""Process identity, and detection of processes that died while answering a question."""

from __future__ import annotations

import os
import socket
import time
from typing import Final
from uuid import uuid4

SILENCE: Final = 20.0
"""Seconds without a heartbeat after which a process counts as dead; a run sends one every second."""


class Process:
    """The current process. Its `name` is host, process id and a random suffix, since process ids are reused."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

    def may_be_alive(self, name: str, seen_at: float) -> bool:
        """Return whether another process, last seen at `seen_at` (seconds since 1970), may still be running."""
        if not name or time.time() - seen_at > SILENCE:
            return False
        host, _, pid = name.rpartition(":")[0].rpartition(":")
        own_host = self.name.split(":")[0]
        if host != own_host or not pid.isdigit():
            return True
        return int(pid) != os.getpid() and _is_running(int(pid))


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # os.kill is not harmless elsewhere: only the heartbeat counts
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
