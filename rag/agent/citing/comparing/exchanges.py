"""What stands in the place of something else: two texts aligned, and what each exchange means.

A rewording exchanges common words; another name, another number or another rare word is another fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from rag.agent.citing.comparing import chinese, english
from rag.agent.citing.comparing.coverage import covered, stands
from rag.agent.citing.comparing.reading import Reading, Token

_SHORTEST: Final = 5  # tokens of a clause that is aligned by itself
_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|being|be)\b.{0,60}\bby\b|[被由遭]", re.IGNORECASE)
_OPPOSITES = frozenset(frozenset(pair) for pair in [*english.opposites(), *chinese.opposites()])


def exchanges(statement: Reading, evidence: Reading) -> Iterator[tuple[range, range]]:
    """Runs of the statement that stand where the evidence has something else, clause by clause."""
    theirs = [token.aligned for token in evidence.tokens]
    for places in _parts(statement):
        mine = [statement.tokens[i].aligned for i in places]
        for a1, a2, b1, b2 in _replaced(mine, theirs, [statement.tokens[i].kind == "han" for i in places]):
            if (a1, a2) == (0, len(mine)):
                continue
            size = a2 - a1 + 1
            b1 = max(b1, b2 - size) if a1 == 0 else b1
            b2 = min(b2, b1 + size) if a2 == len(mine) else b2
            if b2 - b1 <= 2 * size + 4:
                yield range(places[0] + a1, places[0] + a2), range(b1, b2)


def _parts(statement: Reading) -> list[list[int]]:
    """The places of the tokens of each clause; one too short to be aligned goes with the one before it."""
    parts: list[list[int]] = []
    clause = -1
    for i, token in enumerate(statement.tokens):
        if not parts or (token.clause != clause and len(parts[-1]) >= _SHORTEST):
            parts.append([])
        parts[-1].append(i)
        clause = token.clause
    if len(parts) > 1 and len(parts[-1]) < _SHORTEST:
        last = parts.pop()
        parts[-1] += last
    return parts


def _replaced(mine: list[str], theirs: list[str], signs: list[bool]) -> Iterator[tuple[int, int, int, int]]:
    """Aligned runs that differ on both sides; a single Chinese sign in common does not divide two of them."""
    run: tuple[int, int, int, int] | None = None
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        lone = kind == "equal" and a2 - a1 == 1 and signs[a1] and run is not None
        if kind != "equal" or lone:
            run = (run[0], a2, run[2], b2) if run else (a1, a2, b1, b2)
            continue
        if run and run[0] < run[1] and run[2] < run[3]:
            yield run
        run = None
    if run and run[0] < run[1] and run[2] < run[3]:
        yield run


def exchange(statement: Reading, evidence: Reading, mine: range, theirs: range) -> str:
    """What it means that `mine` stands where `theirs` stood: a reason of Statement, or empty for a rewording."""
    new = any(not covered(statement, i, evidence) for i in mine)
    missing = any(not covered(evidence, i, statement) for i in theirs)
    here, there = [statement.tokens[i] for i in mine], [evidence.tokens[i] for i in theirs]
    if any(frozenset((a.key, b.key)) in _OPPOSITES for a in here for b in there):
        return "direction"
    reason = _swapped(_written_out(here, evidence), _written_out(there, statement))
    if reason and (missing or new or not voices_differ(statement, evidence)):
        return reason
    if not missing or not new:
        return ""
    if _is_name(here) and _is_name(there):
        return "names"
    return "" if _is_rewording(here, there) else "exchanged"


def _written_out(tokens: Sequence[Token], other: Reading) -> list[Token]:
    """Those that stand there to the letter or not at all: an acronym for its words is no exchange."""
    return [token for token in tokens if token.key in other.keys or not stands(token, other)]


def _swapped(mine: list[Token], theirs: list[Token]) -> str:
    """Numbers or names of the same sentence in each other's place."""
    for kind, reason in (("number", "numbers"), ("name", "names")):
        a, b = ([t for t in side if t.kind == kind] for side in (mine, theirs))
        if a and b and not any(x.same(y) for x in a for y in b) and len(mine) <= 3 and len(theirs) <= 4:
            return reason
    return ""


def _is_name(tokens: Sequence[Token]) -> bool:
    if any(is_named(token) for token in tokens):
        return True
    han = "".join(token.key for token in tokens if token.kind == "han")
    foreign = sum(sign in chinese.FOREIGN for sign in han)
    return foreign >= 2 and foreign * 2 >= len(han)


def _is_rewording(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Whether one of the two is made of words that rewordings exchange."""
    if any(token.kind == "han" for token in (*mine, *theirs)):
        rests = sorted((_rest(_signs(mine)), _rest(_signs(theirs))))
        common = all(token.kind in ("han", "word") for token in (*mine, *theirs))
        return common and ((rests[0] == 0 and rests[1] <= 4) or (rests[0] <= 1 and sum(rests) <= 3))
    return any(all(_is_common(token) for token in side) for side in (mine, theirs))


def _is_common(token: Token) -> bool:
    return token.kind == "word" and (token.key in english.COMMON or bool(token.groups))


def _signs(tokens: Sequence[Token]) -> str:
    return "".join(token.key for token in tokens if token.kind == "han")


def _rest(han: str) -> int:
    """How many signs are left over when the common words are taken out."""
    for size in (3, 2):
        i = 0
        while i + size <= len(han):
            if han[i : i + size] in chinese.COMMON:
                han = han[:i] + han[i + size :]
            else:
                i += 1
    return len(han)


def voices_differ(statement: Reading, evidence: Reading) -> bool:
    return bool(_PASSIVE.search(statement.text)) != bool(_PASSIVE.search(evidence.text))


def is_named(token: Token) -> bool:
    return token.kind == "name" or (token.opens and token.key not in english.COMMON)
