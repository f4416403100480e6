"""A process of its own that is killed at the very moment when what it does returns.

It is forked from one that has already imported what runs of graphs need, so that it begins at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["rag.graphs.judge.driving", "rag.graphs.research.driving", "rag.conversations.saver", "rag.models.chat", __name__]
)
_PATIENCE = 120.0


def killed(work: Callable[..., list[str]], *given: Any) -> list[str]:
    """What `work` returned before its process was killed; it must be a function of a module."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_run, args=(theirs, work, given))
    process.start()
    theirs.close()
    assert ours.poll(_PATIENCE), "it did not come so far"
    told: list[str] = ours.recv()
    process.join(_PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    return told


def _run(pipe: Connection, work: Callable[..., list[str]], given: tuple[Any, ...]) -> None:
    pipe.send(work(*given))
    os.kill(os.getpid(), signal.SIGKILL)
