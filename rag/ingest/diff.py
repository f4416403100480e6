"""A readable diff between two texts of a page.

Sentences and lines are compared first, then the words of replaced ones (characters in Chinese). The shortest edit
script is found by Myers' algorithm (“An O(ND) difference algorithm and its variations”, 1986), up to a number of steps.
Beyond it, sentences that occur once in both texts become anchors, and the text between anchors is compared separately.
This bounds the run time, unlike difflib.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from rag.text import lazy_regex, split_sentences

DiffKind = Literal["same", "added", "removed"]

_MAX_STEPS = 100_000  # per comparison; about a tenth of a second
_MAX_TOTAL_STEPS = 1_500_000  # per page; beyond it, changes are shown as a whole
_MIN_SIMILARITY = 0.3  # unchanged share of the longer side; below it, a sentence counts as replaced, not reworded
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = lazy_regex(rf"[{_HAN}]|[^\W{_HAN}]+|\s+|.", re.DOTALL)
_LINE_END = lazy_regex(r"(?<=\n)(?=[^\n])")


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A piece of a diff. Pieces that are not `added` make up the old text, those not `removed` the new one."""

    kind: DiffKind
    text: str


def page_diff(old: str, new: str) -> list[DiffPiece]:
    """Return the diff from `old` to `new`, in order; removed text comes before the text that replaces it."""
    steps = _Steps(_MAX_TOTAL_STEPS)
    pieces: list[DiffPiece] = []
    for same, removed, added in _blocks(_split(old), _split(new), steps):
        pieces += _compare_words("".join(removed), "".join(added), steps)
        pieces += _make_pieces(same=same)
    return _merge(pieces)


@dataclass
class _Steps:
    """The remaining steps for the comparisons of one page."""

    remaining: int


def _split(text: str) -> list[str]:
    """Split the text before each line and sentence; the joined pieces are the text."""
    pieces: list[str] = []
    for line in _LINE_END.split(text):
        starts = [0, *(start for start, _ in split_sentences(line)[1:]), len(line)]
        pieces += [line[a:b] for a, b in pairwise(starts) if b > a]
    return pieces


def _compare_words(old: str, new: str, steps: _Steps) -> list[DiffPiece]:
    """Compare a changed stretch word by word, if enough of it is unchanged."""
    whole = _make_pieces([old], [new])
    if not old or not new:
        return whole
    pieces: list[DiffPiece] = []
    for same, removed, added in _blocks(_TOKEN.findall(old), _TOKEN.findall(new), steps):
        pieces += _make_pieces(removed, added, same)
    result: list[DiffPiece] = []
    for at, piece in enumerate(pieces):
        # Matches of a single space, comma or character between changes only distract.
        if piece.kind == "same" and 0 < at < len(pieces) - 1 and len(piece.text.strip()) < 2:
            result += [DiffPiece("removed", piece.text), DiffPiece("added", piece.text)]
        else:
            result.append(piece)
    common = sum(len(piece.text.strip()) for piece in result if piece.kind == "same")
    return result if common >= _MIN_SIMILARITY * max(len(old), len(new)) else whole


def _merge(pieces: list[DiffPiece]) -> list[DiffPiece]:
    """Join neighbours of one kind; between two unchanged stretches, removed text comes before added text."""
    result: list[DiffPiece] = []
    for _, group in groupby(pieces, key=lambda piece: piece.kind == "same"):
        texts: dict[DiffKind, list[str]] = {"removed": [], "added": [], "same": []}
        for piece in group:
            texts[piece.kind].append(piece.text)
        result += _make_pieces(**texts)
    return result


def _make_pieces(removed: Sequence[str] = (), added: Sequence[str] = (), same: Sequence[str] = ()) -> list[DiffPiece]:
    kinds: tuple[tuple[DiffKind, Sequence[str]], ...] = (("removed", removed), ("added", added), ("same", same))
    return [DiffPiece(kind, text) for kind, items in kinds if (text := "".join(items))]


def _blocks(
    a: Sequence[str], b: Sequence[str], steps: _Steps
) -> Iterator[tuple[Sequence[str], Sequence[str], Sequence[str]]]:
    """Yield stretches of (unchanged, removed before it, added before it), in order."""
    x = y = 0
    run: list[str] = []
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    for i, j in _match(a, b, steps):
        if (i, j) != (x, y):
            if run or removed or added:
                yield run, removed, added
            removed, added, run = a[x:i], b[y:j], []
        run.append(a[i])
        x, y = i + 1, j + 1
    yield run, removed, added
    if x < len(a) or y < len(b):
        yield (), a[x:], b[y:]


def _match(a: Sequence[str], b: Sequence[str], steps: _Steps) -> list[tuple[int, int]]:
    """Return pairs of positions with equal items, both ascending."""
    first, end = 0, 0
    shorter = min(len(a), len(b))
    while first < shorter and a[first] == b[first]:
        first += 1
    while end < shorter - first and a[-1 - end] == b[-1 - end]:
        end += 1
    left, right = a[first : len(a) - end], b[first : len(b) - end]
    middle = _find_shortest_edit(left, right, steps)
    if middle is None:
        middle, anchors = [], _find_anchors(left, right)
        for (i, j), (k, m) in pairwise([(-1, -1), *anchors, (len(left), len(right))]):
            if anchors:
                middle += [(i + 1 + x, j + 1 + y) for x, y in _match(left[i + 1 : k], right[j + 1 : m], steps)]
            if k < len(left):
                middle.append((k, m))
    pairs = [(at, at) for at in range(first)]
    pairs += [(i + first, j + first) for i, j in middle]
    return pairs + [(len(a) - at, len(b) - at) for at in range(end, 0, -1)]


def _find_anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of the longest ascending series of items that occur once in both, by patience sorting."""
    once_a, once_b = Counter(a), Counter(b)
    positions = {item: at for at, item in enumerate(b) if once_b[item] == 1}
    pairs = [(at, positions[item]) for at, item in enumerate(a) if once_a[item] == 1 and item in positions]
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for number, (_, j) in enumerate(pairs):
        depth = bisect_left(tails, j)
        if depth == len(tails):
            tails.append(j)
            ends.append(number)
        else:
            tails[depth], ends[depth] = j, number
        back.append(ends[depth - 1] if depth else -1)
    anchors: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        anchors.append(pairs[at])
        at = back[at]
    return anchors[::-1]


def _find_shortest_edit(a: Sequence[str], b: Sequence[str], steps: _Steps) -> list[tuple[int, int]] | None:
    """Return the matches of the shortest edit script; None if the steps run out."""
    reach: dict[int, int] = {1: 0}
    trace: list[dict[int, int]] = []
    floor = steps.remaining - _MAX_STEPS
    for edits in range(len(a) + len(b) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            begin = x
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            steps.remaining -= 1 + x - begin
            if x >= len(a) and x - k >= len(b):
                return _walk_back(trace, len(a), len(b))
        steps.remaining -= len(reach) // 4
        if steps.remaining < max(0, floor):
            return None
    return []


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, k = trace[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        start_x = reach[before]
        start_y = start_x - before
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if edits:
            x, y = start_x, start_y
    return pairs[::-1]
