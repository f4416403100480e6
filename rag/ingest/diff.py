"""What changed between two texts of a page, to be read by a person.

Sentences and lines are compared first; where some of them were replaced, their words are, or their
characters in Chinese. The shortest edit script is Myers' (“An O(ND) difference algorithm and its
variations”, 1986), given up beyond a number of steps: then sentences that occur once in both texts
hold the two together, and what lies between two of these is compared by itself. So the time is
bounded, which difflib's is not.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rag.text import split_sentences

DiffKind = Literal["same", "added", "removed"]

_STEPS = 100_000  # of one comparison; about a tenth of a second
_ALL_STEPS = 1_500_000  # of a page; beyond, what changed is shown as a whole
_LEAST_ALIKE = 0.3  # of the longer side; below, a sentence was replaced, not reworded
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+|\s+|.", re.DOTALL)
_LINE_END = re.compile(r"(?<=\n)(?=[^\n])")


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A stretch of text. The pieces that are not `added` make up the old text, those not `removed` the new one."""

    kind: DiffKind
    text: str


def page_diff(old: str, new: str) -> list[DiffPiece]:
    """The way from one text to the other, in order; where both changed, what was removed comes first."""
    steps = _Steps(_ALL_STEPS)
    pieces: list[DiffPiece] = []
    for same, removed, added in _blocks(_sentences(old), _sentences(new), steps):
        pieces += _reworded("".join(removed), "".join(added), steps)
        pieces += [DiffPiece("same", "".join(same))] if same else []
    return _merged(pieces)


class _Steps:
    """What the comparisons of one page may still take."""

    def __init__(self, left: int) -> None:
        self.left = left


def _sentences(text: str) -> list[str]:
    """The text cut before each line and each sentence; together they are the text."""
    found: list[str] = []
    for line in _LINE_END.split(text):
        starts = [0, *(start for start, _ in split_sentences(line)[1:]), len(line)]
        found += [line[a:b] for a, b in pairwise(starts) if b > a]
    return found


def _reworded(old: str, new: str, steps: _Steps) -> list[DiffPiece]:
    """A changed stretch, word by word where enough of it stayed."""
    whole = [DiffPiece("removed", old)] if old else []
    whole += [DiffPiece("added", new)] if new else []
    if not old or not new:
        return whole
    pieces: list[DiffPiece] = []
    for same, removed, added in _blocks(_TOKEN.findall(old), _TOKEN.findall(new), steps):
        pieces += [DiffPiece("removed", "".join(removed))] if removed else []
        pieces += [DiffPiece("added", "".join(added))] if added else []
        pieces += [DiffPiece("same", "".join(same))] if same else []
    pieces = _without_crumbs(pieces)
    stayed = sum(len(piece.text.strip()) for piece in pieces if piece.kind == "same")
    return pieces if stayed >= _LEAST_ALIKE * max(len(old), len(new)) else whole


def _without_crumbs(pieces: list[DiffPiece]) -> list[DiffPiece]:
    """Without matches of a blank, a comma or a character alone between changes, which nobody wants to see."""
    found: list[DiffPiece] = []
    for at, piece in enumerate(pieces):
        is_inner = 0 < at < len(pieces) - 1
        if piece.kind == "same" and is_inner and len(piece.text.strip()) < 2:
            found += [DiffPiece("removed", piece.text), DiffPiece("added", piece.text)]
        else:
            found.append(piece)
    return found


def _merged(pieces: list[DiffPiece]) -> list[DiffPiece]:
    """Neighbours of one kind in one piece; between two stretches that stayed, first what went, then what came."""
    found: list[DiffPiece] = []
    removed = added = same = ""
    for piece in [*pieces, DiffPiece("removed", "")]:
        if piece.kind == "same":
            found += [DiffPiece("removed", removed)] if removed else []
            found += [DiffPiece("added", added)] if added else []
            removed = added = ""
            same += piece.text
            continue
        found += [DiffPiece("same", same)] if same else []
        same = ""
        removed, added = removed + piece.text * (piece.kind == "removed"), added + piece.text * (piece.kind == "added")
    found += [DiffPiece("removed", removed)] if removed else []
    return found + ([DiffPiece("added", added)] if added else [])


def _blocks(
    a: Sequence[str], b: Sequence[str], steps: _Steps
) -> Iterator[tuple[Sequence[str], Sequence[str], Sequence[str]]]:
    """Stretches of (what stayed, what went before it, what came before it), in order."""
    x = y = 0
    run: list[str] = []
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    for i, j in _matches(a, b, steps):
        if (i, j) != (x, y):
            if run or removed or added:
                yield run, removed, added
            removed, added, run = a[x:i], b[y:j], []
        run.append(a[i])
        x, y = i + 1, j + 1
    yield run, removed, added
    if x < len(a) or y < len(b):
        yield (), a[x:], b[y:]


def _matches(a: Sequence[str], b: Sequence[str], steps: _Steps) -> list[tuple[int, int]]:
    """Pairs of places with equal items, both rising."""
    first, end = 0, 0
    least = min(len(a), len(b))
    while first < least and a[first] == b[first]:
        first += 1
    while end < least - first and a[-1 - end] == b[-1 - end]:
        end += 1
    left, right = a[first : len(a) - end], b[first : len(b) - end]
    middle = _shortest_edit(left, right, steps)
    if middle is None:
        middle = _between_anchors(left, right, steps)
    found = [(at, at) for at in range(first)]
    found += [(i + first, j + first) for i, j in middle]
    return found + [(len(a) - at, len(b) - at) for at in range(end, 0, -1)]


def _between_anchors(a: Sequence[str], b: Sequence[str], steps: _Steps) -> list[tuple[int, int]]:
    anchors = _anchors(a, b)
    found: list[tuple[int, int]] = []
    for (i, j), (k, m) in pairwise([(-1, -1), *anchors, (len(a), len(b))]):
        if anchors:
            found += [(i + 1 + x, j + 1 + y) for x, y in _matches(a[i + 1 : k], b[j + 1 : m], steps)]
        if k < len(a):
            found.append((k, m))
    return found


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The longest rising row of items that occur once in both: patience sorting."""
    once_a, once_b = Counter(a), Counter(b)
    places = {item: at for at, item in enumerate(b) if once_b[item] == 1}
    pairs = [(at, places[item]) for at, item in enumerate(a) if once_a[item] == 1 and item in places]
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
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = back[at]
    return found[::-1]


def _shortest_edit(a: Sequence[str], b: Sequence[str], steps: _Steps) -> list[tuple[int, int]] | None:
    """The matches of the shortest edit script; None when there are not steps enough to find it."""
    reach: dict[int, int] = {1: 0}
    trace: list[dict[int, int]] = []
    least = steps.left - _STEPS
    for edits in range(len(a) + len(b) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            begin = x
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            steps.left -= 1 + x - begin
            if x >= len(a) and x - k >= len(b):
                return _walked_back(trace, len(a), len(b))
        steps.left -= len(reach) // 4
        if steps.left < max(0, least):
            return None
    return []


def _walked_back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, k = trace[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        start_x = reach[before]
        start_y = start_x - before
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            found.append((x, y))
        if edits:
            x, y = start_x, start_y
    return found[::-1]
