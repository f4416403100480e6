"""The modes of answering by name: each is a graph in its own folder and a row here. They don't depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag.graphs.answer.mode import LoopMode
from rag.graphs.judge.mode import JudgeMode
from rag.graphs.reports import RemoveMode, SaveMode
from rag.graphs.research.mode import ResearchMode
from rag.graphs.summary.mode import SummaryMode
from rag.graphs.tools.mode import ToolMode
from rag.runs.run import Mode

_ROWS: Final[tuple[Mode, ...]] = (
    LoopMode("fast", max_calls=3),
    LoopMode("deep", max_calls=12),
    ResearchMode(),
    JudgeMode(),
    ToolMode(),
    RemoveMode(),
    SaveMode(),
    SummaryMode(),
)
MODES: Final[Mapping[str, Mode]] = MappingProxyType({mode.name: mode for mode in _ROWS})
