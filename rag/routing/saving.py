"""What is asked of pages that a message has saved first: its words without those that say "save"."""

from __future__ import annotations

import re
from typing import Final

from rag.routing.features import only_saves

_JOINT: Final = re.compile(
    r"[,.;:!?\n，。；：！？]+|\s(?:and then|and|then)\s|然后|之后|接着|并且|并|再", re.IGNORECASE
)
_AROUND: Final = " \t\n,.;:，。；：、"


def question_of(rest: str) -> str:
    """The words from the first clause on that does more than ask for something to be saved."""
    place = 0
    for joint in _JOINT.finditer(rest):
        head = rest[place : joint.start()].strip(_AROUND)
        if (head and not only_saves(head)) or not rest[joint.end() :].strip(_AROUND):
            break
        place = joint.end()
    return rest[place:].strip(_AROUND)
