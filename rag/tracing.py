"""Traces of how a question was answered, as nested spans with their times and outcomes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import uuid4

Kind = Literal["node", "tool", "leg", "embedding", "rerank", "model", "fetch"]
Status = Literal["", "ok", "error", "stopped"]

_MAX_SPANS: Final = 2_000  # spans per trace
_EPOCH: Final = time.time() - time.perf_counter()


def _now() -> float:
    """Return seconds since 1970, from a monotonic clock."""
    return _EPOCH + time.perf_counter()


@dataclass(slots=True)
class Span:
    """One operation. `start` and `end` are seconds since 1970, `attributes` JSON values; no `status` until it ends."""

    name: str
    kind: Kind
    parent: str = ""
    id: str = field(default_factory=lambda: uuid4().hex[:16])
    start: float = field(default_factory=_now)
    end: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict)
    status: Status = ""

    @property
    def ms(self) -> float:
        return round((self.end - self.start) * 1000, 3)


class Trace:
    """The spans of one run, ordered by start. Thread-safe."""

    def __init__(self, before: Sequence[Span] = ()) -> None:
        """`before` are spans of the same run from a process that has ended."""
        self.spans = list(before)

    def begin(self, name: str, kind: Kind, **attributes: Any) -> Span:
        """Start a child span of the current one; the caller must end it."""
        current = _CURRENT.get()
        span = Span(name, kind, current[1].id if current and current[1] else "", attributes=attributes)
        if len(self.spans) < _MAX_SPANS:
            self.spans.append(span)
        return span

    def find_completed(self, kind: Kind) -> list[Span]:
        """Return the spans of a kind that ended successfully."""
        return [span for span in self.spans if span.kind == kind and span.status == "ok"]

    def close(self) -> None:
        """End all open spans as stopped."""
        for span in self.spans:
            if not span.status:
                end(span, "stopped")

    def activate(self) -> Token[tuple[Trace, Span | None] | None]:
        """Make `span` write to this trace in the current context, which tasks and `asyncio.to_thread` inherit."""
        return _CURRENT.set((self, None))


_CURRENT: ContextVar[tuple[Trace, Span | None] | None] = ContextVar("trace", default=None)


def end(span: Span, status: Status = "ok", **attributes: Any) -> None:
    """End a span, and add attributes."""
    span.attributes.update(attributes)
    span.end, span.status = _now(), status


@contextmanager
def span(name: str, kind: Kind, **attributes: Any) -> Iterator[Span]:
    """Record the body of a with statement as a span of the current trace; without a trace, it is discarded."""
    trace = (_CURRENT.get() or (Trace(), None))[0]
    current = trace.begin(name, kind, **attributes)
    token = _CURRENT.set((trace, current))
    status: Status = "error"
    try:
        yield current
        status = "ok"
    except (asyncio.CancelledError, GeneratorExit):
        status = "stopped"
        raise
    finally:
        _CURRENT.reset(token)
        end(current, status)
