"""SVG charts with intervals: differences, runs, cost against quality, calibration, and quality over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from rag.locales import Language, label
from rag.ui.kit.markdown import shorten
from rag.ui.kit.parts import metric_name, svg

if TYPE_CHECKING:
    from rag.evaluation.comparison import MetricDifference
    from rag.evaluation.evaluation import Bin
    from rag.evaluation.statistics import Estimate

_ROW, _LEFT, _WIDTH, _RIGHT, _TOP, _PLOT = 30, 260, 240, 70, 26, 180
_TEXT: Final = "currentColor"


def chart_differences(comparisons: Sequence[MetricDifference], language: Language) -> str:
    """Return a chart with a row per metric, each on its own scale; an interval with zero shows no difference."""
    middle = _LEFT + _WIDTH // 2
    rows = []
    for at, comparison in enumerate(comparisons):
        delta = comparison.difference.delta
        widest = max(abs(delta.low), abs(delta.high), 1e-9)
        places = [_LEFT + _WIDTH / 2 * (1 + value / widest) for value in (delta.low, delta.value, delta.high)]
        name = metric_name(comparison.metric.name, language)
        rows.append(_interval(at, name, places, f"{delta.value:+.3f}", comparison.difference.verdict))
    height = _TOP + _ROW * len(comparisons) + 6
    zero = f'<path d="M{middle} {_TOP - 6}V{height}" stroke="{_TEXT}" stroke-dasharray="2 3"/>'
    return _svg(height, label("compare_chart", language), zero + "".join(rows))


def chart_runs(metric: str, estimates: Sequence[tuple[str, Estimate]]) -> str:
    """Return a chart of the intervals of runs on one scale; `metric` is a display name."""
    low, high = min(estimate.low for _, estimate in estimates), max(estimate.high for _, estimate in estimates)
    wide = (high - low) or 1.0
    rows = []
    for at, (name, estimate) in enumerate(estimates):
        places = [_LEFT + _WIDTH * (value - low) / wide for value in (estimate.low, estimate.value, estimate.high)]
        rows.append(_interval(at, name, places, f"{estimate.value:.3f}", "mark"))
    return _svg(_TOP + _ROW * len(estimates) + 6, metric, "".join(rows))


def chart_points(title: str, points: Sequence[tuple[float, float, str]], *, unit_square: bool = False) -> str:
    """Return a chart of named points (x, y); `unit_square` sets both axes to 0–1 and draws the diagonal."""
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    left, bottom, wide, tall = 0.0, 0.0, 1.0, 1.0
    if not unit_square:
        left, bottom, wide, tall = min(xs), min(ys), (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
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
    return _svg(_TOP + _PLOT + 16, title, axes + "".join(marks))


def chart_calibration(bins: Sequence[Bin], language: Language) -> str:
    """Return a chart of the share of answerable questions by predicted probability; the diagonal is ideal."""
    points = [((bucket.low + bucket.high) / 2, bucket.answerable, f"n = {bucket.n}") for bucket in bins]
    return chart_points(label("chart_calibration", language), points, unit_square=True)


def _interval(at: int, name: str, places: Sequence[float], text: str, kind: str) -> str:
    low, value, high = places
    middle = _TOP + _ROW * at + _ROW // 2
    return (
        f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end" fill="{_TEXT}">{escape(shorten(name, 40))}</text>'
        f'<g class="{kind}" fill="{_TEXT}"><path d="M{low:.1f} {middle}H{high:.1f}" stroke="{_TEXT}" stroke-width="3"/>'
        f'<circle cx="{value:.1f}" cy="{middle}" r="5"/>'
        f'<text x="{_LEFT + _WIDTH + 12}" y="{middle + 4}">{escape(text)}</text></g>'
    )


def _svg(height: int, title: str, content: str) -> str:
    width = _LEFT + _WIDTH + _RIGHT
    head = f'<text x="{width // 2}" y="14" text-anchor="middle" fill="{_TEXT}">{escape(title)}</text>'
    return svg(width, height, title, f"{head}{content}")
