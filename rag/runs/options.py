"""A question and the options of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag.config import Settings
from rag.models.sampling import SAMPLING
from rag.models.usage import Prices
from rag.reasoning.composing import Compose
from rag.reasoning.history import WINDOW, Memory, MemoryKind
from rag.store.values import Filters

TreeOrder = Literal["breadth", "best"]
Leave = Literal["", "ask", "allowed"]
"""Web search: never, on request, or always."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Choices and limits of one run; None means the mode's own or none.

    `route` is what the message was taken for, empty for a question. `strategy` is how it searches, by default as the
    settings say. `standalone` is the question as the person
    corrected it: it is searched for and answered. `compose`
    says how an answer is put together from many passages, `distill` whether they are cut down to the
    relevant sentences first (None: when they do not fit). With `approve` a plan waits for the
    person before it is carried out, where the mode makes one; `searches` is how many such a mode makes at most;
    `web` says whether its steps may search the open web too, `code` whether a model may run code.
    `judge_each` has passages judged one by one, `tree_order`
    says which levels of a tree come first, and `branch` names an earlier tree, and what is changed of it, that one goes
    on from: `node`, `checkpoint`, and as in `rag.graphs.judge.tree.branched`.
    `memory` is what is carried along of the conversation before the question, `window` how many exchanges of it, where
    that is chosen. `context_tokens` is what the chat model takes in at once. `calls`, `tokens` and `seconds` end the
    run with the best answer so far. A search hands on `k` passages of `fetch_k` candidates; 0 is as many as usual.
    `weights` are those of libraries, by name, where several are searched; 1 where none is given.
    From `max_tokens`, of the answer alone, to `stop` they are the chat model's: see `rag.models.sampling`.
    """

    strategy: str = ""
    standalone: str = ""
    compose: Compose = "auto"
    distill: bool | None = None
    approve: bool = False
    searches: int | None = None
    web: Leave = ""
    judge_each: bool = False
    tree_order: TreeOrder = "breadth"
    branch: Mapping[str, Any] = field(default_factory=dict)
    memory: MemoryKind = "recent"
    window: int = WINDOW
    context_tokens: int = 16_000
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    prices: Prices = field(default_factory=Prices)
    weights: Mapping[str, float] = field(default_factory=dict)
    k: int = 0
    fetch_k: int = 0
    max_tokens: int | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    route: str = ""
    code: bool = False
    saving: str = ""
    confirmed: bool = False
    first: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    locale: str = ""

    @property
    def sampling(self) -> dict[str, Any]:
        """The parameters of the chat model that were chosen (JSON values)."""
        chosen = {name: getattr(self, name) for name in SAMPLING} | {"stop": list(self.stop)}
        return {name: value for name, value in chosen.items() if value not in (None, [])}

    @property
    def remembers(self) -> Memory:
        """Return the part of a conversation to include; a buffer has half of the chat model's context."""
        return Memory(self.memory, self.window, self.context_tokens // 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its libraries, mode, filters and options."""

    text: str
    libraries: tuple[str, ...] = ()
    mode: str = "fast"
    scope: Filters = field(default_factory=Filters)
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def library(self) -> str:
        """The first, which the conversation belongs to."""
        return self.libraries[0]

    def limited(self, settings: Settings) -> Question:
        """The same with the strategy, sizes, prices and limits of the settings, where no other was chosen."""
        own = self.options
        options = replace(
            own,
            strategy=own.strategy or settings.strategy,
            context_tokens=settings.llm_context_tokens,
            code=settings.tools_code,
            calls=settings.answer_max_calls if own.calls is None else own.calls,
            tokens=settings.answer_max_tokens if own.tokens is None else own.tokens,
            seconds=settings.answer_max_seconds if own.seconds is None else own.seconds,
            prices=Prices(settings.llm_price_in, settings.llm_price_out),
        )
        return replace(self, options=options)
