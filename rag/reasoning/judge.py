"""What judge mode asks: whether a passage answers a question, and if it almost does, what it lacks.

A chat model and rules both answer. Where the model fails, its level is judged by the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Score = Literal[0, 1, 2]
"""2 answers the question, 1 bears on it and lacks something, 0 is beside the point."""

JUDGED: Final = 5
"""Passages of a search, best first, that are judged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of a passage. `missing`, for a 1, is a question that is complete in itself.

    `quote` is the sentence, to the letter, that answers or bears on the question; `worth` (0 to 1) how likely what is
    missing leads to the answer, where a judge can tell.
    """

    score: Score
    missing: str = ""
    reason: str = ""
    quote: str = ""
    worth: float = 0.0
