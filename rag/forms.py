"""One form for what is written in several ways, so that words are found however they are spelt.

Traditional Chinese becomes simplified (OpenCC), Chinese numerals become digits, and digits that are grouped by spaces
or apostrophes stand together. Only terms are made of what comes out: pages stay as they are.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from rag.quantities.numerals import chinese_number

_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NUMERALS: Final = "[零〇一二两三四五六七八九十百千万亿]"
_PERCENT: Final = re.compile(f"百分之({_NUMERALS}+)")
_NUMBER: Final = re.compile(f"(?<=第){_NUMERALS}+|{_NUMERALS}{{2,}}|{_NUMERALS}(?=[年月日号])")
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[\u0020\u00a0\u202f'’]\d{3})+(?![\d])")
_GROUP_MARKS: Final = re.compile(r"\D")
_VERSION: Final = re.compile(r"\bv(?=\d+\.\d)", re.IGNORECASE)


def fold(text: str) -> str:
    """`text` in one form of writing; the same object where there is nothing to change."""
    if _HAN.search(text):
        text = _simplify().convert(text)
        text = _PERCENT.sub(lambda found: f"{_digits(found[1])}%", text)
        text = _NUMBER.sub(lambda found: _digits(found[0]), text)
    text = _GROUPED.sub(lambda found: _GROUP_MARKS.sub("", found[0]), text)
    return _VERSION.sub("", text)


def _digits(numeral: str) -> str:
    return f"{chinese_number(numeral):f}"


@cache
def _simplify() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")
