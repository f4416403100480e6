"""Open libraries: each is opened once, and none blocks another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from rag.app import libraries as module
from rag.app.libraries import Libraries, Models
from rag.config import load_settings
from rag.errors import StoreError
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import LibraryInfo
from rag.store.qdrant.transfer import open_import


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EdgeClient]:
    opened = EdgeClient(tmp_path / "qdrant")
    yield opened
    opened.close()


@pytest.fixture
def libraries(client: EdgeClient, tmp_path: Path) -> Libraries:
    settings = load_settings(None, rag_data_dir=tmp_path, embedding_model="builtin")
    return Libraries(client, settings, Models(settings))


def test_a_library_that_is_being_imported_keeps_no_other_waiting(client: EdgeClient, libraries: Libraries) -> None:
    begun, go = threading.Event(), threading.Event()

    def import_file() -> None:
        with open_import(client, LibraryInfo("slow", "builtin", 384)):
            begun.set()
            assert go.wait(60)

    with ThreadPoolExecutor(3) as pool:
        arriving = pool.submit(import_file)
        assert begun.wait(60)
        waiting = pool.submit(libraries.get, "slow")
        try:
            other = pool.submit(libraries.get, "main")
            assert other.result(30).name == "main"
        finally:
            go.set()
        arriving.result(60)
        with suppress(StoreError):  # requested before it existed
            waiting.result(60)
        assert libraries.get("slow").name == "slow"


def test_only_the_library_of_the_settings_is_made_by_opening_it(libraries: Libraries) -> None:
    for get in (libraries.get, libraries.check):
        with pytest.raises(StoreError, match="no library “nowhere”"):
            get("nowhere")
    assert libraries.get().name == "main"
    assert [info.name for info in libraries.infos()] == ["main"]


def test_the_library_of_the_settings_stays(libraries: Libraries) -> None:
    libraries.rename("main", "Our Wiki")
    with pytest.raises(StoreError, match="RAG_LIBRARY"):
        libraries.remove("main")
    assert [info.display_name for info in libraries.infos()] == ["Our Wiki"]


def test_an_open_library_is_closed_to_who_asks_after_it_was_removed(libraries: Libraries) -> None:
    name = libraries.create("Notes")
    libraries.get(name)
    libraries.remove(name)
    with pytest.raises(StoreError, match="Restore it"):
        libraries.get(name)
    assert not libraries.has(name)
    libraries.restore(name)
    assert libraries.get(name).name == name


def test_a_library_is_opened_once_however_many_ask(libraries: Libraries, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    open_library = module.open_library

    def counted(client: EdgeClient, name: str, model: str, dimension: int, *, create: bool) -> Library:
        opened.append(name)
        return open_library(client, name, model, dimension, create=create)

    monkeypatch.setattr(module, "open_library", counted)
    libraries.create("other")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(libraries.get, ["main", "other"] * 8))
    assert sorted(opened) == ["main", "other"]
    assert len({id(one) for one in found}) == 2


def test_a_list_that_was_read_while_a_library_was_made_is_read_again(
    libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries.get()
    read = module.library_infos
    made: list[str] = []

    def slow(client: EdgeClient) -> list[LibraryInfo]:
        found = read(client)
        if not made:
            made.append("")
            made.append(libraries.create("Made meanwhile"))
        return found

    monkeypatch.setattr(module, "library_infos", slow)
    libraries.infos()
    assert libraries.has(made[1])
