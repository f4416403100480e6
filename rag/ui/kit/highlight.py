"""Positions of a question's words in a passage."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.text import is_chinese, split_sentences, terms

Span = tuple[int, int]

_COMMON = frozenset(
    "a an and are as at be by can do does did for from had has have how i if in into is it its long many may me "
    "much must my not of often on one or our shall should so some such than that the their them then there these "
    "they this those to was we were what when where which who whom whose why will with would you your".split()
)
_COMMON_HAN = frozenset("的了是在和与或吗呢吧啊几多少什么哪怎样如何为谁其应该可以能会要有个最被把就都而也请问")
_ENDINGS = r"(?:s|es|ed|d|ing|ly)?"


def term_spans(question: str, text: str) -> list[Span]:
    """Return the spans of `text` with a content word of `question`, in order, none touching another.

    Latin words match with their common endings, Chinese by pairs of characters.
    """
    patterns = [_pattern(term) for term in dict.fromkeys(terms(question)) if not _is_common(term)]
    matches = sorted(match.span() for pattern in patterns for match in re.finditer(pattern, text, re.IGNORECASE))
    merged: list[Span] = []
    for start, end in matches:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _is_common(term: str) -> bool:
    if is_chinese(term):
        return any(sign in _COMMON_HAN for sign in term)
    return term in _COMMON or (len(term) == 1 and not term.isdecimal())


def _pattern(term: str) -> str:
    if is_chinese(term):
        return re.escape(term)
    stem = re.sub(r"(?:s|es|ed|ing)$", "", term) if len(term) > 4 else term
    return rf"(?<![^\W_]){re.escape(stem)}{_ENDINGS if term.isalpha() else ''}(?![^\W_])"


def best_window(text: str, spans: Sequence[Span], size: int) -> Span:
    """Return about `size` characters of `text` with the most of `spans`: its beginning, else from the latest sentence
    on that keeps them."""
    if len(text) <= size:
        return 0, len(text)
    starts = [0, *(start for start, _ in split_sentences(text))]
    counts = [len(_within(text, spans, start, start + size)) for start in starts]
    first = counts.index(max(counts))
    while first and first + 1 < len(starts) and counts[first + 1] == counts[first]:
        first += 1
    left = starts[first]
    right = min(left + size, len(text))
    while right < len(text) and text[right].isascii() and text[right].isalnum():
        right += 1
    return left, right


def _within(text: str, spans: Sequence[Span], left: int, right: int) -> set[str]:
    return {text[start:end].lower() for start, end in spans if left <= start and end <= right}
