"""A command that starts while the database is unavailable waits for it, up to a limit."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from rag.cli import main
from tests.support.qdrant_server import QdrantServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QdrantServer:
    server = QdrantServer(tmp_path / "server")
    monkeypatch.setenv("QDRANT_URL", server.url)
    monkeypatch.setenv("RAG_DATA_DIR", str(tmp_path / "data"))
    return server


def test_a_command_goes_on_when_the_database_is_back(server: QdrantServer, capfd: pytest.CaptureFixture[str]) -> None:
    starting = threading.Timer(4.5, server.start)
    starting.start()
    try:
        assert main(["pages"]) == 0
    finally:
        starting.join()
        server.kill()
    assert "Waiting for the database since" in capfd.readouterr().err


@pytest.mark.usefixtures("server")
def test_it_ends_with_one_sentence_where_the_database_stays_away(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert main(["--wait", "1", "pages"]) == 1
    waiting, error = capfd.readouterr().err.strip().splitlines()
    assert waiting.startswith("Waiting for the database since") and error.startswith("error: ")
    assert time.monotonic() - began < 20


@pytest.mark.usefixtures("server")
def test_what_needs_no_database_does_not_wait(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text("# Ferry\n\nThe ferry leaves at nine each morning of the winter.\n")
    assert main(["chunk", str(tmp_path / "page.md")]) == 0
    assert "Waiting" not in capfd.readouterr().err
