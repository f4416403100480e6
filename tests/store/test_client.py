"""Which database the settings lead to, and what a server's failures look like."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from qdrant_client import QdrantClient

from rag.config import load_settings
from rag.errors import StoreError
from rag.store.client import connect, is_shared
from rag.store.edge.client import EdgeClient

KEY = "secret-key"


class Handler(BaseHTTPRequestHandler):
    """A server that knows one key, has no collections, and fails at everything else."""

    def do_GET(self) -> None:
        if self.headers.get("api-key") != KEY:
            return self.reply(401, b"Must provide an API key")
        if self.path == "/collections":
            return self.reply(200, b'{"result": {"collections": []}, "status": "ok", "time": 0}')
        return self.reply(500, b'{"status": {"error": "out of memory"}}')

    def do_POST(self) -> None:
        self.do_GET()

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


def test_without_a_url_the_embedded_engine_under_the_data_folder(tmp_path: Path) -> None:
    client = connect(load_settings(None, rag_data_dir=tmp_path, qdrant_url=""))
    assert isinstance(client, EdgeClient)
    assert not is_shared(client)
    assert (tmp_path / "qdrant").is_dir()
    client.close()


def test_in_memory_mode_is_not_shared() -> None:
    assert not is_shared(QdrantClient(":memory:"))


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_with_a_url_a_server(server: str) -> None:
    client = connect(load_settings(None, qdrant_url=server, qdrant_api_key=KEY))
    assert is_shared(client)
    assert client.get_collections().collections == []
    with pytest.raises(StoreError, match="out of memory"):
        client.count("a")
    client.close()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_a_refused_key_is_one_sentence_without_the_key(server: str) -> None:
    with pytest.raises(StoreError, match=r"refused the key\. Check QDRANT_API_KEY") as caught:
        connect(load_settings(None, qdrant_url=server, qdrant_api_key="wrong-key"))
    assert "wrong-key" not in str(caught.value)


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(StoreError, match=r"does not answer\. Check QDRANT_URL"):
        connect(load_settings(None, qdrant_url="http://127.0.0.1:9"))
