"""Whether one side denies what the other says: negations are matched by the words beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag.agent.citing.comparing.coverage import stands
from rag.agent.citing.comparing.reading import Reading, Token

_SCOPE: Final = 3  # tokens behind a negation that it denies


def denials_differ(statement: Reading, evidence: Reading) -> bool:
    left = list(evidence.negated)
    for place in statement.negated:
        near = (
            at
            for at in _nearest(statement, place, evidence, left)
            if not _denies_another(statement, place, evidence, at)
        )
        match = next(near, None)
        if match is None:
            return True
        left.remove(match)
    return any(_is_within(evidence, place, statement) for place in left)


def _nearest(statement: Reading, place: int, evidence: Reading, left: Sequence[int]) -> list[int]:
    """The negations that have words in common beside them, the most first."""
    beside = [token.aligned for token in statement.tokens[max(0, place - 2) : place + 3]]
    scored = [
        (sum(token.aligned in beside for token in evidence.tokens[max(0, at - 2) : at + 3]), -i, at)
        for i, at in enumerate(left)
    ]
    return [at for score, _, at in sorted(scored, reverse=True) if score]


def _denies_another(statement: Reading, place: int, evidence: Reading, at: int) -> bool:
    """In A, not in B: whether each side denies what the other affirms."""
    mine, theirs = _scope(statement, place), _scope(evidence, at)
    shared = sum(any(a.same(b) for b in theirs) for a in mine)
    if shared == 1:
        return False
    mine, theirs = _without(mine, theirs), _without(theirs, mine)
    return bool(mine and theirs) and _affirms(evidence, mine) and _affirms(statement, theirs)


def _without(tokens: Sequence[Token], others: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if not any(token.same(other) for other in others)]


def _scope(reading: Reading, place: int) -> list[Token]:
    signs = bool(reading.tokens[place:]) and reading.tokens[place].kind == "han"
    behind = reading.tokens[place : place + _SCOPE + signs]
    return [token for token in behind if token.clause == behind[0].clause]


def _affirms(reading: Reading, denied: Sequence[Token]) -> bool:
    """Whether the first thing in `denied` stands in `reading` where nothing is denied."""
    scopes = {place + step for place in reading.negated for step in range(_SCOPE)}
    size = 2 if denied[0].kind == "han" and len(denied) > 1 else 1
    for i in range(len(reading.tokens) - size + 1):
        run = reading.tokens[i : i + size]
        if i not in scopes and all(a.same(b) for a, b in zip(denied, run, strict=False)):
            return True
    return False


def _is_within(evidence: Reading, place: int, statement: Reading) -> bool:
    """Whether the statement repeats what the evidence denies at `place`, and so leaves the denial out."""
    after = evidence.tokens[place : place + 2]
    before = evidence.tokens[max(0, place - 2) : place]
    if place in evidence.forbidden and before and stands(before[-1], statement):
        return True
    if after and after[0].raw.endswith("ly") and not stands(after[0], statement):
        after = evidence.tokens[place + 1 : place + 3]  # not fully approved
    return any(stands(token, statement) for token in after[:1]) and (
        not before or any(stands(token, statement) for token in (*before, *after[1:]))
    )
