"""What happened while a question was answered, as spans: what was done, when, within what, and how it went."""

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

_MOST: Final = 2_000  # spans of one trace
_EPOCH: Final = time.time() - time.perf_counter()


def _now() -> float:
    """Seconds since 1970, by a clock that is never set back."""
    return _EPOCH + time.perf_counter()


@dataclass(slots=True)
class Span:
    """`start` and `end` are seconds since 1970, `attributes` JSON values. Until it ends it has no `status`."""

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
    """The spans of one run, in the order in which they began. Safe to share between threads."""

    def __init__(self, before: Sequence[Span] = ()) -> None:
        """`before` are those of the same run in a process that has ended."""
        self.spans = list(before)

    def begin(self, name: str, kind: Kind, **attributes: Any) -> Span:
        """Begin a span within the one that is under way here; whoever begins it ends it."""
        current = _CURRENT.get()
        span = Span(name, kind, current[1].id if current and current[1] else "", attributes=attributes)
        if len(self.spans) < _MOST:
            self.spans.append(span)
        return span

    def done(self, kind: Kind) -> list[Span]:
        """Those of a kind that ended well."""
        return [span for span in self.spans if span.kind == kind and span.status == "ok"]

    def close(self) -> None:
        """End what is still under way: the run was stopped."""
        for span in self.spans:
            if not span.status:
                end(span, "stopped")

    def activate(self) -> Token[tuple[Trace, Span | None] | None]:
        """Let `span` write here, in what this task or thread does from now on and in what it starts."""
        return _CURRENT.set((self, None))


_CURRENT: ContextVar[tuple[Trace, Span | None] | None] = ContextVar("trace", default=None)


def end(span: Span, status: Status = "ok", **attributes: Any) -> None:
    """End it, with what is known of it by now."""
    span.attributes.update(attributes)
    span.end, span.status = _now(), status


@contextmanager
def span(name: str, kind: Kind, **attributes: Any) -> Iterator[Span]:
    """What is done within is a span of the trace that is under way here; where there is none, it is kept nowhere."""
    trace = (_CURRENT.get() or (Trace(), None))[0]
    begun = trace.begin(name, kind, **attributes)
    token = _CURRENT.set((trace, begun))
    status: Status = "error"
    try:
        yield begun
        status = "ok"
    except (asyncio.CancelledError, GeneratorExit):
        status = "stopped"
        raise
    finally:
        _CURRENT.reset(token)
        end(begun, status)
