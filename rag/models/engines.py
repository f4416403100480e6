"""Which forward pass to use, ours or the loaded model's, and in which precision: tried, compared and timed at load."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.models.tokens import Batch

log = logging.getLogger(__name__)

Kind = Literal["own", "loaded"]
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Choice:
    """A forward pass, by name. `times` is how often faster it was than the loaded model in float32; 0 if untimed."""

    kind: Kind
    half: bool
    times: float = 0.0

    @property
    def precision(self) -> str:
        return "bfloat16" if self.half else "float32"


class Engines(Protocol):
    """The forward passes that a model has; each turns a batch into a row of numbers a text."""

    def own(self, *, half: bool) -> Callable[[Batch], Rows] | None:
        """Ours; None where it does not fit the model or the device."""
        ...

    def loaded(self, *, half: bool) -> Callable[[Batch], Rows]:
        """The loaded model's own."""
        ...

    def close(self, exact: Rows, rows: Rows) -> bool:
        """Whether `rows` may stand for `exact`."""
        ...


def choose(
    engines: Engines,
    sample: Batch,
    *,
    half: bool,
    run: Callable[[Callable[[], Any]], Any],
    known: Choice | None = None,
) -> tuple[Callable[[Batch], Rows], Choice]:
    """The first forward pass that gives what the loaded model gives in float32, and sooner.

    They are tried in the order of their speed where they work at all, so one that passes is the fastest.
    `half` says whether the device has half precision; `run` runs work in the thread that will do it. A `known`
    choice is compared again but not timed. Takes about four passes of the sample in float32, else one.
    """
    exact = engines.loaded(half=False)
    wanted: Rows = run(partial(exact, sample))
    slowest: float = 0.0 if known else run(partial(_seconds, exact, sample))  # before other candidates touch the model
    for kind, halved in _candidates(half, known):
        engine = engines.own(half=halved) if kind == "own" else engines.loaded(half=halved)
        if engine is None:
            continue
        rows: Rows = run(partial(engine, sample))
        if not engines.close(wanted, rows):
            log.info("The %s pass (half precision: %s) would change the results, so it is not used", kind, halved)
            continue
        if known is not None:
            return engine, known
        seconds: float = run(partial(_seconds, engine, sample))
        if seconds < slowest:
            return engine, Choice(kind, halved, round(slowest / seconds, 1))
    return engines.loaded(half=False), Choice("loaded", False)


def _candidates(half: bool, known: Choice | None) -> list[tuple[Kind, bool]]:
    if known is not None:
        return [(known.kind, known.half)]
    return [("own", True), ("own", False), ("loaded", True)] if half else [("own", False)]


def _seconds(engine: Callable[[Batch], Rows], sample: Batch) -> float:
    """The shorter of two passes: one may have been interrupted."""
    spent = []
    for _ in range(2):
        began = time.perf_counter()
        engine(sample)
        spent.append(time.perf_counter() - began)
    return min(spent)
