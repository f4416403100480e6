"""Reads a question beside the sentences that were found: how likely is each the one that answers, and does any?

A cross-encoder (Nogueira & Cho 2019, "Passage Re-ranking with BERT", arXiv 1901.04085) over the built-in
multilingual-e5-small, fine-tuned on questions in people's own words, two in five of which their page does not answer.
What ships are the differences to the built-in weights, of low rank, and a head: `python -m benchmarks.answer_reader`
makes them again. See docs/decisions/0012-quoted-answers.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rag.models.engines import Workers, has_bfloat16
from rag.models.tokens import Tokens, padded
from rag.models.transformer import EncoderPass, read_bert

WEIGHTS: Final = Path(__file__).with_name("answer_reader.safetensors")
STRETCHES: Final = 4
"""Stretches of passages that are read for one question."""
MOST_TOKENS: Final = 512
_QUESTION, _TITLE, _HEADING, _LINE, _STRETCH = 64, 20, 12, 80, 128  # tokens
_REMEMBERED: Final = 16  # questions: an answer asks for the same twice
_BEGIN, _PAD, _END, _UNKNOWN = 0, 1, 2, 3
Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids, and where each line stands in them."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of the passage with the number `passage`, which has a title and a nearest heading."""

    passage: int
    title: str
    heading: str
    text: str


class Coded:
    """A question and lines of passages as token ids."""

    def __init__(self, tokens: Tokens, question: str, lines: Sequence[Line]) -> None:
        def encode(texts: Sequence[str], most: int) -> list[list[int]]:
            return [ids[:most] for ids in tokens.encode(texts, special=False)]

        self._asked = [_BEGIN, *encode([f"query: {question}"], _QUESTION)[0], _END, _END]
        self._above = [
            [*title, *heading]
            for title, heading in zip(
                encode([f"passage: {line.title}" for line in lines], _TITLE),
                encode([line.heading for line in lines], _HEADING),
                strict=True,
            )
        ]
        self._lines = [ids or [_UNKNOWN] for ids in encode([line.text for line in lines], _LINE)]
        self._passages = [line.passage for line in lines]

    def row(self, stretch: Sequence[int]) -> Row:
        """The question, what stands above the stretch, and its lines."""
        above = [*self._asked, *self._above[stretch[0]]]
        ends = accumulate((len(self._lines[place]) for place in stretch), initial=len(above))
        return [*above, *(token for place in stretch for token in self._lines[place]), _END], list(pairwise(ends))

    def stretch(self, place: int) -> range:
        """The line with its neighbours in the passage, one before and one behind by turns, while there is room."""
        first = last = place
        room = _STRETCH - len(self._lines[place])
        while self._fits(first - 1, place, room) or self._fits(last + 1, place, room):
            if self._fits(first - 1, place, room) and (
                (last - first) % 2 == 0 or not self._fits(last + 1, place, room)
            ):
                first -= 1
                room -= len(self._lines[first])
            else:
                last += 1
                room -= len(self._lines[last])
        return range(first, last + 1)

    def _fits(self, other: int, place: int, room: int) -> bool:
        inside = 0 <= other < len(self._lines)
        return inside and self._passages[other] == self._passages[place] and len(self._lines[other]) <= room

    def stretches(self, order: Sequence[int]) -> Iterator[range]:
        """Those around the lines in this order, but for lines that an earlier one has."""
        seen: set[int] = set()
        for place in order:
            if place not in seen:
                stretch = self.stretch(place)
                seen.update(stretch)
                yield stretch


class AnswerReader:
    """Safe to share between threads."""

    def __init__(self, folder: Callable[[], Path], weights: Path = WEIGHTS) -> None:
        """`folder` finds that of the built-in model, when the first question is read."""
        self._folder = folder
        self._weights = weights

    def read(self, question: str, lines: Sequence[Line], order: Sequence[int]) -> NDArray[np.float32]:
        """The logit of each line, (n,), beside 0 for "none of them answers"; NaN for those that were not read.

        `order` has the places of lines, the most promising first: they are read with their neighbours. May block.
        """
        return _read(self.load(), question, tuple(lines), tuple(order))

    def load(self) -> _Network:
        """Load the model, once a process, before the first question needs it."""
        with _loading:
            return _network(self._folder(), self._weights)


_loading = threading.Lock()


@cache
def _network(folder: Path, weights: Path) -> _Network:
    return _Network(folder, weights)


@lru_cache(_REMEMBERED)
def _read(network: _Network, question: str, lines: tuple[Line, ...], order: tuple[int, ...]) -> NDArray[np.float32]:
    logits = np.full(len(lines), np.nan, dtype=np.float32)
    coded = Coded(network.tokens, question, lines)
    chosen = [stretch for stretch, _ in zip(coded.stretches(order), range(STRETCHES), strict=False)]
    for stretch, found in zip(chosen, network.read([coded.row(stretch) for stretch in chosen]), strict=True):
        logits[stretch.start : stretch.stop] = found
    return logits


class _Network:
    """The encoder with its differences, and the head over the mean state of a line and the state of the first token."""

    def __init__(self, folder: Path, weights: Path) -> None:
        from safetensors.torch import load_file

        loaded, changes = read_bert(folder), load_file(weights)
        for key in changes:
            name, _, kind = key.partition(":")
            if kind in ("add", "up"):
                change = changes[key].float()
                _add(loaded.model.encoder, name, change @ changes[f"{name}:down"].float() if kind == "up" else change)
        self._head = [changes[f"head.{name}"].float() for name in ("wide", "wide_bias", "narrow", "narrow_bias")]
        self._encode = EncoderPass(loaded.model, half=has_bfloat16("cpu"))
        self._workers = Workers()
        self.tokens = Tokens(loaded.tokenizer, MOST_TOKENS)

    def read(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        """For each row the logits of its lines."""
        order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]))
        share = max(1, -(-len(order) // self._workers.count))
        groups = [order[start : start + share] for start in range(0, len(order), share)]
        found: dict[int, NDArray[np.float32]] = {}
        for group, logits in self._workers.each(lambda group: self._forward([rows[i] for i in group]), groups):
            found.update(zip(group, logits, strict=True))
        return [found[place] for place in range(len(rows))]

    def _forward(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        import torch

        wide, wide_bias, narrow, narrow_bias = self._head
        with torch.inference_mode():
            hidden = self._encode(padded([ids for ids, _ in rows], _PAD, MOST_TOKENS)).float()
            states = [
                torch.cat((hidden[row, first:last].mean(0), hidden[row, 0]))
                for row, (_, spans) in enumerate(rows)
                for first, last in spans
            ]
            inner = torch.nn.functional.gelu(torch.stack(states) @ wide.T + wide_bias)
            logits = (inner @ narrow.T + narrow_bias).squeeze(-1)
            return [part.numpy() for part in torch.split(logits, [len(spans) for _, spans in rows])]


def _add(root: Any, name: str, change: Any) -> None:
    *path, leaf = name.split(".")
    for step in path:
        root = root[int(step)] if step.isdigit() else getattr(root, step)
    setattr(root, leaf, getattr(root, leaf).float() + change)
