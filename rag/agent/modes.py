"""The ways to answer, by name. A new one is a row here and a folder."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag.agent.loop.mode import LoopMode
from rag.agent.run import Mode

_ROWS: Final[tuple[Mode, ...]] = (
    LoopMode("fast", max_calls=3),
    LoopMode("deep", max_calls=12),
)
MODES: Final[Mapping[str, Mode]] = MappingProxyType({mode.name: mode for mode in _ROWS})
