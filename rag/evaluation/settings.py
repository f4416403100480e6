"""Settings for asking questions: points in the grid of modes, strategies, libraries and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from rag.evaluation.cases import Case
from rag.runs.options import Question, RunOptions
from rag.store.values import Filters
from rag.web.url_key import url_hash

NO_MODEL: Final = "none"
"""A model name that means none: answers are quoted."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A point in the grid. `library` is another than the run's, such as one by another chunker; `model` a chat model of
    the service in the settings, or NO_MODEL; "" is the default. `k` of `fetch_k` candidates are used, 0 is the default.
    """

    mode: str = "fast"
    strategy: str = ""
    library: str = ""
    model: str = ""
    k: int = 0
    fetch_k: int = 0

    @property
    def name(self) -> str:
        """A name that is unique among the settings of a run."""
        if self == CLASSIC:
            return self.strategy
        numbers = [f"{name}={number}" for name, number in (("k", self.k), ("fetch_k", self.fetch_k)) if number]
        return "/".join(filter(None, [self.mode, self.strategy, self.library, self.model, *numbers]))

    def question(self, case: Case, library: str) -> Question:
        options = RunOptions(strategy=self.strategy, k=self.k, fetch_k=self.fetch_k)
        scope = Filters(without=tuple(map(url_hash, case.without)))
        return Question(case.question, (self.library or library,), self.mode, scope, options)


CLASSIC: Final = Setting("fast", "classic", k=10, fetch_k=20)
"""The setup of tutorials: an answer from ten of the twenty passages nearest in meaning, by MMR (λ = 0.7)."""


def grid(
    modes: Sequence[str] = (),
    strategies: Sequence[str] = (),
    libraries: Sequence[str] = (),
    models: Sequence[str] = (),
    *,
    classic: bool = False,
) -> list[Setting]:
    """Return all combinations; an empty axis has only the default."""
    axes = (modes or ["fast"], strategies or [""], libraries or [""], models or [""])
    return [*(Setting(*point) for point in product(*axes)), *([CLASSIC] if classic else [])]
