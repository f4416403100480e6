"""A supervisor that picks by the question what to search with, and says why."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from rag.errors import ModelError
from rag.retrieval.strategies.base import Engine, Found, Need, SearchRequest, fallback_note
from rag.retrieval.strategies.multi_query import MultiQuery
from rag.retrieval.strategies.rerank import Rerank

LEANING: dict[Need, float] = {"exact": 2 / 3, "concept": 3 / 2}
"""What the dense leg counts beside what it counts else. Small steps, since what was measured speaks neither for nor
against them; see docs/decisions/0004-strategies.md."""

_QUOTED = re.compile('"[^"\n]{2,60}"|“[^”\n]{2,60}”|「[^」\n]{2,60}」|『[^』\n]{2,60}』|`[^`\n]{2,60}`')
_CODE = re.compile(
    r"(?<![\w.])(?:[A-Za-z]+[-_.]?\d[\w.-]*|\d[\w.,-]*\w|\d|[A-Z][A-Z0-9&]+|\w+[_/]\w[\w/]*)(?![\w])", re.ASCII
)
_NAME = re.compile(r"(?<=[\w,] )(?:[A-Z][a-z]+ ){1,3}[A-Z][a-z]+\b")
_CONCEPT = re.compile(
    r"^\W*(?:why\b|explain\b|describe\b|compare\b|how(?! (?:many|much|old|long|far|tall|high|large|often|big|fast))\b)"
    r"|\b(?:reasons?|causes?|purpose|difference|relationship|effects?|impact|meaning|role|advantages?|concept)"
    r" (?:for|of|between|on|in)\b"
    r"|\bwhat does .{1,60} mean\b|为什么|为何|如何|怎么|怎样|原因|区别|作用|意义|影响|关系|含义|概念|优点|缺点",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how)\b|什么|哪|谁|多少|几[^乎]|何时|为什么|如何|怎|多[久长大高远快]",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;?，；？、]|\band\b|以及|并且|还有|另外", re.IGNORECASE)
_LISTS = re.compile(r"分别|\brespectively\b|\beach of\b", re.IGNORECASE)

_PLAIN = Rerank()


@dataclass(frozen=True, slots=True)
class Auto:
    """Many facets: several searches. Names, numbers, codes, quotations: the keywords weigh more. Ideas: the meaning.

    By rules first; where they do not tell, the expander is asked, and where that cannot tell either, the
    question is searched for as by default.
    """

    name: str = "auto"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        need, why = by_rules(request.question)
        notes: dict[str, Any] = {}
        if not need and engine.expander is not None:
            try:
                need = engine.expander.need(request.question)
            except ModelError as error:
                notes = fallback_note(engine.expander, error)
            if need:
                why = {"code": f"auto_{need}_model", "params": {"model": engine.expander.name}}
        found = _find(need, request, engine)
        return replace(found, notes={**notes, **found.notes, "why": why})


def by_rules(question: str) -> tuple[Need, dict[str, Any]]:
    """What the question asks of a search, and why, as a message's code and values."""
    if parts := _facets(question):
        return "facets", {"code": "auto_facets", "params": {"parts": parts}}
    if words := _exact(question):
        return "exact", {"code": "auto_exact", "params": {"words": words}}
    if found := _CONCEPT.search(question):
        return "concept", {"code": "auto_concept", "params": {"word": found[0].strip()}}
    return "", {"code": "auto_plain", "params": {}}


def _facets(question: str) -> int:
    """How many parts ask something; 0 for a question that asks one thing."""
    asking = sum(1 for clause in _CLAUSE.split(question) if clause and ASKS.search(clause))
    return max(asking, 2) if asking > 1 or _LISTS.search(question) else 0


def _exact(question: str) -> str:
    """The quotation, code, number or name of several words that the question holds."""
    for pattern in (_QUOTED, _CODE, _NAME):
        if found := pattern.search(question):
            return found[0].strip()
    return ""


def _find(need: Need, request: SearchRequest, engine: Engine) -> Found:
    if need == "facets":
        return MultiQuery().find(request, engine)
    tuning = request.tuning
    dense = tuning.dense_weight * LEANING.get(need, 1.0)
    return _PLAIN.find(replace(request, tuning=replace(tuning, dense_weight=dense)), engine)
