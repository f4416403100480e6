"""Races between processes that use one library on a server at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, repeat
from multiprocessing.synchronize import Barrier
from pathlib import Path

from rag.config import load_settings
from rag.errors import RagError
from rag.store.qdrant.client import Server
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.transfer import export_library, import_library
from tests.store.support import DIMENSION, MODEL, draft

PAGES, LIBRARIES, OPENERS = 200, 8, 3
RESTORED = 40  # pages
_DELAY = 0.05  # seconds by which the second process starts later with each library
_UNEXPECTED = "unexpected: "
_TIMEOUT = 120.0

Round = Callable[[int], object]
_start: list[Barrier] = []


def race_commits(url: str, library: Library, processes: int) -> tuple[int, int]:
    """Let each process commit its own text of every page; return the numbers of broken pages and failed commits."""
    errors = _race(_commits, processes, PAGES, url, library.name)
    missing = PAGES - library.page_count()
    audit = library.audit(deep=True)
    return missing + audit.incomplete + audit.extra, sum(map(bool, chain(*errors)))


def race_openings(url: str, name: str) -> list[str]:
    """Return the errors of processes that open new libraries at the same time."""
    return [error for error in chain(*_race(_opens, OPENERS, LIBRARIES, url, name)) if error]


def race_restores(url: str, source: Library, reopen: Callable[[str], Library], folder: Path) -> Iterator[str]:
    """Yield the faults of libraries that one process restores while another opens them."""
    archive = folder / "restored.zip"
    for number in range(RESTORED):
        draft(f"p{number}").commit(source)
    export_library(source, archive)
    restorer, opener = _race(_restores, 2, LIBRARIES, url, source.name, archive)
    for number, (restore_error, open_error) in enumerate(zip(restorer, opener, strict=True)):
        pages = reopen(f"{source.name}-{number}").page_count()
        yield from (error for error in (restore_error, open_error) if error.startswith(_UNEXPECTED))
        if pages != (0 if restore_error else RESTORED):
            yield f"{pages} pages, and {restore_error or 'no error'}"


def _commits(number: int, url: str, name: str) -> Round:
    library = open_library(Server(load_settings(qdrant_url=url)), name, MODEL, DIMENSION)
    return lambda page: draft(f"p{page}", chunks=5 + number, version=number).commit(library)


def _opens(_: int, url: str, name: str) -> Round:
    client = Server(load_settings(qdrant_url=url))
    return lambda at: open_library(client, f"{name}-{at}", MODEL, DIMENSION)


def _restores(number: int, url: str, name: str, archive: Path) -> Round:
    client = Server(load_settings(qdrant_url=url))

    def opens(at: int) -> None:
        time.sleep(at * _DELAY)
        open_library(client, f"{name}-{at}", MODEL, DIMENSION)

    return opens if number else lambda at: import_library(client, archive, f"{name}-{at}")


def _race(task: Callable[..., Round], processes: int, rounds: int, *arguments: object) -> list[list[str]]:
    """Return each process's error in each round, "" without one; all begin a round together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes, timeout=_TIMEOUT)
    with ProcessPoolExecutor(processes, context, initializer=_set_barrier, initargs=(barrier,)) as pool:
        return list(pool.map(_run, repeat(task, processes), range(processes), repeat(rounds), repeat(arguments)))


def _set_barrier(barrier: Barrier) -> None:
    _start.append(barrier)


def _run(task: Callable[..., Round], number: int, rounds: int, arguments: tuple[object, ...]) -> list[str]:
    task_round = task(number, *arguments)
    errors = []
    for at in range(rounds):
        _start[0].wait()
        try:
            task_round(at)
            errors.append("")
        except RagError as error:
            errors.append(str(error))
        except Exception as error:  # noqa: BLE001 - the process's edge: it is counted
            errors.append(f"{_UNEXPECTED}{error!r}")
    return errors
