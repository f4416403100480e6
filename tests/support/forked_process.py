"""Processes to be killed, forked from a server that has imported what they need, so that they start quickly."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        "rag.graphs.judge.graph",
        "rag.graphs.research.graph",
        "rag.conversations.saver",
        "rag.models.openai_chat",
        "openai.resources.chat.completions",
        "langgraph.checkpoint.sqlite.aio",
        "rag.ingest.pipeline",
        "rag.ingest.jobs.service",
        "rag.ingest.chunking",
        "tests.store.test_kill",
        "tests.support.import_process",
        __name__,
    ]
)
_TIMEOUT = 120.0


def start_process(work: Callable[..., Any], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Start a process that calls `work`, a module-level function, with `given` and a connection to send through.

    Return the process and the other end. The main module is hidden: tests of pages leave one whose file is deleted.
    """
    receiver, sender = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=work, args=(*arguments, sender))
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
    sender.close()
    return process, receiver


def run_and_kill(work: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """Run `work`, a module-level function, in a process that is killed right after it; return its result."""
    process, receiver = start_process(_run, work, arguments)
    assert receiver.poll(_TIMEOUT), "the process sent nothing"
    result: list[str] = receiver.recv()
    process.join(_TIMEOUT)
    assert process.exitcode == -signal.SIGKILL
    return result


def _run(work: Callable[..., list[str]], arguments: tuple[Any, ...], sender: Connection) -> None:
    sender.send(work(*arguments))
    os.kill(os.getpid(), signal.SIGKILL)
