"""Whether a token of one text stands in another, in whatever form."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.citing.reading import Reading, Token

_BELONGING: Final = ("an", "n", "ish", "es", "ese", "ic", "i", "s", "er", "al")


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
    return token.kind == "name" and (_abbreviates(token, evidence) or _inflects(token, evidence))


def _abbreviates(token: Token, evidence: Reading) -> bool:
    """NFL for National Football League, and the other way round."""
    if token.raw.isupper() and len(token.raw) > 1:
        initials = "".join(word[0] for word in re.findall(r"[^\W\d_]+", evidence.text))
        return token.raw.lower() in initials.lower()
    written = (other.raw for other in evidence.tokens if other.raw.isupper() and len(other.raw) > 2)
    return any(token.raw[0].upper() in short for short in written) and token.raw[0].isupper()


def _inflects(token: Token, evidence: Reading) -> bool:
    """American for America, Norwegian for Norway."""
    for other in evidence.tokens:
        if other.kind in ("name", "word") and other.key[:4] == token.key[:4] and len(other.key) >= 4:
            shorter, longer = sorted((other.key, token.key), key=len)
            stem = next((i for i in range(len(shorter)) if shorter[i] != longer[i]), len(shorter))
            if len(shorter) - stem <= 2 and len(longer) - stem <= 5 and longer.endswith(_BELONGING):
                return True
    return False


def resolves(statement: Reading, i: int, context: Reading) -> bool:
    kind = statement.tokens[i].kind
    return (kind == "name" and stands(statement.tokens[i], context)) or (
        kind == "han" and covered(statement, i, context) and not _is_scattered(statement, i, context)
    )


def _is_scattered(statement: Reading, i: int, context: Reading) -> bool:
    """Whether a Chinese sign is no part of a longer run of the context: pairs of signs recur by chance."""
    text = "".join(token.key for token in context.tokens)
    around = "".join(token.key for token in statement.tokens[max(0, i - 2) : i + 3])
    return not any(around[j : j + 3] in text for j in range(max(1, len(around) - 2)))
