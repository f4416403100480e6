"""A model that scores how likely each of several sentences answers a question, and whether any does.

A cross-encoder (Nogueira & Cho 2019, "Passage Re-ranking with BERT", arXiv 1901.04085) over the built-in
multilingual-e5-small, fine-tuned on naturally worded questions, two in five of which their page does not answer. The
package contains low-rank differences from the built-in weights, and a head, both trained by
`python -m benchmarks.answer_reader`. See docs/decisions/0012-quoted-answers.md.
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
from rag.models.tokens import Tokens, pad_rows
from rag.models.transformer import EncoderPass, read_bert

WEIGHTS: Final = Path(__file__).with_name("answer_reader.safetensors")
MAX_WINDOWS: Final = 4
"""Maximum number of windows of passages that are read for one question."""
MAX_TOKENS: Final = 512
_QUESTION, _TITLE, _HEADING, _LINE, _WINDOW = 64, 20, 12, 80, 128  # tokens
_CACHE_SIZE: Final = 16  # questions: an answer needs the same scores twice
_BEGIN, _PAD, _END, _UNKNOWN = 0, 1, 2, 3
Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids, and the span of each line in them."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of the passage with the number `passage`, with its title and the nearest heading."""

    passage: int
    title: str
    heading: str
    text: str


class TokenizedLines:
    """A question and lines of passages as token ids."""

    def __init__(self, tokens: Tokens, question: str, lines: Sequence[Line]) -> None:
        def encode(texts: Sequence[str], max_tokens: int) -> list[list[int]]:
            return [ids[:max_tokens] for ids in tokens.encode(texts, special=False)]

        self._question = [_BEGIN, *encode([f"query: {question}"], _QUESTION)[0], _END, _END]
        self._headers = [
            [*title, *heading]
            for title, heading in zip(
                encode([f"passage: {line.title}" for line in lines], _TITLE),
                encode([line.heading for line in lines], _HEADING),
                strict=True,
            )
        ]
        self._lines = [ids or [_UNKNOWN] for ids in encode([line.text for line in lines], _LINE)]
        self._passages = [line.passage for line in lines]

    def build_row(self, window: Sequence[int]) -> Row:
        """Return the question, the title and heading of the window, and its lines."""
        header = [*self._question, *self._headers[window[0]]]
        ends = accumulate((len(self._lines[place]) for place in window), initial=len(header))
        return [*header, *(token for place in window for token in self._lines[place]), _END], list(pairwise(ends))

    def window(self, place: int) -> range:
        """Return the line with its neighbours in the passage, added alternately before and after while they fit."""
        first = last = place
        room = _WINDOW - len(self._lines[place])
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

    def _fits(self, candidate: int, place: int, room: int) -> bool:
        exists = 0 <= candidate < len(self._lines)
        return exists and self._passages[candidate] == self._passages[place] and len(self._lines[candidate]) <= room

    def windows(self, order: Sequence[int]) -> Iterator[range]:
        """Yield the windows around the lines in this order, skipping lines that an earlier window contains."""
        seen: set[int] = set()
        for place in order:
            if place not in seen:
                window = self.window(place)
                seen.update(window)
                yield window


class AnswerReader:
    """A scorer of sentences as answers, over the built-in model. Safe to share between threads."""

    def __init__(self, folder: Callable[[], Path], weights: Path = WEIGHTS) -> None:
        """`folder` returns the folder of the built-in model; it is called on first use."""
        self._folder = folder
        self._weights = weights

    def read(self, question: str, lines: Sequence[Line], order: Sequence[int]) -> NDArray[np.float32]:
        """Return the logit of each line, (n,), relative to 0 for "none of them answers"; NaN for lines not read.

        `order` has the indexes of lines, the most promising first; they are read with their neighbours. May block.
        """
        return _score(self.load(), question, tuple(lines), tuple(order))

    def load(self) -> _Network:
        """Load the model, once per process; optional, to prepare for the first question."""
        with _loading:
            return _load_network(self._folder(), self._weights)


_loading = threading.Lock()


@cache
def _load_network(folder: Path, weights: Path) -> _Network:
    return _Network(folder, weights)


@lru_cache(_CACHE_SIZE)
def _score(network: _Network, question: str, lines: tuple[Line, ...], order: tuple[int, ...]) -> NDArray[np.float32]:
    logits = np.full(len(lines), np.nan, dtype=np.float32)
    tokenized = TokenizedLines(network.tokens, question, lines)
    windows = [window for window, _ in zip(tokenized.windows(order), range(MAX_WINDOWS), strict=False)]
    for window, scores in zip(windows, network.read([tokenized.build_row(window) for window in windows]), strict=True):
        logits[window.start : window.stop] = scores
    return logits


class _Network:
    """The fine-tuned encoder, and a head over the mean state of a line and the state of the first token."""

    def __init__(self, folder: Path, weights: Path) -> None:
        from safetensors.torch import load_file

        loaded, changes = read_bert(folder), load_file(weights)
        for key in changes:
            name, _, kind = key.partition(":")
            if kind in ("add", "up"):
                change = changes[key].float()
                _add(loaded.model.encoder, name, change @ changes[f"{name}:down"].float() if kind == "up" else change)
        self._head = [changes[f"head.{name}"].float() for name in ("wide", "wide_bias", "narrow", "narrow_bias")]
        self._workers = Workers()
        self._encode = self._workers.run(lambda: EncoderPass(loaded.model, half=has_bfloat16("cpu")))
        self.tokens = Tokens(loaded.tokenizer, MAX_TOKENS)

    def read(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        """Return the logits of the lines of each row."""
        order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]))
        share = max(1, -(-len(order) // self._workers.count))
        groups = [order[start : start + share] for start in range(0, len(order), share)]
        results: dict[int, NDArray[np.float32]] = {}
        for group, logits in self._workers.each(lambda group: self._forward([rows[i] for i in group]), groups):
            results.update(zip(group, logits, strict=True))
        return [results[place] for place in range(len(rows))]

    def _forward(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        import torch

        wide, wide_bias, narrow, narrow_bias = self._head
        with torch.inference_mode():
            hidden = self._encode(pad_rows([ids for ids, _ in rows], _PAD, MAX_TOKENS)).float()
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
