"""Processor time of a program by part: groups of functions, without nested parts, and the rest of each thread.

    python -m benchmarks.stages FILE run main.py …

serves the app as `streamlit run` does, and writes the parts of its work so far into FILE at each SIGUSR1. A coroutine
or an asynchronous iterator is counted while it runs, not while it waits.
"""

from __future__ import annotations

import functools
import inspect
import json
import signal
import sys
import threading
import time
import types
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

Parts = Mapping[str, Sequence[tuple[Any, str]]]
"""The functions of each part, as (owner, name of its attribute)."""

REST_OF: Final = {"MainThread": "sockets and messages", "runs": "graph", "query": "models", "encode": "models"}
"""Name for the work of a thread outside the parts, by the prefix of the thread's name."""


class Stages:
    """A thread-safe counter of the calls and processor seconds of parts, from `patch` on."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._threads: list[tuple[int, dict[str, float]]] = []
        self._here = threading.local()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each part, and of the living threads outside them; "rest" is everything else."""
        by_part: defaultdict[str, float] = defaultdict(float)
        within: defaultdict[int | None, float] = defaultdict(float)
        for ident, parts in list(self._threads):
            for part, seconds in list(parts.items()):
                by_part[part] += seconds
                within[ident] += seconds
        for thread in threading.enumerate():
            elapsed = time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) if thread.ident else 0.0
            rest = next((rest for name, rest in REST_OF.items() if thread.name.startswith(name)), "rest")
            by_part[rest] += elapsed - within[thread.ident]
        by_part["rest"] += time.process_time() - sum(by_part.values())
        return dict(by_part)

    @contextmanager
    def patch(self, parts: Parts) -> Iterator[None]:
        """Count these functions until the block ends."""
        before = [(owner, name, inspect.getattr_static(owner, name)) for each in parts.values() for owner, name in each]
        for part, functions in parts.items():
            for owner, name in functions:
                setattr(owner, name, self._wrap(part, getattr(owner, name)))
        try:
            yield
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)

    def _wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isasyncgenfunction(function):
            return functools.wraps(function)(lambda *args, **how: self._iterate(part, function(*args, **how)))

        @functools.wraps(function)
        def count(*args: Any, **how: Any) -> Any:
            self.calls[part] += 1
            with self._within(part):
                return function(*args, **how)

        return count

    async def _iterate(self, part: str, items: Any) -> AsyncIterator[Any]:
        self.calls[part] += 1
        try:
            while True:
                try:
                    item = await self._step(part, items.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            await items.aclose()

    @types.coroutine
    def _step(self, part: str, work: Awaitable[Any]) -> Generator[Any, Any, Any]:
        """Await `work`, counting its steps."""
        steps = work.__await__()
        resume, value = steps.send, None
        while True:
            with self._within(part):
                try:
                    waits = resume(value)
                except StopIteration as end:
                    return end.value
            try:
                resume, value = steps.send, (yield waits)
            except BaseException as problem:  # noqa: BLE001 - passed on to the work
                resume, value = steps.throw, problem

    @contextmanager
    def _within(self, part: str) -> Iterator[None]:
        here = self._here
        if not hasattr(here, "parts"):
            here.parts, here.since, here.seconds = [], 0.0, defaultdict(float)
            self._threads.append((threading.get_ident(), here.seconds))
        self._count(here)
        here.parts.append(part)
        try:
            yield
        finally:
            self._count(here)
            here.parts.pop()

    def _count(self, here: Any) -> None:
        """Add the time since the last change to the part that ran."""
        now = time.thread_time()
        if here.parts:
            here.seconds[here.parts[-1]] += now - here.since
        here.since = now


def server_parts() -> Parts:
    """Return the parts of the served app's work."""
    from streamlit.runtime import app_session, scriptrunner
    from streamlit.web.server.starlette import starlette_websocket

    from rag.models.openai_chat import CompatibleChat
    from rag.retrieval.retriever import ScopedSearch

    return {
        "script runs": [(scriptrunner.ScriptRunner, "_run_script")],
        "new-session messages": [(app_session.AppSession, "_create_new_session_message")],
        "elements": [(starlette_websocket, "serialize_forward_msg")],
        "search": [(ScopedSearch, "search")],
        "chat client": [(CompatibleChat, "_astream")],
    }


def main(arguments: list[str]) -> None:
    from streamlit.web.cli import main as streamlit

    stages, target = Stages(), Path(arguments[0])

    def write(*_: Any) -> None:
        part = target.with_suffix(".part")
        part.write_text(json.dumps({"seconds": stages.seconds(), "calls": stages.calls}), encoding="utf-8")
        part.replace(target)

    signal.signal(signal.SIGUSR1, write)
    with stages.patch(server_parts()):
        streamlit(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
