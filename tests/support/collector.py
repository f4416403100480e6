"""A trace collector on loopback that parses the protobuf that it receives."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    def __init__(self, status: int = 200, silence: float = 0.0) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                time.sleep(silence)
                with suppress(OSError):  # the client may have timed out
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1/traces"

    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [one for request in requests for of in request.resource_spans for s in of.scope_spans for one in s.spans]

    def __enter__(self) -> Collector:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
