"""A bulk import gives the same library with every runner, even if a worker is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag.app import App
from rag.bulk import runs
from rag.bulk.batches import Batch
from rag.bulk.runs import Outcome, Target, choose_runner, run_bulk
from rag.config import Settings, load_settings
from rag.store.qdrant.library import Library
from tests.support.hashed_model import use_hashed_model
from tests.support.import_process import kill_named
from tests.support.qdrant_server import QdrantServer

PAGES, BATCH = 24, 4


class HashedTarget(Target):
    """A target whose processes load no weights."""

    def import_batch(self, app: App, batch: Batch) -> Outcome:
        use_hashed_model()
        return super().import_batch(app, batch)


@pytest.fixture(autouse=True)
def plain_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the main module, which new processes import: tests of pages leave one whose file is deleted."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    monkeypatch.setattr(runs, "Target", HashedTarget)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    text = "Boat number {n} of the fleet carries {n} passengers, and leaves at {n} past noon. " * 5
    rows = [{"url": f"https://a.example/{n}", "title": f"P{n}", "text": text.format(n=n)} for n in range(PAGES)]
    (tmp_path / "dump.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path / "dump.jsonl")


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with QdrantServer(tmp_path / "server") as server:
        given = {"qdrant_url": server.url, "llm_model": "", "llm_base_url": ""}
        yield load_settings(None, rag_data_dir=tmp_path / "data", **given)


def import_into(
    settings: Settings,
    library: str,
    dump: str,
    name: Any,
    on_row: Callable[[], object] = lambda: None,
    size: int = BATCH,
) -> tuple[list[str], set[Any]]:
    """Import with two workers; return the statuses of the rows, and the contents of the library."""
    with closing(App(settings.model_copy(update={"rag_library": library}))) as app:
        rows = []
        for row in run_bulk(app, library, [dump], size, choose_runner(app, library, "", name, 2, 0.0)):
            rows.append(row.status)
            on_row()
        return rows, contents(app.library(library))


def contents(library: Library) -> set[Any]:
    pages = library.pages()
    return {(page.url, page.title, *(one.text for one in library.chunks(page.url_hash))) for page in pages}


class KillOnce:
    """A callback that kills one process after the first row."""

    def __init__(self, kill: Callable[[], list[int]]) -> None:
        self._kill = kill
        self.killed: list[int] = []

    def __call__(self) -> None:
        self.killed = self.killed or self._kill()


def kill_child() -> list[int]:
    """Kill (SIGKILL) one of the pool's processes."""
    child = active_children()[0]
    child.kill()
    return [child.pid or 0]


@pytest.mark.slow
def test_processes_give_the_same_library_although_one_is_killed(settings: Settings, dump: str) -> None:
    rows, whole = import_into(settings, "one", dump, "here")
    assert rows == ["added"] * (PAGES // BATCH) and len(whole) == PAGES
    kill = KillOnce(kill_child)
    rows, found = import_into(settings, "several", dump, "processes", kill)
    assert kill.killed and found == whole
    assert len(rows) == PAGES // BATCH and set(rows) <= {"added", "unchanged"}


def test_a_batch_whose_process_dies_three_times_fails(
    settings: Settings, dump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_import_in_process", _die)
    rows, found = import_into(settings, "dying", dump, "processes", size=PAGES)
    assert rows == ["failed"] and not found


def _die(batch: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_ray_gives_the_same_library_although_an_actor_is_killed(
    settings: Settings, dump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])  # Ray adds packages of its own, which the notice would name
    pytest.importorskip("ray", reason="Ray is not installed: make install-bulk")
    _, whole = import_into(settings, "one", dump, "here")
    kill = KillOnce(lambda: kill_named("ray::MapWorker"))
    rows, found = import_into(settings, "many", dump, "ray", kill)
    assert kill.killed and found == whole and len(rows) == PAGES // BATCH
