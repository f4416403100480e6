"""What contradicts a statement: numbers and units, denials, directions, names, and what was put in a place."""

from __future__ import annotations

from collections.abc import Sequence

from rag.agent.citing.comparing import chinese, english
from rag.agent.citing.comparing.amounts import counted_otherwise, dates_differ, rates_differ, turned
from rag.agent.citing.comparing.coverage import are_forms, stands
from rag.agent.citing.comparing.denials import denials_differ
from rag.agent.citing.comparing.exchanges import exchange, exchanges, is_named, voices_differ
from rag.agent.citing.comparing.reading import Reading, Token
from rag.agent.citing.comparing.roles import exchanged_roles
from rag.agent.citing.comparing.stances import stance

_ENGLISH_OPPOSITES = english.opposites()
_CHINESE_OPPOSITES = [(a, b) for a, b in chinese.opposites() if len(a) > 1 and len(b) > 1]


def contradiction(statement: Reading, evidence: Reading, context: Reading) -> str:
    """What contradicts the statement: a reason of Statement, or empty. `exchanged` is a doubt, the others are none."""
    if not all(stands(number, evidence) for number in statement.numbers) or dates_differ(statement, evidence):
        return "numbers"
    if rates_differ(statement, evidence):
        return "numbers"
    if denials_differ(statement, evidence):
        return "negation"
    how = stance(statement, evidence)
    if how == "direction" or _turns(statement, evidence) or turned(statement, evidence):
        return "direction"
    if any(token.kind == "name" and not stands(token, evidence) and not stands(token, context)
           for token in statement.tokens):  # fmt: skip
        return "names"
    if reason := _misplaced(statement, evidence):
        return reason
    exchanged = {exchange(statement, evidence, *places) for places in exchanges(statement, evidence)}
    exchanged |= {how, counted_otherwise(statement, evidence), exchanged_roles(statement, evidence)}
    return next((reason for reason in ("numbers", "names", "direction", "exchanged") if reason in exchanged), "")


def _turns(statement: Reading, evidence: Reading) -> bool:
    """Whether one says increase where the other says decrease, or before where it says after."""
    said, there = statement.lowered, evidence.lowered
    for a, b in _ENGLISH_OPPOSITES:
        for one, other in ((a, b), (b, a)):
            if one in said and one not in there and other in there and other not in said:
                return True
    for a, b in _CHINESE_OPPOSITES:
        for one, other in ((a, b), (b, a)):
            mine, theirs = statement.unbound, evidence.unbound
            if one in mine and one not in theirs and other in theirs and other not in mine:
                return True
    return any(english.are_contrary(one, other) for one in said - there for other in there - said)


def _misplaced(statement: Reading, evidence: Reading) -> str:
    """A number or a name beside a word that has another one beside it in the evidence."""
    voices = voices_differ(statement, evidence)
    for i, token in enumerate(statement.tokens):
        if token.kind == "number" or (is_named(token) and not voices):
            for step in (1, -1):
                beside = _neighbour(statement, i, step)
                if beside and _has_another(token, beside, step, evidence):
                    return "numbers" if token.kind == "number" else "names"
    return ""


def _neighbour(reading: Reading, i: int, step: int) -> list[Token]:
    """The word right beside a token, in its clause; of Chinese two signs, since one alone recurs by chance."""
    found = [reading.tokens[j] for j in (i + step, i + 2 * step) if 0 <= j < len(reading.tokens)]
    found = [token for token in found if token.clause == reading.tokens[i].clause]
    if found and found[0].kind == "word" and not is_named(found[0]):
        return found[:1]
    return found if [token.kind for token in found] == ["han", "han"] else []


def _has_another(token: Token, beside: Sequence[Token], step: int, evidence: Reading) -> bool:
    """Whether something of the same kind, and never `token`, stands there beside the same words."""
    others = False
    for j in range(len(evidence.tokens)):
        run = [evidence.tokens[k] for k in (j + step * n for n in range(len(beside))) if 0 <= k < len(evidence.tokens)]
        if len(run) < len(beside) or not all(a.same(b) for a, b in zip(run, beside, strict=True)):
            continue
        k, near = j - step, []
        while 0 <= k < len(evidence.tokens) and _alike(evidence.tokens[k], token):
            near.append(evidence.tokens[k])
            k -= step
        if any(other.same(token) or other.key == token.key or are_forms(other, token) for other in near):
            return False
        others = others or bool(near)
    return others


def _alike(other: Token, token: Token) -> bool:
    return other.kind == "number" if token.kind == "number" else is_named(other)
