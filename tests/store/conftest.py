from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.edge.shard import copy_folder
from rag.store.qdrant.library import Library
from tests.store.support import open_edge


@pytest.fixture(scope="session")
def empty_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an empty library, since creating one takes longer than most tests."""
    folder = tmp_path_factory.mktemp("template") / "qdrant"
    open_edge(folder)[0].close()
    return folder


@pytest.fixture
def folder(tmp_path: Path, empty_library: Path) -> Path:
    copy_folder(empty_library, tmp_path / "qdrant")
    return tmp_path / "qdrant"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EdgeClient]:
    """Yield a client on a separate, empty folder."""
    client = EdgeClient(tmp_path / "bare")
    yield client
    client.close()


@pytest.fixture
def library(folder: Path) -> Iterator[Library]:
    client, library = open_edge(folder)
    yield library
    client.close()
