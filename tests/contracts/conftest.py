"""The kinds of database that must behave alike: the embedded engine, in-memory mode, a server."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from rag.config import load_settings
from rag.store.qdrant.client import connect
from rag.store.qdrant.edge.client import EdgeClient
from tests.support.qdrant_server import QdrantServer

KINDS = ["edge", "memory", "stand-in", *(["server"] if os.environ.get("QDRANT_URL") else [])]


@dataclass
class Store:
    """A client of one kind, with a unique collection name."""

    client: QdrantClient
    name: str
    reopen: Callable[[], QdrantClient]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    with QdrantServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    def connected() -> QdrantClient:
        if request.param == "memory":
            return QdrantClient(":memory:")
        if request.param == "edge":
            return EdgeClient(tmp_path / "qdrant")
        if request.param == "stand-in":
            return connect(load_settings(None, qdrant_url=request.getfixturevalue("server").url))
        return connect(load_settings(None))

    made = Store(connected(), f"contract-{uuid.uuid4().hex[:8]}", connected)
    yield made
    for collection in made.client.get_collections().collections:
        if made.name in collection.name:
            made.client.delete_collection(collection.name)
    made.client.close()
