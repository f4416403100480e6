"""The numbers before headings and list items of Word, counted as Word counts them: 2.1, (b), iv, 第三条."""

from __future__ import annotations

import re
from typing import Any

from rag.reading.office.package import attribute, local, number, value

_ROMAN = dict(
    zip("m cm d cd c xc l xl x ix v iv i".split(), (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), strict=True)
)
_HAN = "〇一二三四五六七八九"
_SERIES = {"ideographTraditional": "甲乙丙丁戊己庚辛壬癸", "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"}
_HAN_FORMS = re.compile("chinese|taiwanese|japanese|ideographDigital")
_MOST_LETTERS, _MOST_ROMAN = 26 * 10, 5000
_PLACE = re.compile("%([1-9])")


class Numbering:
    """Counts the items of all lists in a document; `root` holds their definitions."""

    def __init__(self, root: Any) -> None:
        kinds = {attribute(kind, "abstractNumId"): kind for kind in root if local(kind) == "abstractNum"}
        by_style = {value(kind, "{*}styleLink"): kind for kind in kinds.values()}
        # By list: its kind, whose lists count on from each other, its levels, and the numbers that it begins with.
        self._lists: dict[str, tuple[Any, dict[int, Any], dict[int, int]]] = {}
        self._counts: dict[Any, dict[int, int]] = {}
        for one in root:
            kind = kinds.get(value(one, "{*}abstractNumId"))
            if kind is not None:
                kind = by_style.get(value(kind, "{*}numStyleLink") or "-", kind)
                levels = (*kind.findall("{*}lvl"), *one.findall("{*}lvlOverride/{*}lvl"))
                starts = {_depth(start): value(start, "{*}startOverride") for start in one.findall("{*}lvlOverride")}
                self._lists[attribute(one, "numId")] = (
                    kind,
                    {_depth(level): level for level in levels},
                    {depth: number(start, 1) for depth, start in starts.items() if start},
                )

    def level_of(self, name: str, style: str) -> int:
        """The level of a list that a paragraph's style stands for."""
        levels = self._lists[name][1] if name in self._lists else {}
        return next((depth for depth, level in levels.items() if value(level, "{*}pStyle") == style), 0)

    def label(self, name: str, depth: int) -> str | None:
        """What stands before the next item of a list, with the space after it; "" for a bullet, None for no item."""
        kind, levels, starts = self._lists.get(name, (None, {}, {}))
        if depth not in levels:
            return None
        own, counts = levels[depth], self._counts.setdefault(kind, {})
        counts[depth] = starts.pop(depth) if depth in starts else counts.get(depth, _start(own) - 1) + 1
        for deeper in [one for one in counts if one > depth]:
            if deeper not in levels or value(levels[deeper], "{*}lvlRestart") != "0":
                del counts[deeper]

        def counted(place: re.Match[str]) -> str:
            level = levels.get(int(place[1]) - 1, own)
            form = value(level, "{*}numFmt") if own.find("{*}isLgl") is None else "decimal"
            return in_form(counts.get(int(place[1]) - 1, _start(level)), form)

        text = "" if value(own, "{*}numFmt") == "bullet" else _PLACE.sub(counted, value(own, "{*}lvlText"))
        return text + " " * (text != "" and value(own, "{*}suff") != "nothing")


def _depth(level: Any) -> int:
    return number(attribute(level, "ilvl"), 0)


def _start(level: Any) -> int:
    return number(value(level, "{*}start"), 1)


def in_form(count: int, form: str) -> str:
    """A count in one of Word's number formats; in figures where the format is not known or runs out."""
    written = str(count)
    if form in ("none", "bullet"):
        return ""
    if form.endswith("Letter") and 0 < count <= _MOST_LETTERS:
        written = chr(ord("a") + (count - 1) % 26) * (1 + (count - 1) // 26)
    elif form.endswith("Roman") and count < _MOST_ROMAN:
        written = ""
        for sign, size in _ROMAN.items():
            written, count = written + sign * (count // size), count % size
    elif form == "decimalZero":
        written = f"{count:02}"
    elif _HAN_FORMS.match(form) and count < 100:
        tens, ones = divmod(count, 10)
        written = (_HAN[tens] if tens > 1 else "") + "十" * (tens > 0) + (_HAN[ones] if ones or not tens else "")
    elif count <= len(_SERIES.get(form, "")):
        written = _SERIES[form][count - 1]
    return written.upper() if form.startswith("upper") else written
