"""The answer options chosen in one tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from rag.reasoning.history import WINDOW, MemoryKind
from rag.runs.options import TreeOrder
from rag.types import RunMode

MODES: Final[tuple[RunMode, ...]] = ("fast", "deep", "research", "judge")
"""Modes that a person chooses from; the others come from the route of a message."""
NEED_MODEL: Final[tuple[RunMode, ...]] = ("deep", "judge")
"""Modes that do little more than the first without a chat model."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Answer options; None and `auto` leave the choice to the mode and the settings."""

    compose: str = "auto"
    approve: bool = False
    judge_each: bool = False
    tree_order: TreeOrder = "breadth"
    memory: MemoryKind = "recent"
    window: int = WINDOW
    calls: int | None = None
    tokens: int | None = None
    seconds: int | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the chosen options as arguments of `RunOptions`."""
        standard = Choices()
        return {name: value for name, value in asdict(self).items() if value != getattr(standard, name)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Choices:
        """Return the choices in the settings of an earlier question."""
        values = {option.name: settings[option.name] for option in fields(cls) if option.name in settings}
        return cls(**values | {"stop": tuple(settings.get("stop", ()))})
