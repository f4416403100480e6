"""Words for the simple rivals: stemmed, without function words, Chinese as character bigrams."""

from __future__ import annotations

import re

_STOP = frozenset(
    """a an the of in on at to for from by with and or but as is are was were be been being it its this that these
    those he she his her they their there which who whom whose what when where while also not no can could may might
    will would should do does did has have had than then so such into about over under after before during between more
    most other some any all each both only very i you we our your my me us if because however according based given
    provided passage passages mentioned including include includes""".split()
)
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]+")
_ENDINGS = ("ing", "ed", "ies", "es", "s", "ly")


def words_of(text: str) -> tuple[set[str], set[str]]:
    """Return the stemmed words with Chinese as character bigrams, and the numbers in digits among them."""
    words: set[str] = set()
    numbers: set[str] = set()
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            numbers.add(token.replace(",", "").rstrip("."))
        elif token[0] >= "\u4e00":
            words.update([token[i : i + 2] for i in range(len(token) - 1)] or [token])
        elif (word := re.sub(r"['’]s$", "", token.lower())) not in _STOP and len(word) > 1:
            word = str(_COUNTS.index(word)) if word in _COUNTS else word
            stems = (word[: -len(e)] for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3)
            words.add(next(stems, word))
    return words | numbers, numbers
