"""The results of checking an answer: the line above it, and the marks in it.

The words tell who checked. Where only rules did, they say what was found, not what is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag.types import Answer, CheckedBy, Statement
from rag.ui.kit.render import Doubtful
from rag.ui.kit.strings import Language, label

_TOLD = ("numbers", "negation", "clause", "language")


def counts(statements: Sequence[Statement]) -> tuple[int, int, int]:
    """Count the supported, partly supported and all statements."""
    by_verdict = Counter(statement.verdict for statement in statements)
    return by_verdict["supported"], by_verdict["partly"], len(statements)


def checker(statements: Sequence[Statement]) -> CheckedBy:
    """Return who checked the statements that are not verbatim."""
    judges = {one.by for one in statements if one.reason != "verbatim"}
    return "model" if "model" in judges else "local" if "local" in judges else "rules"


def head_line(answer: Answer, language: Language) -> str:
    """`5 of 6 statements supported · checked by the chat model`, or nothing where nothing was stated but quoted."""
    supported, partly, count = counts(answer.statements)
    if not count or answer.quoted:
        return ""
    by = checker(answer.statements)
    parts = [label("found" if by == "rules" else "checked", language, supported=supported, count=count)]
    parts += [label("checked_partly", language, count=partly)] if partly else []
    aside = sum(not one.relevant for one in answer.statements)
    parts += [label("checked_aside", language, count=aside)] if aside else []
    return " · ".join([*parts, label(f"checked_by_{by}", language)])


def doubtful(answer: Answer, language: Language) -> list[Doubtful]:
    """Return the statements that are not fully supported, or off-topic, with their marks."""
    return [
        Doubtful(one.start, one.end, *_words(one, language), one.verdict != "unsupported")
        for one in answer.statements
        if one.verdict != "supported" or not one.relevant
    ]


def _words(one: Statement, language: Language) -> tuple[str, str]:
    """The word behind a statement, and its tip."""
    if one.verdict == "supported":
        return label("doubt_aside", language), label("doubt_aside_tip", language)
    kind = "not_found" if one.verdict == "unsupported" and one.by == "rules" else one.verdict
    tip = one.reason if one.reason in _TOLD else "words" if kind == "partly" and one.by == "rules" else kind
    return label(f"doubt_{kind}", language), label(f"doubt_{tip}_tip", language)
