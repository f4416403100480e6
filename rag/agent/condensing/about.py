"""What a question was about, as far as the next one may point back to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """Of a question and its answer, each empty where nothing tells it.

    `topic` is the thing; `person` who `he` would be; `sides` the things that were compared or named together;
    `deed` what was to be done, with its verb; `counted` of what it was asked which or how many there are.
    """

    topic: str = ""
    person: str = ""
    sides: tuple[str, ...] = ()
    deed: str = ""
    counted: str = ""
