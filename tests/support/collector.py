"""A trace collector on loopback that parses the protobuf that it receives."""

from __future__ import annotations

import time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.loopback import Handler, LoopbackServer


class Collector(LoopbackServer):
    def __init__(self, status: int = 200, silence: float = 0.0) -> None:
        super().__init__(_Handler)
        self.url = f"{self.origin}/v1/traces"
        self.status, self.silence = status, silence
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []

    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [one for request in requests for of in request.resource_spans for s in of.scope_spans for one in s.spans]


class _Handler(Handler):
    def post(self) -> None:
        collector = self.server.owner
        collector.headers.append(self.given_headers())
        collector.bodies.append(self.read_body())
        time.sleep(collector.silence)
        self.send_whole(collector.status, ExportTraceServiceResponse().SerializeToString())
