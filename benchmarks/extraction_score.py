"""Scores of extracted text against hand-checked text: F1 over words, snippets that must and must not appear."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

_WORD = re.compile(r"\w+")


def word_f1(found: str, truth: str) -> float:
    """F1 over the multisets of lower-cased words."""
    own, wanted = (Counter(_WORD.findall(text.lower())) for text in (found, truth))
    if not own or not wanted:
        return float(not own and not wanted)
    same = (own & wanted).total()
    return 2 * same / (own.total() + wanted.total())


def score(truth: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> dict[str, float]:
    """F1 as a mean over pages, for all and for each kind; with and without as shares of snippets. By name."""
    by_kind, wanted, unwanted = defaultdict[str, list[float]](list), list[bool](), list[bool]()
    for row in truth:
        text = texts.get(row["id"], "")
        lower = text.lower()
        by_kind[row["type"]].append(word_f1(text, row["text"]))
        wanted += [snippet.lower() in lower for snippet in row["with"]]
        unwanted += [snippet.lower() not in lower for snippet in row["without"]]
    everything = [value for values in by_kind.values() for value in values]
    kinds = {f"F1 {kind}": _mean(values) for kind, values in sorted(by_kind.items())}
    return {"F1": _mean(everything), "with": _mean(wanted), "without": _mean(unwanted), **kinds}


def line(scores: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in scores.items())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
