"""The marks of a list's items as a browser numbers them: by start, value, reversed and type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rag.reading.extraction.visible import declarations

_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST = 9999


def marks_of(box: Any) -> dict[Any, str]:
    """By item of an `ol`, `ul` or `menu`, what is written before it: `- `, `3. `, or `- c. ` where letters count."""
    items = [node for node in box if node.tag == "li"]
    style = _style(box)
    if box.tag != "ol" or style == "none":
        return dict.fromkeys(items, "- ")
    step = -1 if box.get("reversed") is not None else 1
    number = _integer(box.get("start"), len(items) if step < 0 else 1) - step
    marks = {}
    for item in items:
        number = _integer(item.get("value"), number + step)
        counted = _COUNTED.get(_style(item) or style, str)(number) if 0 < number <= _MOST else str(number)
        marks[item] = f"{counted}. " if counted == str(number) else f"- {counted}. "
    return marks


def _style(node: Any) -> str:
    """How a list or an item counts, as the name of its style or as the `type` of HTML."""
    style = declarations(node)
    styled = f"{style.get('list-style', '')} {style.get('list-style-type', '')}".split()
    return next((name for name in styled if name == "none" or name in _COUNTED), node.get("type") or "")


def _integer(given: str | None, otherwise: int) -> int:
    try:
        return int(given or "")
    except ValueError:
        return otherwise


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


_COUNTED: Final[dict[str, Callable[[int], str]]] = {
    **dict.fromkeys(("a", "lower-alpha", "lower-latin"), _letters),
    **dict.fromkeys(("A", "upper-alpha", "upper-latin"), lambda number: _letters(number).upper()),
    **dict.fromkeys(("i", "lower-roman"), _roman),
    **dict.fromkeys(("I", "upper-roman"), lambda number: _roman(number).upper()),
}
