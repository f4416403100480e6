"""Spans of a run with their times and outcomes, and its use of chat models, with limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import uuid4

from rag.errors import ModelError
from rag.types import Usage

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


BUDGET_CODES: Final = frozenset({"call_limit", "token_limit"})
"""Error codes of an exhausted budget: the step that raises one is skipped, and the run continues to its answer."""

_SHARE: ContextVar[list[int] | None] = ContextVar("share", default=None)
"""The calls remaining for the current step, if it has its own share."""
_ANSWERS_SHARE: Final = 4  # a quarter of a token budget is reserved for the answer


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a million input and output tokens; None if unknown."""

    tokens_in: float | None = None
    tokens_out: float | None = None

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        if self.tokens_in is None and self.tokens_out is None:
            return None
        return (tokens_in * (self.tokens_in or 0.0) + tokens_out * (self.tokens_out or 0.0)) / 1_000_000


@dataclass(slots=True)
class Meter:
    """A counter of one run's usage. Calls run in one event loop, so it needs no lock."""

    prices: Prices = field(default_factory=Prices)
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    prompts: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def add(self, tokens_in: int, tokens_out: int, *, estimated: bool = False) -> None:
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.estimated = self.estimated or estimated

    def usage(self) -> Usage:
        money = self.prices.cost(self.tokens_in, self.tokens_out) if self.calls else None
        return Usage(self.calls, self.tokens_in, self.tokens_out, self.estimated, money, tuple(sorted(self.prompts)))


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """The usage of a run when it was interrupted."""

    seconds: float = 0.0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False


def sum_usages(usages: Sequence[Usage]) -> Usage:
    """Return the total usage of several answers; its `money` covers those with a price, and is None if none has one."""
    money = [usage.money for usage in usages if usage.money is not None]
    return Usage(
        calls=sum(usage.calls for usage in usages),
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
        estimated=any(usage.estimated for usage in usages),
        money=sum(money) if money else None,
    )


class CallBudget:
    """The limits on the model calls and tokens of one run.

    Calls are counted before they are made, tokens only afterwards: a single call may exceed `tokens`, and is the last.
    """

    def __init__(
        self, limit: int, *, tokens: int | None = None, meter: Meter | None = None, max_calls: int | None = None
    ) -> None:
        """`max_calls` caps the calls, even if the limits are raised."""
        self._max_calls = max_calls
        self.limit = self._limit = limit if max_calls is None else min(limit, max_calls)
        self.tokens = self._tokens = tokens
        self.meter = meter or Meter()
        self.used = 0
        self.timed_out = False
        """True after a call timed out: the run makes no further calls."""
        self._reserved = 0

    def restore(self, earlier: UsageSnapshot) -> None:
        """Start from the run's earlier usage."""
        self.used = self.meter.calls = earlier.calls
        self.meter.tokens_in, self.meter.tokens_out = earlier.tokens_in, earlier.tokens_out
        self.meter.estimated = earlier.estimated

    def raise_by(self, calls: int, tokens: int) -> None:
        """Raise the original limits by these amounts."""
        limit = self._limit + calls
        self.limit = limit if self._max_calls is None else min(limit, self._max_calls)
        self.tokens = None if self._tokens is None else self._tokens + tokens

    def snapshot(self, seconds: float) -> UsageSnapshot:
        """Return the usage so far; `seconds` is the time worked."""
        meter = self.meter
        return UsageSnapshot(seconds, self.used, meter.tokens_in, meter.tokens_out, meter.estimated)

    @property
    def remaining(self) -> int:
        return 0 if self._has_spent_tokens() else max(0, self.limit - self._reserved - self.used)

    def spend(self) -> None:
        """Count a call before it is made.

        Raises ModelError: `call_limit` or `token_limit` if the budget is exhausted, `model_slow` after a timeout.
        """
        if self.timed_out:
            raise ModelError("model_slow")
        if self._has_spent_tokens():
            raise ModelError("token_limit", limit=self.tokens)
        share = _SHARE.get()
        if not self.remaining or (share and share[0] < 1):
            raise ModelError("call_limit", limit=self.limit)
        if share:
            share[0] -= 1
        self.used += 1

    @contextmanager
    def reserve(self, calls: int) -> Iterator[None]:
        """Reserve `calls` calls within the context: a step that retries must not use up the answer's call."""
        self._reserved += calls
        try:
            yield
        finally:
            self._reserved -= calls

    @contextmanager
    def share(self, calls: int) -> Iterator[None]:
        """Limit the calls of this task within the context, so that parallel steps cannot use up each other's."""
        token = _SHARE.set([calls])
        try:
            yield
        finally:
            _SHARE.reset(token)

    @property
    def final_calls(self) -> int:
        """The number of final calls: the answer, and its check if the limit allows more than these two."""
        return 2 if self.limit > 2 else 1

    def reserve_final_calls(self) -> AbstractContextManager[None]:
        return self.reserve(self.final_calls)

    def _has_spent_tokens(self) -> bool:
        if self.tokens is None:
            return False
        reserve = self.tokens // _ANSWERS_SHARE if self._reserved else 0
        return self.meter.tokens + reserve >= self.tokens
