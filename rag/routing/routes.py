"""The ways that a message can go, and what is known of one once it was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from rag.types import Notice

Route = Literal[
    "ask",
    "save",
    "save_then_ask",
    "summarise",
    "what_changed",
    "statistics",
    "calculate",
    "date",
    "web",
    "small_talk",
    "unknown",
]
RouteBy = Literal["rules", "classifier", "model", "person"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)


@dataclass(frozen=True, slots=True)
class Routed:
    """The route of a message, who chose it and why, and how sure (0 to 1) that is."""

    route: Route
    by: RouteBy
    reason: Notice
    confidence: float = 1.0
    addresses: tuple[str, ...] = ()
    rest: str = ""

    def plain(self) -> Mapping[str, Any]:
        """As JSON values."""
        return asdict(self)
