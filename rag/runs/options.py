"""A question and the options of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag.config import Settings
from rag.models.servers import SAMPLING
from rag.models.usage import Prices
from rag.reasoning.composing import Compose
from rag.reasoning.history import DEFAULT_WINDOW, Memory, MemoryKind
from rag.store.values import Filters

TreeOrder = Literal["breadth", "best"]
WebAccess = Literal["", "ask", "allowed"]
"""Web search: never, on request, or always."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Choices and limits of one run; None means the mode's default or no limit.

    `route` is the kind of message, empty for a question. `strategy` is the search strategy, by default that of the
    settings. `standalone` is the question as corrected by the user, which is searched for and answered. `compose` is
    how an answer combines many passages, `distill` whether they are first reduced to the relevant sentences (None: if
    they do not fit). With `approve`, a mode with a plan waits for the user to approve it; `searches` is the maximum
    number of its searches; `web` is whether its steps may search the web, `code` whether a model may run code. With
    `judge_each`, passages are judged one by one; `tree_order` is which levels of a tree come first; `branch` is an
    earlier tree to continue and the changes to it: `checkpoint`, and those of `rag.graphs.judge.tree.branch`. `memory`
    is the part of the conversation to include, `window` its number of exchanges, if it is "window". `context_tokens` is
    the context size of the chat model. `calls`, `tokens` and `seconds` are limits, after which the run returns the best
    answer so far. A search returns `k` passages of `fetch_k` candidates; 0 is the default. `weights` are those of
    libraries, by name, if several are searched; 1 by default. `max_tokens` (of the answer alone) to `stop` are
    parameters of the chat model, see `rag.models.servers`. `saving` is an import job to wait for, `confirmed` whether
    the user confirmed saving many links. Pages in `first` are searched first; `without` are kinds of options not to
    read from the message. `locale` is the language of reports, by default that of the question.
    """

    strategy: str = ""
    standalone: str = ""
    compose: Compose = "auto"
    distill: bool | None = None
    approve: bool = False
    searches: int | None = None
    web: WebAccess = ""
    judge_each: bool = False
    tree_order: TreeOrder = "breadth"
    branch: Mapping[str, Any] = field(default_factory=dict)
    memory: MemoryKind = "recent"
    window: int = DEFAULT_WINDOW
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
        """Return the chosen parameters of the chat model (JSON values)."""
        parameters = {name: getattr(self, name) for name in SAMPLING} | {"stop": list(self.stop)}
        return {name: value for name, value in parameters.items() if value not in (None, [])}

    @property
    def memory_scope(self) -> Memory:
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
        """The first library, to which the conversation belongs."""
        return self.libraries[0]

    def with_defaults(self, settings: Settings) -> Question:
        """Return the question with the settings' strategy, sizes, prices and limits as defaults."""
        chosen = self.options
        options = replace(
            chosen,
            strategy=chosen.strategy or settings.strategy,
            context_tokens=settings.llm_context_tokens,
            code=settings.tools_code,
            calls=settings.answer_max_calls if chosen.calls is None else chosen.calls,
            tokens=settings.answer_max_tokens if chosen.tokens is None else chosen.tokens,
            seconds=settings.answer_max_seconds if chosen.seconds is None else chosen.seconds,
            prices=Prices(settings.llm_price_in, settings.llm_price_out),
        )
        return replace(self, options=options)
