"""What can be chosen for one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rag.agent.usage import Prices
from rag.config import Settings

Compose = Literal["auto", "stuff", "refine", "map_reduce"]
COMPOSE: tuple[Compose, ...] = ("auto", "stuff", "refine", "map_reduce")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Choices and limits of one run; None means the mode's own or none.

    `standalone` is the question as the person corrected it: it is searched for and answered. `compose`
    says how an answer is put together from many passages, `distill` whether they are cut down to the
    sentences that bear on the question first (None: when they do not fit). `context_tokens` is what the
    chat model takes in at once. `calls`, `tokens` and `seconds` end the run with the best answer so far.
    """

    standalone: str = ""
    compose: Compose = "auto"
    distill: bool | None = None
    context_tokens: int = 16_000
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    prices: Prices = field(default_factory=Prices)


def options_from(settings: Settings, **chosen: Any) -> RunOptions:
    """The limits and sizes of the settings, with what was chosen for this run before them."""
    usual = {
        "context_tokens": settings.llm_context_tokens,
        "calls": settings.answer_max_calls,
        "tokens": settings.answer_max_tokens,
        "seconds": settings.answer_max_seconds,
        "prices": Prices(settings.llm_price_in, settings.llm_price_out),
    }
    return RunOptions(**{**usual, **{name: value for name, value in chosen.items() if value is not None}})
