"""Pictures of figures with their intervals, as SVG: differences, runs, cost beside quality, calibration, over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from rag.ui.kit.escape import shorten
from rag.ui.kit.page_html import svg
from rag.ui.kit.parts import metric_name
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.evaluation.comparison import Compared
    from rag.evaluation.evaluation import Bin
    from rag.evaluation.statistics import Estimate

_ROW, _LEFT, _WIDTH, _RIGHT, _TOP, _PLOT = 30, 260, 240, 70, 26, 180
_TEXT: Final = "currentColor"


def differences(found: Sequence[Compared], language: Language) -> str:
    """A row for each metric, in units of its widest interval; intervals that contain zero show no difference."""
    middle = _LEFT + _WIDTH // 2
    rows = []
    for at, one in enumerate(found):
        by = one.difference.by
        widest = max(abs(by.low), abs(by.high), 1e-9)
        places = [_LEFT + _WIDTH / 2 * (1 + value / widest) for value in (by.low, by.value, by.high)]
        named = metric_name(one.metric.name, language)
        rows.append(_interval(at, named, places, f"{by.value:+.3f}", one.difference.verdict))
    height = _TOP + _ROW * len(found) + 6
    zero = f'<path d="M{middle} {_TOP - 6}V{height}" stroke="{_TEXT}" stroke-dasharray="2 3"/>'
    return _svg(height, label("compare_chart", language), zero + "".join(rows))


def by_run(metric: str, found: Sequence[tuple[str, Estimate]]) -> str:
    """A metric, by its name for the reader, with its interval for each run, on one scale."""
    low, high = min(one.low for _, one in found), max(one.high for _, one in found)
    wide = (high - low) or 1.0
    rows = []
    for at, (name, one) in enumerate(found):
        places = [_LEFT + _WIDTH * (value - low) / wide for value in (one.low, one.value, one.high)]
        rows.append(_interval(at, name, places, f"{one.value:.3f}", "mark"))
    return _svg(_TOP + _ROW * len(found) + 6, metric, "".join(rows))


def plot(told: str, points: Sequence[tuple[float, float, str]], *, unit_square: bool = False) -> str:
    """Named points (x, y): cost beside quality, or quality over time; in the unit square with its diagonal."""
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    left, bottom, wide, tall = (0.0, 0.0, 1.0, 1.0) if unit_square else _frame(xs, ys)
    marks = []
    for x, y, name in points:
        across, up = _LEFT + _WIDTH * (x - left) / wide, _TOP + _PLOT * (1 - (y - bottom) / tall)
        near = f'<text x="{across + 8:.1f}" y="{up + 4:.1f}" fill="{_TEXT}">{escape(shorten(name, 24))}</text>'
        marks.append(f'<circle cx="{across:.1f}" cy="{up:.1f}" r="5" class="mark" fill="{_TEXT}"/>{near}')
    ends = ((left, bottom), (left + wide, bottom + tall))
    axes = f'<path d="M{_LEFT} {_TOP}V{_TOP + _PLOT}H{_LEFT + _WIDTH}" fill="none" stroke="{_TEXT}"/>'
    if unit_square:
        axes += f'<path d="M{_LEFT} {_TOP + _PLOT}L{_LEFT + _WIDTH} {_TOP}" stroke="{_TEXT}" stroke-dasharray="2 3"/>'
    for at, (_, y) in enumerate(ends):
        up = _TOP + _PLOT * (1 - at) + 4
        axes += f'<text x="{_LEFT - 10}" y="{up}" text-anchor="end" fill="{_TEXT}">{y:.2g}</text>'
    return _svg(_TOP + _PLOT + 16, told, axes + "".join(marks))


def calibration(bins: Sequence[Bin], language: Language) -> str:
    """Draw the actual share of answered questions by predicted probability; a perfect search is on the diagonal."""
    points = [((one.low + one.high) / 2, one.answerable, f"n = {one.n}") for one in bins]
    return plot(label("chart_calibration", language), points, unit_square=True)


def _frame(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float, float, float]:
    return min(xs), min(ys), (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0


def _interval(at: int, name: str, places: Sequence[float], told: str, kind: str) -> str:
    low, value, high = places
    middle = _TOP + _ROW * at + _ROW // 2
    return (
        f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end" fill="{_TEXT}">{escape(shorten(name, 40))}</text>'
        f'<g class="{kind}" fill="{_TEXT}"><path d="M{low:.1f} {middle}H{high:.1f}" stroke="{_TEXT}" stroke-width="3"/>'
        f'<circle cx="{value:.1f}" cy="{middle}" r="5"/>'
        f'<text x="{_LEFT + _WIDTH + 12}" y="{middle + 4}">{escape(told)}</text></g>'
    )


def _svg(height: int, told: str, drawn: str) -> str:
    width = _LEFT + _WIDTH + _RIGHT
    head = f'<text x="{width // 2}" y="14" text-anchor="middle" fill="{_TEXT}">{escape(told)}</text>'
    return svg(width, height, told, f"{head}{drawn}")
