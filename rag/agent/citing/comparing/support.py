"""Whether a sentence bears out a statement: by what they share, and by what must not differ.

Words may differ, since statements are reworded. Numbers, units, names, negations and directions may not:
one of these changed is a contradiction, however much else is shared. Whether an exchange of words changes
what is said is judged by the words: a rewording exchanges common ones, another fact exchanges rare ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rag.agent.citing.comparing.contradictions import contradiction
from rag.agent.citing.comparing.coverage import covered, resolves, stands
from rag.agent.citing.comparing.reading import Reading
from rag.types import Verdict

SUPPORTED: Final = 0.6
"""From this share of a statement's weighted terms on, a sentence bears it out."""
PARTLY: Final = 0.35
_CLAUSE: Final = 1 / 3  # of each clause: what was added to a true sentence must stand there too
_LEAST: Final = 2.0  # what is shared weighs at least this much: a word in common is no support
_WEIGHTS: Final = {"name": 2.0, "number": 2.0, "word": 1.0, "han": 0.5}
_ORDER: Final = {"unsupported": 0, "partly": 1, "supported": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """`share` (0 to 1) of the statement's weighted terms stand there; `reason` as in Statement."""

    verdict: Verdict
    share: float
    reason: str

    @property
    def rank(self) -> tuple[int, float]:
        return _ORDER[self.verdict], self.share

    @property
    def against(self) -> bool:
        """Whether what stands there contradicts the statement."""
        return self.reason in ("numbers", "negation", "direction", "names")


def judge(statement: Reading, evidence: Reading, context: Reading) -> Finding:
    """Hold `statement` against `evidence`, which stands in `context` (its passage, with title and headings)."""
    if statement.is_chinese != evidence.is_chinese:
        mixed = _within_language(statement, evidence, context) if statement.has_han and evidence.has_han else None
        return mixed if mixed and mixed.reason != "nothing_close" else _across_languages(statement, evidence)
    return _within_language(statement, evidence, context)


def _within_language(statement: Reading, evidence: Reading, context: Reading) -> Finding:
    share, weight = _shared(statement, evidence, context)
    if share < PARTLY or weight < _LEAST:
        return Finding("unsupported", share, "nothing_close")
    if against := contradiction(statement, evidence, context):
        return Finding("partly" if against == "exchanged" else "unsupported", share, against)
    whole = share >= SUPPORTED and all(part >= _CLAUSE for part in _clauses(statement, evidence, context))
    return Finding("supported" if whole else "partly", share, "words")


def _across_languages(statement: Reading, evidence: Reading) -> Finding:
    """Words tell nothing there; numbers and names in Latin letters do, and those alone prove nothing."""
    kept = [token for token in statement.tokens if token.kind == "number" or token.raw.isascii()]
    if not kept:
        return Finding("partly", 0.0, "language")
    latin = evidence.is_chinese
    for number in statement.numbers:
        if not any(number.same(other) or number.value == other.value for other in evidence.numbers):
            return Finding("unsupported", 0.0, "numbers")
    names = [token for token in kept if token.kind == "name" or (token.kind == "word" and not latin)]
    if names and not any(stands(token, evidence) for token in names):
        return Finding("unsupported", 0.0, "names")
    share = sum(stands(token, evidence) for token in kept) / len(kept)
    return Finding("partly", share, "language")


def _shared(statement: Reading, evidence: Reading, context: Reading) -> tuple[float, float]:
    """The share of the statement's weighted terms in the evidence, and their weight.

    Names that stand nowhere there but in its context are left out: a pronoun was resolved.
    """
    found, missing = 0.0, 0.0
    for i, token in enumerate(statement.tokens):
        if covered(statement, i, evidence):
            found += _WEIGHTS[token.kind]
        elif not resolves(statement, i, context):
            missing += _WEIGHTS[token.kind]
    return (found / (found + missing) if found else 0.0), found


def _clauses(statement: Reading, evidence: Reading, context: Reading) -> Iterator[float]:
    """The share of each clause that is long enough to state something."""
    for clause in sorted({token.clause for token in statement.tokens}):
        places = [i for i, token in enumerate(statement.tokens) if token.clause == clause]
        weights = [_WEIGHTS[statement.tokens[i].kind] for i in places]
        if sum(weights) >= 2:
            found = [covered(statement, i, evidence) or resolves(statement, i, context) for i in places]
            yield sum(w for w, there in zip(weights, found, strict=True) if there) / sum(weights)
