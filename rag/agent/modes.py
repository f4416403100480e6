"""Which graph a mode runs, and how many model calls it may make. A new mode is a row here and a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rag.types import RunMode

if TYPE_CHECKING:
    from rag.agent.loop.graph import Graph


@dataclass(frozen=True, slots=True)
class Mode:
    """A graph takes {"question", "run_mode", "messages"} and a LoopContext, and ends with a LoopState."""

    name: RunMode
    max_calls: int
    build: Callable[[Any], Graph]


def _fast(saver: Any) -> Graph:
    from rag.agent.loop.graph import build_fast

    return build_fast(saver)


def _deep(saver: Any) -> Graph:
    from rag.agent.loop.graph import build_deep

    return build_deep(saver)


MODES: Mapping[RunMode, Mode] = MappingProxyType(
    {
        "fast": Mode("fast", max_calls=3, build=_fast),
        "deep": Mode("deep", max_calls=12, build=_deep),
    }
)


@cache
def graph_of(mode: RunMode, saver: Any = None) -> Graph:
    """Return the graph of `mode`, built on first use and shared by all runs; `saver` keeps its conversations."""
    return MODES[mode].build(saver)
