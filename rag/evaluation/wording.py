"""Answers held against those that people gave, by their words.

Exact match and F1 are those of SQuAD (Rajpurkar et al. 2016), in Chinese those of CMRC 2018 (Cui et al. 2019): there a
character is a token, and what two answers share is the longest run that stands in both.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rag.checking.verbatim import stands_in

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_TOKEN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def tokens(text: str, chinese: bool) -> list[str]:
    """What two answers are compared by: no case, no punctuation, and in English no articles."""
    folded = unicodedata.normalize("NFKC", text).lower()
    if chinese:
        return _TOKEN.findall(folded)
    bare = "".join(sign for sign in folded if not unicodedata.category(sign).startswith(("P", "S")))
    return _ARTICLES.sub(" ", bare).split()


def exact_match(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """EM: 1 where the answer is one of the golds."""
    said = _joined(answer, chinese)
    return float(any(_joined(gold, chinese) == said for gold in golds))


def token_f1(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """The best 2PR / (P + R) over the golds."""
    said = tokens(answer, chinese)
    return max((_f1(said, tokens(gold, chinese), chinese) for gold in golds), default=0.0)


def contains(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """1 where one of the golds stands in the answer, in whole words and with the same values."""
    said, others = (answer, golds) if chinese else (_bare(answer), map(_bare, golds))
    return float(any(stands_in(gold, said) for gold in others))


def _bare(text: str) -> str:
    """English without articles."""
    return _ARTICLES.sub(" ", text)


def _joined(text: str, chinese: bool) -> str:
    return ("" if chinese else " ").join(tokens(text, chinese))


def _f1(said: Sequence[str], gold: Sequence[str], chinese: bool) -> float:
    shared = _longest_run(said, gold) if chinese else (Counter(said) & Counter(gold)).total()
    if not said or not gold:
        return float(said == gold)
    return 2 * shared / (len(said) + len(gold))


def _longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest run of tokens that stands in both."""
    best, before = 0, [0] * (len(other) + 1)
    for token in one:
        row = [0, *(before[at] + 1 if token == their else 0 for at, their in enumerate(other))]
        best, before = max(best, max(row)), row
    return best
