"""Differences with their intervals as a picture: nothing is shown where an interval holds zero."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.evaluation.comparison import Compared

_ROW, _LEFT, _WIDTH, _TOP = 30, 170, 420, 26
_TEXT: Final = "#57606a"
_COLORS: Final = {"better": "#1a7f37", "worse": "#cf222e"}


def differences(found: Sequence[Compared], language: Language) -> str:
    """An SVG: a row for each metric, in units of its own widest interval."""
    height = _TOP + _ROW * len(found) + 6
    middle = _LEFT + _WIDTH // 2
    rows = "".join(_row(one, _TOP + _ROW * at) for at, one in enumerate(found))
    told = escape(label("compare_chart", language))
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + 90} {height}" width="{_LEFT + _WIDTH + 90}" height="{height}"'
        f' role="img" aria-label="{told}" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">'
        f'<text x="{middle}" y="14" text-anchor="middle" fill="{_TEXT}">{told}</text>'
        f'<line x1="{middle}" y1="{_TOP - 6}" x2="{middle}" y2="{height}" stroke="{_TEXT}" stroke-dasharray="2 3"/>'
        f"{rows}</svg>"
    )


def _row(one: Compared, y: int) -> str:
    by = one.difference.by
    widest = max(abs(by.low), abs(by.high), 1e-9)
    at, low, high = (_LEFT + _WIDTH / 2 * (1 + value / widest) for value in (by.value, by.low, by.high))
    color, middle = _COLORS.get(one.difference.verdict, _TEXT), y + _ROW // 2
    return (
        f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end" fill="{_TEXT}">{escape(one.metric.name)}</text>'
        f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="{color}" stroke-width="3"/>'
        f'<circle cx="{at:.1f}" cy="{middle}" r="5" fill="{color}"/>'
        f'<text x="{_LEFT + _WIDTH + 12}" y="{middle + 4}" fill="{color}">{by.value:+.3f}</text>'
    )
