"""Tables with ruled lines: the grid that a page draws, and the cell at a position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag.reading.layout.words import rotate

Box = tuple[float, float, float, float]
"""An area of a page: left, bottom, right, top."""
_MAX_RULES = 200
_THIN = 2.5
_SHORT = 6.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight horizontal or vertical line: its position, and where it starts and ends."""

    at: float
    start: float
    end: float

    def covers(self, place: float) -> bool:
        return self.start - _THIN <= place <= self.end + _THIN


@dataclass(frozen=True, slots=True)
class Grid:
    """The rules of a table: `xs` and `ys` are the edges of its columns from the left and of its rows from the top."""

    xs: list[float]
    ys: list[float]
    level: list[Rule]
    upright: list[Rule]

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and column at a position, from 0; None outside."""
        column = sum(edge <= x for edge in self.xs) - 1
        row = sum(edge >= y for edge in self.ys) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return (row, column) if inside else None

    def origins(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return for each cell the first cell of the merged cell that it is part of: no rule is drawn between them.

        Empty if the cells aren't rectangles, as the boxes of a form.
        """
        result: dict[tuple[int, int], tuple[int, int]] = {}
        members: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in range(len(self.ys) - 1):
            y = (self.ys[row] + self.ys[row + 1]) / 2
            for column in range(len(self.xs) - 1):
                x = (self.xs[column] + self.xs[column + 1]) / 2
                origin = (row, column)
                if column and not _is_drawn(self.upright, self.xs[column], y):
                    origin = result[row, column - 1]
                elif row and not _is_drawn(self.level, self.ys[row], x):
                    origin = result[row - 1, column]
                result[row, column] = origin
                members.setdefault(origin, []).append((row, column))
        for (row, column), cells in members.items():
            last_row, last_column = cells[-1]
            if len(cells) != (last_row - row + 1) * (last_column - column + 1):
                return {}
        return result


def find_grids(boxes: Iterable[Box], turn: int) -> tuple[list[Grid], list[Rule]]:
    """Return the grids of at least two rows and columns in the `boxes` drawn on a page, and all horizontal rules.

    The page's text is turned by `turn` degrees.
    """
    level: list[Rule] = []
    upright: list[Rule] = []
    for left, bottom, right, top in boxes:
        (x, y), (end, up) = rotate(left, bottom, turn), rotate(right, top, turn)
        x, end, y, up = min(x, end), max(x, end), min(y, up), max(y, up)
        if end - x > _SHORT:
            level += [Rule(y, x, end), Rule(up, x, end)]
        if up - y > _SHORT:
            upright += [Rule(x, y, up), Rule(end, y, up)]
    level, upright = _merge(level), _merge(upright)
    if len(level) > _MAX_RULES or len(upright) > _MAX_RULES:
        return [], []
    return [grid for rules in _group_crossing(level, upright) if (grid := _make_grid(*rules))], level


def _make_grid(level: list[Rule], upright: list[Rule]) -> Grid | None:
    """Return the grid of rules that cross, or None below two rows or columns. Outer edges need not be drawn."""
    ends = [end for rule in level for end in (rule.start, rule.end)]
    sides = [end for rule in upright for end in (rule.start, rule.end)]
    xs = _merge_edges([*(rule.at for rule in upright), min(ends), max(ends)])
    ys = _merge_edges([*(rule.at for rule in level), min(sides), max(sides)])
    return Grid(xs, ys[::-1], level, upright) if len(xs) > 2 and len(ys) > 2 else None


def _merge(rules: Iterable[Rule]) -> list[Rule]:
    """Merge rules that are on one line and touch."""
    result: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.at / _THIN), rule.start)):
        last = result[-1] if result else None
        if last and abs(last.at - rule.at) <= _THIN and rule.start <= last.end + _THIN:
            result[-1] = Rule(last.at, last.start, max(last.end, rule.end))
        else:
            result.append(rule)
    return result


def _group_crossing(level: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield sets of horizontal and vertical rules that are connected by crossing each other."""
    crossing = [
        {n for n, other in enumerate(level) if other.covers(rule.at) and rule.covers(other.at)} for rule in upright
    ]
    pending = [n for n, others in enumerate(crossing) if others]
    while pending:
        group, rules = {pending[0]}, set(crossing[pending[0]])
        while added := {n for n in pending if n not in group and crossing[n] & rules}:
            group |= added
            rules.update(*(crossing[n] for n in added))
        pending = [n for n in pending if n not in group]
        yield [level[n] for n in rules], [upright[n] for n in group]


def _merge_edges(places: Iterable[float]) -> list[float]:
    edges: list[float] = []
    for place in sorted(places):
        if not edges or place - edges[-1] > 2 * _THIN:
            edges.append(place)
    return edges


def _is_drawn(rules: Iterable[Rule], at: float, place: float) -> bool:
    return any(abs(rule.at - at) <= 2 * _THIN and rule.covers(place) for rule in rules)
