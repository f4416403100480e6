"""Several processes that do something to one library of a server at the same instant."""

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
_LATER = 0.05  # seconds by which the second process begins later with each library
_UNTOLD = "no sentence: "
_PATIENCE = 120.0

Round = Callable[[int], object]
_start: list[Barrier] = []


def committed(url: str, library: Library, processes: int) -> tuple[int, int]:
    """Each process commits a text of its own of every page: how many pages are not whole, how many commits failed."""
    told = _race(_commits, processes, PAGES, url, library.name)
    missing = PAGES - library.page_count()
    found = library.audit(deep=True)
    return missing + found.lacking + found.surplus, sum(map(bool, chain(*told)))


def opened(url: str, name: str) -> list[str]:
    """What processes are told that open a new library and cannot, for some libraries one after another."""
    return [said for said in chain(*_race(_opens, OPENERS, LIBRARIES, url, name)) if said]


def restored(url: str, source: Library, reopen: Callable[[str], Library], folder: Path) -> Iterator[str]:
    """What is wrong with libraries that one process restored while another opened them; nothing where all is well."""
    archive = folder / "restored.zip"
    for number in range(RESTORED):
        draft(f"p{number}").commit(source)
    export_library(source, archive)
    restorer, opener = _race(_restores, 2, LIBRARIES, url, source.name, archive)
    for number, (refused, unopened) in enumerate(zip(restorer, opener, strict=True)):
        pages = reopen(f"{source.name}-{number}").page_count()
        yield from (said for said in (refused, unopened) if said.startswith(_UNTOLD))
        if pages != (0 if refused else RESTORED):
            yield f"{pages} pages, and {refused or 'said to be well'}"


def _commits(number: int, url: str, name: str) -> Round:
    library = open_library(Server(load_settings(qdrant_url=url)), name, MODEL, DIMENSION)
    return lambda page: draft(f"p{page}", chunks=5 + number, version=number).commit(library)


def _opens(_: int, url: str, name: str) -> Round:
    client = Server(load_settings(qdrant_url=url))
    return lambda at: open_library(client, f"{name}-{at}", MODEL, DIMENSION)


def _restores(number: int, url: str, name: str, archive: Path) -> Round:
    client = Server(load_settings(qdrant_url=url))

    def opens(at: int) -> None:
        time.sleep(at * _LATER)
        open_library(client, f"{name}-{at}", MODEL, DIMENSION)

    return opens if number else lambda at: import_library(client, archive, f"{name}-{at}")


def _race(task: Callable[..., Round], processes: int, rounds: int, *given: object) -> list[list[str]]:
    """What each process was told in each round, "" where it went well; all begin a round together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes, timeout=_PATIENCE)
    with ProcessPoolExecutor(processes, context, initializer=_meet_at, initargs=(barrier,)) as pool:
        return list(pool.map(_run, repeat(task, processes), range(processes), repeat(rounds), repeat(given)))


def _meet_at(barrier: Barrier) -> None:
    _start.append(barrier)


def _run(task: Callable[..., Round], number: int, rounds: int, given: tuple[object, ...]) -> list[str]:
    do = task(number, *given)
    told = []
    for at in range(rounds):
        _start[0].wait()
        try:
            do(at)
            told.append("")
        except RagError as error:
            told.append(str(error))
        except Exception as error:  # noqa: BLE001 - the process's edge: it is counted
            told.append(f"{_UNTOLD}{error!r}")
    return told
