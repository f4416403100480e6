"""What happens in a run, for whoever looks on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

EventKind = Literal["step", "standalone", "token", "reset", "waiting", "answer"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run; `seq` counts from 0.

    `data` is for `step` {"node", "state": "started"} or {"node", "state": "finished", "ms", "detail"},
    for `standalone` what a follow-up was understood as, for `token` a piece of text, for `reset` an empty
    text (discard the tokens so far), for `waiting` the Waits of a person, and for `answer`, always the last, the
    Answer. `path` names the nodes in whose nested graphs it happened, outermost first; none for the mode's own graph.
    """

    seq: int
    kind: EventKind
    data: Any
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """What a run waits for a person with: `asks` is what its node gave LangGraph's `interrupt`, JSON values."""

    id: str
    asks: Any
