"""Evidence held against its pages as they are now: a page that was written anew may still say it, in other words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rag.evaluation.cases import Case, Evidence
from rag.evaluation.evidence import WHOLE, covered, squash
from rag.text import sentence_spans, terms

_ALIKE: Final = 0.6
"""Dice's share of terms that two wordings of one sentence have in common; of unlike ones few have a third."""


def anchored(case: Case, text_of: Callable[[str], str | None]) -> Case:
    """The case with its evidence as its pages have it; a draft where a quote moved or was lost.

    Evidence without an address stays as it is: nobody knows where it should stand.
    """
    evidence = tuple(_anchored(one, text_of(one.url)) if one.url else one for one in case.evidence)
    if evidence == case.evidence:
        return case
    worse = any(new.state and new != old for new, old in zip(evidence, case.evidence, strict=True))
    return replace(case, evidence=evidence, status="draft" if worse else case.status)


def _anchored(evidence: Evidence, text: str | None) -> Evidence:
    if text is None:
        return replace(evidence, state="lost")
    if covered(squash(evidence.quote), squash(text)) >= WHOLE:
        return evidence if evidence.state == "moved" else replace(evidence, state="")
    nearest = _nearest(evidence.quote, text)
    return replace(evidence, quote=nearest, state="moved") if nearest else replace(evidence, state="lost")


def _nearest(quote: str, text: str) -> str:
    """The sentences of the text that say most nearly the same, as many as the quote has; "" where none do."""
    size, spans = max(1, len(sentence_spans(quote))), sentence_spans(text)
    wanted = frozenset(terms(quote))
    windows = [(spans[at][0], spans[at + size - 1][1]) for at in range(len(spans) - size + 1)]
    best = max(windows, key=lambda window: _dice(wanted, terms(text[slice(*window)])), default=(0, 0))
    return text[slice(*best)] if _dice(wanted, terms(text[slice(*best)])) >= _ALIKE else ""


def _dice(wanted: frozenset[str], found: Sequence[str]) -> float:
    theirs = set(found)
    return 2 * len(wanted & theirs) / max(1, len(wanted) + len(theirs))
