"""The way of a run as a picture: the question, its steps in the order in which they could begin, the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rag.ui.kit.page_html import escaped, lines_of, svg
from rag.ui.kit.strings import Language, label

_WIDTH, _HEIGHT, _GAP, _ROW = 174, 44, 34, 58
_COLORS: Final = {"done": "#1a7f37", "failed": "#cf222e", "empty": "#9a6700", "running": "#0969da"}
_OTHER: Final = "#6e7781"
_NEVER: Final = 1_000


def picture(question: str, steps: Sequence[Mapping[str, Any]], language: Language) -> str:
    """An SVG: a column for each round of steps; dashed is what was not carried out."""
    columns = _columns(steps)
    most = max(map(len, columns))
    height = most * _ROW + 8
    places = {
        step["id"]: (20 + (_WIDTH + _GAP) * at, _y(row, len(column), height))
        for at, column in enumerate(columns, 1)
        for row, step in enumerate(column)
    }
    width = (_WIDTH + _GAP) * (len(columns) + 1) + _WIDTH + 40
    first, last = (20, _y(0, 1, height)), (width - _WIDTH - 20, _y(0, 1, height))
    lines = "".join(_lines(steps, places, first, last))
    boxes = "".join(_box(step["sub_question"], places[step["id"]], str(step["status"])) for step in steps)
    ends = _box(question, first, "done") + _box(label("research_report_node", language), last, "done")
    return svg(width, height, label("research_picture", language), f'<g class="boxes">{lines}{boxes}{ends}</g>')


def _columns(steps: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The steps by the round in which they began; those that never did come last."""
    rounds = sorted({step.get("round", _NEVER) for step in steps})
    return [[step for step in steps if step.get("round", _NEVER) == one] for one in rounds]


def _y(row: int, rows: int, height: int) -> int:
    return height // 2 - rows * _ROW // 2 + row * _ROW + (_ROW - _HEIGHT) // 2


def _lines(
    steps: Sequence[Mapping[str, Any]], places: Mapping[str, tuple[int, int]], first: Any, last: Any
) -> list[str]:
    needed = {one for step in steps for one in step["needs"]}
    before: dict[int, list[str]] = {}
    found = []
    for step in steps:
        before.setdefault(step.get("round", _NEVER), []).append(step["id"])
        led = [] if step["by"] != "revision" else before.get(step.get("round", _NEVER) - 1, [])
        begins = [places[one] for one in [*step["needs"], *led] if one in places] or [first]
        found += [_line(one, places[step["id"]], step["status"] in _COLORS) for one in begins]
        if step["id"] not in needed and step["status"] == "done":
            found.append(_line(places[step["id"]], last, True))
    return found


def _line(begin: tuple[int, int], end: tuple[int, int], taken: bool) -> str:
    x1, y1, x2, y2 = begin[0] + _WIDTH, begin[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    dashed = "" if taken else ' stroke-dasharray="4 4"'
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="{_OTHER}"{dashed}/>'


def _box(text: str, place: tuple[int, int], status: str) -> str:
    x, y = place
    dashed = "" if status in _COLORS else ' stroke-dasharray="4 4"'
    color = _COLORS.get(status, _OTHER)
    lines = lines_of(text, _WIDTH - 20, 12, 2)
    top = y + (27 if len(lines) == 1 else 19)
    shown = "".join(
        f'<text x="{x + 10}" y="{top + 15 * at}" font-size="12" fill="#24292f">{escaped(line)}</text>'
        for at, line in enumerate(lines)
    )
    return (
        f'<g><title>{escaped(text)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
        f' fill="#ffffff" stroke="{color}" stroke-width="1.5"{dashed}/>'
        f"{shown}</g>"
    )
