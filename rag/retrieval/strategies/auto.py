"""A strategy that picks another one by the question, and gives the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from rag.errors import ModelError
from rag.patterns import lazy_regex
from rag.retrieval.strategies.base import Engine, Found, Need, SearchRequest, fallback_note
from rag.retrieval.strategies.expanded import MultiQuery
from rag.retrieval.strategies.rerank import Rerank

DENSE_FACTORS: dict[Need, float] = {"exact": 2 / 3, "concept": 3 / 2}
"""Factors on the weight of the dense leg. They are small, since measurements speak neither for nor against them; see
docs/decisions/0004-strategies.md."""

_QUOTED = lazy_regex('"[^"\n]{2,60}"|“[^”\n]{2,60}”|「[^」\n]{2,60}」|『[^』\n]{2,60}』|`[^`\n]{2,60}`')
_CODE = lazy_regex(
    r"(?<![\w.])(?:[A-Za-z]+[-_.]?\d[\w.-]*|\d[\w.,-]*\w|\d|[A-Z][A-Z0-9&]+|\w+[_/]\w[\w/]*)(?![\w])", re.ASCII
)
_NAME = lazy_regex(r"(?<=[\w,] )(?:[A-Z][a-z]+ ){1,3}[A-Z][a-z]+\b")
_CONCEPT = lazy_regex(
    r"^\W*(?:why\b|explain\b|describe\b|compare\b|how(?! (?:many|much|old|long|far|tall|high|large|often|big|fast))\b)"
    r"|\b(?:reasons?|causes?|purpose|difference|relationship|effects?|impact|meaning|role|advantages?|concept)"
    r" (?:for|of|between|on|in)\b"
    r"|\bwhat does .{1,60} mean\b|为什么|为何|如何|怎么|怎样|原因|区别|作用|意义|影响|关系|含义|概念|优点|缺点",
    re.IGNORECASE,
)
ASKS = lazy_regex(
    r"\b(?:what|which|who|whom|whose|when|where|why|how)\b|什么|哪|谁|多少|几[^乎]|何时|为什么|如何|怎|多[久长大高远快]",
    re.IGNORECASE,
)
_CLAUSE = lazy_regex(r"[,;?，；？、]|\band\b|以及|并且|还有|另外", re.IGNORECASE)
_LISTS = lazy_regex(r"分别|\brespectively\b|\beach of\b", re.IGNORECASE)

_PLAIN = Rerank()


@dataclass(frozen=True, slots=True)
class Auto:
    """Several searches for many facets, more keyword weight for names, numbers, codes and quotations, more dense weight
    for concepts.

    Rules decide first; if they are undecided, the expander is asked, and if it is too, the default search is used.
    """

    name: str = "auto"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        need, reason = decide_by_rules(request.question)
        notes: dict[str, Any] = {}
        if not need and engine.expander is not None:
            try:
                need = engine.expander.need(request.question)
            except ModelError as error:
                notes = fallback_note(engine.expander, error)
            if need:
                reason = {"code": f"auto_{need}_model", "params": {"model": engine.expander.name}}
        result = _find(need, request, engine)
        return replace(result, notes={**notes, **result.notes, "why": reason})


def decide_by_rules(question: str) -> tuple[Need, dict[str, Any]]:
    """Return the need of the question, and the reason as a message's code and values."""
    if parts := _count_facets(question):
        return "facets", {"code": "auto_facets", "params": {"parts": parts}}
    if words := _find_exact(question):
        return "exact", {"code": "auto_exact", "params": {"words": words}}
    if match := _CONCEPT.search(question):
        return "concept", {"code": "auto_concept", "params": {"word": match[0].strip()}}
    return "", {"code": "auto_plain", "params": {}}


def _count_facets(question: str) -> int:
    """Return how many parts of the question ask something; 0 if it asks one thing."""
    asking = sum(1 for clause in _CLAUSE.split(question) if clause and ASKS.search(clause))
    return max(asking, 2) if asking > 1 or _LISTS.search(question) else 0


def _find_exact(question: str) -> str:
    """Return the first quotation, code, number or multi-word name in the question."""
    for pattern in (_QUOTED, _CODE, _NAME):
        if match := pattern.search(question):
            return match[0].strip()
    return ""


def _find(need: Need, request: SearchRequest, engine: Engine) -> Found:
    if need == "facets":
        return MultiQuery().find(request, engine)
    tuning = request.tuning
    dense = tuning.dense_weight * DENSE_FACTORS.get(need, 1.0)
    return _PLAIN.find(replace(request, tuning=replace(tuning, dense_weight=dense)), engine)
