"""Whether the process that was answering a question can still be alive."""

from __future__ import annotations

import os
import socket
import time
from typing import Final
from uuid import uuid4

SILENCE: Final = 20.0
"""Seconds after which a process that told nothing of itself is taken for dead; a run tells every second."""


class Process:
    """This process: its `name` is the machine, its number and a word of its own, for numbers come back."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

    def may_be_alive(self, name: str, seen_at: float) -> bool:
        """Whether another process, last seen at `seen_at` (seconds since 1970), may still be at work."""
        if not name or time.time() - seen_at > SILENCE:
            return False
        host, _, rest = name.rpartition(":")[0].rpartition(":")
        ours = self.name.split(":")[0]
        if host != ours or not rest.isdigit():
            return True
        return int(rest) != os.getpid() and _is_running(int(rest))


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere asking is not harmless: silence has to do
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
