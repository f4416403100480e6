"""Cuts passages down to the sentences that bear on the question, before a model reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rag.text import split_sentences
from rag.types import Passage

_GAP: Final = " … "
_BESIDE: Final = 0.4  # what a sentence gets of its better neighbour's worth: it may hold what a pronoun there means
_BY_RANK: Final = 0.05  # what a passage's place costs each of its sentences


def distilled(passages: Sequence[Passage], worth: Callable[[str], float], share: float) -> list[Passage]:
    """The passages in their order with about `share` of their text: the best sentences of all by `worth`.

    Gaps are marked with an ellipsis. A passage of which nothing is kept stays with its best sentence, so
    that the numbers do not change. Offsets are those of the whole passage.
    """
    if share >= 1.0:
        return list(passages)
    spans = [split_sentences(passage.text) for passage in passages]
    room = share * sum(len(passage.text) for passage in passages)
    ranked = sorted(
        (
            (-value + _BY_RANK * place, place, index)
            for place, passage in enumerate(passages)
            for index, value in enumerate(_values(passage.text, spans[place], worth))
        )
    )
    kept: list[set[int]] = [set() for _ in passages]
    for _, place, index in ranked:
        start, end = spans[place][index]
        if room >= end - start or not kept[place]:
            kept[place].add(index)
            room -= end - start
    return [replace(passage, text=_joined(passage.text, spans[i], kept[i])) for i, passage in enumerate(passages)]


def _values(text: str, spans: Sequence[tuple[int, int]], worth: Callable[[str], float]) -> list[float]:
    own = [worth(text[start:end]) for start, end in spans]
    return [
        value + _BESIDE * max(own[i - 1] if i else 0.0, own[i + 1] if i + 1 < len(own) else 0.0)
        for i, value in enumerate(own)
    ]


def _joined(text: str, spans: Sequence[tuple[int, int]], kept: set[int]) -> str:
    out = ""
    for index in sorted(kept):
        start, end = spans[index]
        follows = index - 1 in kept
        lead = text[spans[index - 1][1] : start] if follows else (_GAP if out else "")
        out += lead + text[start:end]
    return out
