"""A run as a picture: the question, its steps in the order in which they could start, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rag.ui.kit.page_html import break_lines, escape_html, svg
from rag.ui.kit.strings import Language, label

_WIDTH, _HEIGHT, _GAP, _ROW = 174, 44, 34, 58
_COLORS: Final = {"done": "#1a7f37", "failed": "#cf222e", "empty": "#9a6700", "running": "#0969da"}
_OTHER: Final = "#6e7781"
_NEVER: Final = 1_000


def picture(question: str, steps: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Return an SVG with a column for each round of steps; steps that were not carried out are dashed."""
    columns = _columns(steps)
    tallest = max(map(len, columns))
    height = tallest * _ROW + 8
    places = {
        step["id"]: (20 + (_WIDTH + _GAP) * column_number, _y(row, len(column), height))
        for column_number, column in enumerate(columns, 1)
        for row, step in enumerate(column)
    }
    width = (_WIDTH + _GAP) * (len(columns) + 1) + _WIDTH + 40
    first, last = (20, _y(0, 1, height)), (width - _WIDTH - 20, _y(0, 1, height))
    lines = "".join(_lines(steps, places, first, last))
    boxes = "".join(_box(step["sub_question"], places[step["id"]], str(step["status"])) for step in steps)
    ends = _box(question, first, "done") + _box(label("research_report_node", language), last, "done")
    return svg(width, height, label("research_picture", language), f'<g class="boxes">{lines}{boxes}{ends}</g>')


def _columns(steps: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Group steps by the round in which they began; those that never did come last."""
    rounds = sorted({step.get("round", _NEVER) for step in steps})
    return [[step for step in steps if step.get("round", _NEVER) == number] for number in rounds]


def _y(row: int, rows: int, height: int) -> int:
    return height // 2 - rows * _ROW // 2 + row * _ROW + (_ROW - _HEIGHT) // 2


def _lines(
    steps: Sequence[Mapping[str, Any]], places: Mapping[str, tuple[int, int]], first: Any, last: Any
) -> list[str]:
    prerequisites = {one for step in steps for one in step["needs"]}
    before: dict[int, list[str]] = {}
    lines = []
    for step in steps:
        before.setdefault(step.get("round", _NEVER), []).append(step["id"])
        earlier = [] if step["by"] != "revision" else before.get(step.get("round", _NEVER) - 1, [])
        starts = [places[one] for one in [*step["needs"], *earlier] if one in places] or [first]
        lines += [_line(one, places[step["id"]], step["status"] in _COLORS) for one in starts]
        if step["id"] not in prerequisites and step["status"] == "done":
            lines.append(_line(places[step["id"]], last, True))
    return lines


def _line(start: tuple[int, int], end: tuple[int, int], solid: bool) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    dashed = "" if solid else ' stroke-dasharray="4 4"'
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="{_OTHER}"{dashed}/>'


def _box(text: str, place: tuple[int, int], status: str) -> str:
    x, y = place
    dashed = "" if status in _COLORS else ' stroke-dasharray="4 4"'
    color = _COLORS.get(status, _OTHER)
    lines = break_lines(text, _WIDTH - 20, 12, 2)
    top = y + (27 if len(lines) == 1 else 19)
    texts = "".join(
        f'<text x="{x + 10}" y="{top + 15 * at}" font-size="12" fill="#24292f">{escape_html(line)}</text>'
        for at, line in enumerate(lines)
    )
    return (
        f'<g><title>{escape_html(text)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
        f' fill="#ffffff" stroke="{color}" stroke-width="1.5"{dashed}/>'
        f"{texts}</g>"
    )
