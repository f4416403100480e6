"""SVG line charts, one per figure, with logarithmic axes: a straight line is a power law of the size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _MARGIN, _COLUMNS = 260, 150, 34, 3


def curves(rows: Sequence[Mapping[str, Any]], along: str, figures: Mapping[str, str]) -> str:
    """Draw a chart of each of `figures` (key, title) over `rows[i][along]`, as one SVG document."""
    charts = [_chart(rows, along, key, title) for key, title in figures.items()]
    groups = [
        f'<g transform="translate({number % _COLUMNS * _WIDTH} {number // _COLUMNS * _HEIGHT})">{chart}</g>'
        for number, chart in enumerate(charts)
    ]
    high = math.ceil(len(charts) / _COLUMNS) * _HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_COLUMNS * _WIDTH} {high}" font-family="sans-serif">'
    return head + f'<rect width="{_COLUMNS * _WIDTH}" height="{high}" fill="white"/>' + "".join(groups) + "</svg>\n"


def _chart(rows: Sequence[Mapping[str, Any]], along: str, key: str, title: str) -> str:
    points = [(float(row[along]), max(float(row[key]), 1e-3)) for row in rows]
    across, up = _scale([x for x, _ in points], _WIDTH), _scale([y for _, y in points], _HEIGHT)
    places = [(_MARGIN + across(x), _HEIGHT - _MARGIN - up(y)) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/><text x="{x:.1f}" y="{y - 6:.1f}" font-size="8" '
        f'text-anchor="middle">{value:,.4g}</text><text x="{x:.1f}" y="{_HEIGHT - 12}" font-size="8" '
        f'text-anchor="middle">{_abbreviate(size)}</text>'
        for (x, y), (size, value) in zip(places, points, strict=True)
    )
    return (
        f'<text x="{_MARGIN}" y="14" font-size="11">{escape(title)}</text>'
        f'<polyline points="{line}" fill="none" stroke="#3465a4"/>{marks}'
    )


def _scale(values: Sequence[float], length: int) -> Any:
    """Return a logarithmic scale; it spans at least a decade, so that noise doesn't look like growth."""
    low = math.log10(min(values))
    span = max(math.log10(max(values)) - low, 1.0)
    return lambda value: (math.log10(value) - low) / span * (length - 2 * _MARGIN)


def _abbreviate(number: float) -> str:
    return f"{number / 1e6:g} M" if number >= 1e6 else f"{number / 1e3:g} k"
