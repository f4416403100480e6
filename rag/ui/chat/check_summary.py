"""The results of checking an answer: the line above it, and the marks in it.

The wording names the checker. For rule checks it says what was found, not what is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag.types import Answer, CheckedBy, Statement
from rag.ui.kit.render import Doubtful
from rag.ui.kit.strings import Language, label

_TIPS = ("numbers", "negation", "clause", "language")


def count_verdicts(statements: Sequence[Statement]) -> tuple[int, int, int]:
    """Count the supported, partly supported and all statements."""
    by_verdict = Counter(statement.verdict for statement in statements)
    return by_verdict["supported"], by_verdict["partly"], len(statements)


def checker(statements: Sequence[Statement]) -> CheckedBy:
    """Return the checker of the statements that are not verbatim."""
    judges = {statement.by for statement in statements if statement.reason != "verbatim"}
    return "model" if "model" in judges else "local" if "local" in judges else "rules"


def head_line(answer: Answer, language: Language) -> str:
    """Return e.g. `5 of 6 statements supported · checked by the chat model`; empty if all statements are quotes."""
    supported, partly, count = count_verdicts(answer.statements)
    if not count or answer.quoted:
        return ""
    by = checker(answer.statements)
    parts = [label("found" if by == "rules" else "checked", language, supported=supported, count=count)]
    parts += [label("checked_partly", language, count=partly)] if partly else []
    off_topic = sum(not statement.relevant for statement in answer.statements)
    parts += [label("checked_aside", language, count=off_topic)] if off_topic else []
    return " · ".join([*parts, label(f"checked_by_{by}", language)])


def doubtful(answer: Answer, language: Language) -> list[Doubtful]:
    """Return the statements that are not fully supported, or off-topic, with their marks."""
    return [
        Doubtful(statement.start, statement.end, *_doubt_words(statement, language), statement.verdict != "unsupported")
        for statement in answer.statements
        if statement.verdict != "supported" or not statement.relevant
    ]


def _doubt_words(claim: Statement, language: Language) -> tuple[str, str]:
    """Return the word after a statement, and its tooltip."""
    if claim.verdict == "supported":
        return label("doubt_aside", language), label("doubt_aside_tip", language)
    kind = "not_found" if claim.verdict == "unsupported" and claim.by == "rules" else claim.verdict
    tip = claim.reason if claim.reason in _TIPS else "words" if kind == "partly" and claim.by == "rules" else kind
    return label(f"doubt_{kind}", language), label(f"doubt_{tip}_tip", language)
