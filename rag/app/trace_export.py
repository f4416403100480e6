"""Export of finished runs as OTLP/HTTP spans in protobuf, with OpenTelemetry's GenAI attributes.

Langfuse, LangSmith and Phoenix accept them. Only the attributes listed here are exported.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from rag import __version__
from rag.config import Settings, split_headers
from rag.errors import ModelError
from rag.models.service import post
from rag.runs.run import Run
from rag.text import make_encodable
from rag.tracing import Span
from rag.types import Answer, Notice

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1 import trace_pb2

log = logging.getLogger(__name__)

Level = Literal["none", "ids", "text"]
_LEVELS: Final = ("none", "ids", "text")
_MAX_RUNS: Final = 100  # max. length of the queue
_LONGEST: Final = 4_000  # characters of a text
_SECONDS, _CLOSING_SECONDS = 10.0, 2.0
_GATHER: Final = 1.0  # seconds whose runs are sent in one batch
_FAULTS: Final = (
    *(OSError, ModelError),
    *(ImportError, ValueError, TypeError, LookupError, AttributeError),  # while building messages
)
_LANGSMITH: Final = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")

# Exported attributes by kind of span: public name, and the lowest level that includes them.
_ALLOWED: Final[Mapping[str, Mapping[str, tuple[str, Level]]]] = {
    "model": {
        "tokens_in": ("gen_ai.usage.input_tokens", "none"),
        "tokens_out": ("gen_ai.usage.output_tokens", "none"),
        "tokens_estimated": ("pagelight.tokens_estimated", "none"),
    },
    "embedding": {"texts": ("pagelight.texts", "none")},
    "leg": {"queries": ("pagelight.queries", "none"), "hits": ("pagelight.hits", "none")},
    "rerank": {"of": ("reranker.top_k", "none")},
    "tool": {
        "passages": ("pagelight.passages", "none"),
        "query": ("gen_ai.tool.call.arguments", "text"),
        "argument": ("gen_ai.tool.call.arguments", "text"),
    },
    "node": {"tokens": ("pagelight.tokens", "none")},
    "fetch": {"url": ("url.full", "text")},
}
# Span name, operation and OpenInference kind; `verify` is the node of that name.
_KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "model": ("chat {name}", "chat", "LLM"),
    "embedding": ("embeddings {name}", "embeddings", "EMBEDDING"),
    "leg": ("retrieval", "retrieval", "RETRIEVER"),
    "rerank": ("rerank {name}", "rerank", "RERANKER"),
    "tool": ("execute_tool {name}", "execute_tool", "TOOL"),
    "node": ("{name}", "", "CHAIN"),
    "verify": ("check", "", "EVALUATOR"),
    "fetch": ("fetch", "", "CHAIN"),
}
_NAME_ATTRIBUTES: Final = {
    "model": "gen_ai.request.model",
    "embedding": "gen_ai.request.model",
    "tool": "gen_ai.tool.name",
    "rerank": "reranker.model_name",
}


class TraceExporter:
    """An exporter with a queue and one background thread; runs that cannot be sent are dropped."""

    def __init__(self, settings: Settings) -> None:
        self._url, self._level = settings.trace_url, settings.trace_content
        pairs = (pair.strip().partition("=") for pair in split_headers(settings.trace_headers))
        self._headers = {name: unquote(value) for name, _, value in pairs}
        self._provider = "openai"
        if not settings.llm_base_url and ":" in settings.llm_model:
            self._provider = settings.llm_model.partition(":")[0]
        self._waiting: queue.Queue[tuple[Any, ...] | None] = queue.Queue(_MAX_RUNS)
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._closing = threading.Event()
        self._failing = False
        if self._url:
            self._thread.start()

    def run(self, run: Run) -> None:
        """Queue a finished run. Returns immediately."""
        self._put(self._spans_of, run, time.time())

    def rate(self, run_id: str, rating: int) -> None:
        """Queue a user's rating of a run's answer. Returns immediately."""
        self._put(self._spans_of_rating, run_id, rating, time.time())

    def close(self) -> None:
        """Flush the queue, for up to two seconds."""
        self._closing.set()
        self._put()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_SECONDS)

    def _put(self, *work: Any) -> None:
        if self._url:
            try:
                self._waiting.put_nowait(work or None)
            except queue.Full:
                self._fail("too many wait")

    def _work(self) -> None:
        ends = False
        while not ends and (first := self._waiting.get()) is not None:
            self._closing.wait(_GATHER)  # batch with answers that follow soon
            works = [first, *(self._waiting.get_nowait() for _ in range(self._waiting.qsize()))]
            ends = None in works
            try:
                self._send([span for work in works if work for span in work[0](*work[1:])])
            except _FAULTS as error:
                self._fail(type(error).__name__)

    def _send(self, spans: list[trace_pb2.Span]) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        _add(resource.resource.attributes, {"service.name": "pagelight", "service.version": __version__})
        scope = resource.scope_spans.add()
        scope.scope.name = "pagelight"
        scope.spans.extend(spans)
        headers = {**self._headers, "content-type": "application/x-protobuf"}
        status, _ = post(self._url, request.SerializeToString(), headers, seconds=_SECONDS)
        if 200 <= status < 300:
            self._failing = False
        else:
            self._fail(f"status {status}")

    def _fail(self, reason: str) -> None:
        """Log a failure once, until sending works again."""
        if not self._failing:
            log.warning("Traces could not be sent to TRACE_URL: %s", reason)
        self._failing = True

    def _allows(self, level: Level) -> bool:
        return _LEVELS.index(level) <= _LEVELS.index(self._level)

    def _spans_of(self, run: Run, now: float) -> Iterator[trace_pb2.Span]:
        answer, began = run.answer, now - (time.monotonic() - run.started_at)
        assert answer is not None, "a run is sent when it has ended"
        began = min([began, *(one.start for one in run.trace.spans)])
        root = _span(run.id, run.id[:16], "", "invoke_agent Pagelight", began, now)
        values = {"openinference.span.kind": "AGENT", "gen_ai.operation.name": "invoke_agent"}
        values |= {"gen_ai.agent.name": "Pagelight", "pagelight.mode": run.mode.name}
        ids: dict[str, str] = {}
        if self._allows("ids"):
            ids = {name: value for name, value in (("session.id", run.thread), ("user.id", run.owner)) if value}
            values |= {"gen_ai.conversation.id": run.thread} if run.thread else {}
            values |= {**ids, "gen_ai.data_source.id": ",".join(run.question.libraries)}
        _add(root.attributes, {**values, **self._of_answer(answer)})
        if answer.outcome == "failed":
            root.status.code = root.status.STATUS_CODE_ERROR
            root.status.message = answer.notice.code if answer.notice else ""
        if answer.statements:
            supported = sum(one.verdict == "supported" for one in answer.statements) / len(answer.statements)
            _evaluation(root, now, "supported", supported, answer.statements[0].by)
        yield root
        for one in run.trace.spans:
            yield self._of_span(run, one, ids)

    def _of_answer(self, answer: Answer) -> dict[str, Any]:
        values: dict[str, Any] = {
            "pagelight.outcome": answer.outcome,
            "pagelight.answerable": answer.answerable,
            "gen_ai.usage.input_tokens": answer.usage.tokens_in,
            "gen_ai.usage.output_tokens": answer.usage.tokens_out,
        }
        if self._allows("ids"):
            values["pagelight.cited_pages"] = list(dict.fromkeys(citation.url_hash for citation in answer.citations))
        if self._allows("text"):
            for side, role, text in (("input", "user", answer.question), ("output", "assistant", answer.text)):
                cut = text[:_LONGEST]
                message = [{"role": role, "parts": [{"type": "text", "content": cut}]}]
                values |= {f"{side}.value": cut, f"gen_ai.{side}.messages": json.dumps(message, ensure_ascii=False)}
        return values

    def _of_span(self, run: Run, span: Span, ids: Mapping[str, Any]) -> trace_pb2.Span:
        name, operation, kind = _KINDS["verify" if (span.kind, span.name) == ("node", "verify") else span.kind]
        values: dict[str, Any] = {**ids, "openinference.span.kind": kind}
        if operation:
            values["gen_ai.operation.name"] = operation
        if span.kind in ("model", "embedding"):
            values["gen_ai.provider.name"] = self._provider
        if span.kind in _NAME_ATTRIBUTES:
            values[_NAME_ATTRIBUTES[span.kind]] = span.name
        for own, (public, level) in _ALLOWED[span.kind].items():
            value = span.attributes.get(own)
            if isinstance(value, int | float) and level == "none":
                values[public] = value
            elif value is not None and level == "text" and self._allows(level):
                values[public] = str(value)[:_LONGEST]
        exported = _span(run.id, span.id, span.parent or run.id[:16], name.format(name=span.name), span.start, span.end)
        if span.kind in ("model", "embedding"):
            exported.kind = exported.SPAN_KIND_CLIENT
        if span.status != "ok":
            exported.status.code, exported.status.message = exported.status.STATUS_CODE_ERROR, span.status
        _add(exported.attributes, values)
        return exported

    def _spans_of_rating(self, run_id: str, rating: int, now: float) -> Iterator[trace_pb2.Span]:
        span = _span(run_id, os.urandom(8).hex(), run_id[:16], "feedback", now, now)
        _add(span.attributes, {"openinference.span.kind": "EVALUATOR"})
        _evaluation(span, now, "thumbs", float(rating > 0), "up" if rating > 0 else "down")
        yield span


def _span(trace: str, own: str, parent: str, name: str, start: float, end: float) -> trace_pb2.Span:
    from opentelemetry.proto.trace.v1 import trace_pb2

    return trace_pb2.Span(
        trace_id=bytes.fromhex(trace),
        span_id=bytes.fromhex(own),
        parent_span_id=bytes.fromhex(parent),
        name=name,
        kind=trace_pb2.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=int(start * 1e9),
        end_time_unix_nano=int(max(start, end) * 1e9),
    )


def _evaluation(span: trace_pb2.Span, now: float, name: str, value: float, by: str) -> None:
    event = span.events.add(name="gen_ai.evaluation.result", time_unix_nano=int(now * 1e9))
    result = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
    _add(event.attributes, {**result, "gen_ai.evaluation.score.label": by})


def _add(attributes: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        target = attributes.add(key=name).value
        if isinstance(value, list):
            for item in value:
                target.array_value.values.add(string_value=str(item))
        elif isinstance(value, bool | int | float):
            field = {bool: "bool_value", int: "int_value", float: "double_value"}[type(value)]
            setattr(target, field, value)
        else:
            target.string_value = make_encodable(str(value))


def disable_langsmith(allowed: bool) -> Notice | None:
    """Turn off LangSmith tracing, which would send it all model calls, if the environment enables it, unless `allowed`.

    Return the outcome; None if the environment does not enable it.
    """
    names = [name for name in _LANGSMITH if os.environ.get(name, "").strip().lower() == "true"]
    if not names:
        return None
    if allowed:
        return Notice("doctor_langsmith_on")
    log.warning("%s is turned off: TRACE_LANGSMITH=on allows it", names[0])
    os.environ.update(dict.fromkeys(names, "false"))
    if (module := sys.modules.get("langsmith.utils")) is not None:
        module.get_env_var.cache_clear()
    return Notice("doctor_langsmith_off")
