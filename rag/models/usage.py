"""What a run may spend on chat models, and what it has spent: calls, tokens, money."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from rag.errors import ModelError
from rag.types import Usage

BUDGET_CODES: Final = frozenset({"call_limit", "token_limit"})
"""What a spent budget raises: a step that meets one of these is left out, and the run goes on to its answer."""

_SHARE: ContextVar[list[int] | None] = ContextVar("share", default=None)
"""The calls that the step at work here may still make, where it has a share of its own."""
_ANSWERS_SHARE: Final = 4  # a quarter of a token budget is kept for the answer


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, each way; None where it is not known."""

    tokens_in: float | None = None
    tokens_out: float | None = None

    def of(self, tokens_in: int, tokens_out: int) -> float | None:
        if self.tokens_in is None and self.tokens_out is None:
            return None
        return (tokens_in * (self.tokens_in or 0.0) + tokens_out * (self.tokens_out or 0.0)) / 1_000_000


@dataclass(slots=True)
class Meter:
    """Counts what one run uses. Calls run in one event loop, so it needs no lock."""

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
        """Count one call."""
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.estimated = self.estimated or estimated

    def usage(self) -> Usage:
        money = self.prices.of(self.tokens_in, self.tokens_out) if self.calls else None
        return Usage(self.calls, self.tokens_in, self.tokens_out, self.estimated, money, tuple(sorted(self.prompts)))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run had used when it was put aside."""

    seconds: float = 0.0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False


def sum_of(usages: Sequence[Usage]) -> Usage:
    """The usage of several answers together; money only where some of them have a price."""
    money = [usage.money for usage in usages if usage.money is not None]
    return Usage(
        calls=sum(usage.calls for usage in usages),
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
        estimated=any(usage.estimated for usage in usages),
        money=sum(money) if money else None,
    )


class CallBudget:
    """The model calls and tokens of one run: what was used, and limits that cannot be passed.

    `used` is known before each call, tokens only after it: a call that is allowed may pass `tokens`
    once, and is then the last.
    """

    def __init__(
        self,
        limit: int,
        *,
        tokens: int | None = None,
        meter: Meter | None = None,
        spent: Spent | None = None,
        most: int | None = None,
    ) -> None:
        """`spent` is what the run had used before; nothing raises the calls above `most`."""
        self._most = most
        self.limit = self._limit = limit if most is None else min(limit, most)
        self.tokens = self._tokens = tokens
        self.meter = meter or Meter()
        self.used = 0
        self.slow = False
        """Whether a call of the run timed out: the model is not asked again for it."""
        self._kept = 0
        if spent:
            self.take_up(spent)

    def take_up(self, spent: Spent) -> None:
        """Begin with what the run had used before."""
        self.used = self.meter.calls = spent.calls
        self.meter.tokens_in, self.meter.tokens_out = spent.tokens_in, spent.tokens_out
        self.meter.estimated = spent.estimated

    def raise_by(self, calls: int, tokens: int) -> None:
        """Allow so much more than at first."""
        raised = self._limit + calls
        self.limit = raised if self._most is None else min(raised, self._most)
        self.tokens = None if self._tokens is None else self._tokens + tokens

    def spent(self, seconds: float) -> Spent:
        """What was used so far, in so many seconds of work."""
        meter = self.meter
        return Spent(seconds, self.used, meter.tokens_in, meter.tokens_out, meter.estimated)

    @property
    def left(self) -> int:
        return 0 if self._tokens_spent() else max(0, self.limit - self._kept - self.used)

    def spend(self) -> None:
        """Count one call that is about to be made; raises ModelError when none is left.

        Its code is `call_limit` or `token_limit`; `model_slow` after a call that timed out.
        """
        if self.slow:
            raise ModelError("model_slow")
        if self._tokens_spent():
            raise ModelError("token_limit", limit=self.tokens)
        share = _SHARE.get()
        if not self.left or (share and share[0] < 1):
            raise ModelError("call_limit", limit=self.limit)
        if share:
            share[0] -= 1
        self.used += 1

    @contextmanager
    def keeping(self, calls: int) -> Iterator[None]:
        """Within, `calls` calls are out of reach: a step that retries must not use up the answer's call."""
        self._kept += calls
        try:
            yield
        finally:
            self._kept -= calls

    @contextmanager
    def share(self, calls: int) -> Iterator[None]:
        """Within, in this task alone, at most so many calls: steps side by side cannot use up each other's."""
        token = _SHARE.set([calls])
        try:
            yield
        finally:
            _SHARE.reset(token)

    @property
    def end(self) -> int:
        """The answer's call, and that of its check where the limit has room for more than both."""
        return 2 if self.limit > 2 else 1

    def keeping_end(self) -> AbstractContextManager[None]:
        return self.keeping(self.end)

    def _tokens_spent(self) -> bool:
        if self.tokens is None:
            return False
        reserve = self.tokens // _ANSWERS_SHARE if self._kept else 0
        return self.meter.tokens + reserve >= self.tokens
