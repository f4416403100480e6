"""A web server on loopback, in threads of this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler
from typing import Any, Self


class LoopbackServer:
    """A server that runs until the `with` block ends; its handler has it as `server.owner`."""

    def __init__(self, handler: type[BaseRequestHandler], host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.connections = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server((host, port), handler)  # type: ignore[arg-type]  # a handler of requests does, too
        self._server.owner = self
        self.port = int(self._server.server_address[1])
        self.origin = f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


class WebServer(LoopbackServer):
    """A server of pages that records every request, header names in lower case."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1") -> None:
        super().__init__(handler, host)
        self.requests: list[tuple[str, dict[str, str]]] = []

    @property
    def pair(self) -> tuple[str, int]:
        """The entry of an allow-list for this server."""
        return self.host, self.port

    def url(self, path: str = "/") -> str:
        return f"{self.origin}{path}"

    @property
    def counts(self) -> Counter[str]:
        """The number of requests by path and query."""
        with self._lock:
            return Counter(path for path, _ in self.requests)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    owner: Any

    def process_request(self, request: Any, client_address: Any) -> None:
        self.owner.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up: some tests do so."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def do_GET(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post()

    def given_headers(self) -> dict[str, str]:
        """Return the request's headers, with names in lower case."""
        return {name.lower(): value for name, value in self.headers.items()}

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send_head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def send_whole(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_head(status, len(body), headers or {})
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
