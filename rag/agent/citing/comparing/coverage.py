"""Whether a token of one text stands in another, in whatever form."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.citing.comparing.reading import Reading, Token

# What is put in the place of which end of a country's or a city's name, both as stems.
_BELONGING: Final = {
    "": ("n", "an", "ian", "ean", "ese", "es", "ish", "ic", "i", "er", "vian"),
    "a": ("an", "ian", "es", "ese", "in", ""),
    "e": ("ian", "ean", "an"),
    "o": ("an", "ian", "ese"),
    "y": ("ian", "ish"),
    "ay": ("egian", "ayan"),
    "as": ("an",),
    "al": ("ues",),
    "and": ("nish", "ish"),
}
_ENDS: Final = {
    "n": ("a",),
    "i": ("stan", "raq", "rael", "gal", "wait", "atar", "emen", "oman", "jab", "nepal", "desh", "rain", "mir", "jan"),
    "er": ("land", "don", "lin", "york", "burg", "town"),
    "es": ("n", "m", "l"),
}
"""How a name must end for these to be put behind it."""
_OTHERS: Final = frozenset(
    (
        ("roman", "romanian"),
        ("german", "germanic"),
        ("niger", "nigerian"),
        ("christ", "christian"),
        ("victor", "victorian"),
    )
)


def covered(statement: Reading, i: int, evidence: Reading) -> bool:
    token = statement.tokens[i]
    if token.kind != "han":
        return stands(token, evidence)
    before = statement.tokens[i - 1] if i else None
    after = statement.tokens[i + 1] if i + 1 < len(statement.tokens) else None
    beside = [t for t in (before, after) if t and t.kind == "han" and t.clause == token.clause]
    if not beside:
        return token.key in evidence.keys
    left = before is not None and before in beside and before.key + token.key in evidence.pairs
    return left or (after is not None and after in beside and token.key + after.key in evidence.pairs)


def stands(token: Token, evidence: Reading) -> bool:
    if token.kind == "number":
        return any(token.same(other) for other in evidence.numbers)
    if token.key in evidence.keys or token.groups & evidence.groups:
        return True
    if token.kind == "name":
        return _abbreviates(token, evidence) or _inflects(token, evidence)
    return token.opens and _inflects(token, evidence)


def _abbreviates(token: Token, evidence: Reading) -> bool:
    """NFL for National Football League, and the other way round."""
    if len(token.raw) == 1:
        return False
    if token.raw.isupper():
        initials = "".join(word[0] for word in re.findall(r"[^\W\d_]+", evidence.text))
        return token.raw.lower() in initials.lower()
    written = (other.raw for other in evidence.tokens if other.raw.isupper() and len(other.raw) > 2)
    return any(token.raw[0].upper() in short for short in written) and token.raw[0].isupper()


def _inflects(token: Token, evidence: Reading) -> bool:
    """American for America, Norwegian for Norway; Australian is of another country than Austria."""
    return any(are_forms(token, other) for other in evidence.by_beginning.get(token.key[:4], ()))


def are_forms(one: Token, other: Token) -> bool:
    """Whether one is the name of a place and the other what belongs to it."""
    alike = one.key[:4] == other.key[:4] and len(other.key) >= 4
    return alike and _is_of(*sorted((one.key, other.key), key=len))


def _is_of(place: str, people: str) -> bool:
    same = next((i for i in range(len(place)) if place[i] != people[i]), len(place))
    if (place, people) in _OTHERS or people[same:] not in _BELONGING.get(place[same:], ()):
        return False
    needed = _ENDS.get(people[same:])
    return needed is None or same < len(place) or place.endswith(needed)


def resolves(statement: Reading, i: int, context: Reading) -> bool:
    kind = statement.tokens[i].kind
    return (kind == "name" and stands(statement.tokens[i], context)) or (
        kind == "han" and covered(statement, i, context) and not _is_scattered(statement, i, context)
    )


def _is_scattered(statement: Reading, i: int, context: Reading) -> bool:
    """Whether a Chinese sign is no part of a longer run of the context: pairs of signs recur by chance."""
    around = "".join(token.key for token in statement.tokens[max(0, i - 2) : i + 3])
    return not any(around[j : j + 3] in context.line for j in range(max(1, len(around) - 2)))
