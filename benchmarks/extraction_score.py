"""Scores of extracted text: F1 over words of hand-checked text, snippets that must and must not appear, answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag.evaluation.support import normalise_text

_WORD = re.compile(r"\w+")
_MIN_SHARE = 0.7


def word_f1(extracted: str, truth: str) -> float:
    """Return F1 over the multisets of lower-cased words."""
    extracted_words, true_words = (Counter(_WORD.findall(text.lower())) for text in (extracted, truth))
    if not extracted_words or not true_words:
        return float(not extracted_words and not true_words)
    common = (extracted_words & true_words).total()
    return 2 * common / (extracted_words.total() + true_words.total())


def keeps_answers(text: str, answers: Iterable[tuple[str, str]]) -> list[bool]:
    """Return for each answer, given with the sentence it is in, whether the text has it and most of its sentence."""
    normalised, trigrams = normalise_text(text), _trigrams(text)
    kept = []
    for answer, quote in answers:
        wanted = _trigrams(quote)
        is_there = len(wanted & trigrams) >= _MIN_SHARE * len(wanted)
        kept.append(is_there and normalise_text(answer) in normalised)
    return kept


def _trigrams(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def score(truth: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> dict[str, float]:
    """Return by name: mean F1 over pages, for all and each kind; with and without as shares of snippets."""
    by_kind, present, absent = defaultdict[str, list[float]](list), list[bool](), list[bool]()
    for row in truth:
        text = texts.get(row["id"], "")
        lower = text.lower()
        by_kind[row["type"]].append(word_f1(text, row["text"]))
        present += [snippet.lower() in lower for snippet in row["with"]]
        absent += [snippet.lower() not in lower for snippet in row["without"]]
    everything = [value for values in by_kind.values() for value in values]
    kinds = {f"F1 {kind}": _mean(values) for kind, values in sorted(by_kind.items())}
    return {"F1": _mean(everything), "with": _mean(present), "without": _mean(absent), **kinds}


def line(scores: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in scores.items())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
