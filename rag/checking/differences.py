"""Plain differences between a statement and sentences that are nearly the same: a value or a sign that was replaced by
another, and names or values that have changed places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Final

from rag.checking.terms import Term, Terms

_RIVALS: Final = ("<>≤≥=≠", "←→↑↓↔", "✓✗✔✘☑☒✅❌")
_BLANK: Final = "\t"
_LONGEST: Final = 6  # tokens of a name that changes places
_JOINS: Final = frozenset("and or & 和 与 及 或".split())


def is_replaced(said: Form, sentences: Iterable[Form]) -> bool:
    """Return True if a sentence is the statement word for word, except for a value or sign of another meaning."""
    if not said.blanks:
        return False
    found = [pairs for sentence in sentences if (pairs := said.beside(sentence)) is not None]
    return bool(found) and all(any(starmap(_differ, pairs)) for pairs in found)


class Form:
    """A text with blanks in the place of its values and signs; those that stand together share one."""

    def __init__(self, text: Terms) -> None:
        self.blanks: list[list[Term]] = []
        self.tabular = text.tabular
        letters: list[str] = []
        for token in text.tokens:
            if token.value is None and token.kind != "sign":
                letters.append(token.letters)
            elif letters[-1:] == [_BLANK]:
                self.blanks[-1].append(token)
            else:
                letters.append(_BLANK)
                self.blanks.append([token])
        self.words = "".join(f"{word}\n" for word in letters)

    def beside(self, other: Form) -> list[tuple[list[Term], list[Term]]] | None:
        """The contents of both texts' blanks if this is a part of the other, or else None."""
        at = f"\n{other.words}".find(f"\n{self.words}")
        if at < 0:
            return None
        start = other.words[:at].count(f"{_BLANK}\n")
        return list(zip(self.blanks, other.blanks[start:], strict=False))


def _differ(mine: Sequence[Term], theirs: Sequence[Term]) -> bool:
    """Return True if one of mine is missing from theirs, and one of theirs that could replace it from mine."""
    signs, their_signs = ({term.key for term in some if term.kind == "sign"} for some in (mine, theirs))
    if any((signs - their_signs) & set(some) and (their_signs - signs) & set(some) for some in _RIVALS):
        return True
    values, others = ([term.value for term in some if term.value] for some in (mine, theirs))
    if len(values) == len(others):
        return any(
            one.rivals(two) and not one.stands(two, copied=True) for one, two in zip(values, others, strict=True)
        )
    left = [value for value in values if not any(value.stands(other, copied=True) for other in others)]
    over = [other for other in others if not any(value.stands(other, copied=True) for value in values)]
    return any(value.rivals(other) for value in left for other in over)


def is_exchanged(said: Terms, sentence: Terms) -> bool:
    """Return True if it is the sentence, or a part of it, with two names or values exchanged."""
    mine = [token.letters for token in said.tokens]
    theirs = [token.letters for token in sentence.tokens]
    if mine == theirs or Counter(mine) - Counter(theirs):
        return False
    for start in range(len(theirs) - len(mine) + 1):
        part = theirs[start : start + len(mine)]
        first = next((at for at, token in enumerate(mine) if token != part[at]), len(mine))
        last = next((at for at in range(len(mine), 0, -1) if mine[at - 1] != part[at - 1]), 0)
        if first < last and _are_swapped(said.tokens[first:last], mine[first:last], part[first:last], said):
            return True
    return False


def _are_swapped(tokens: Sequence[Term], mine: Sequence[str], theirs: Sequence[str], said: Terms) -> bool:
    """Return True if one is X M Y and the other Y M X, X and Y are no phrases, and M does not just join a list."""
    for left in range(1, min(_LONGEST, len(mine) - 1) + 1):
        for right in range(1, min(_LONGEST, len(mine) - left - 1) + 1):
            end = len(mine) - right
            ends_change = mine[end:] == theirs[:right] and mine[:left] == theirs[-left:]
            if ends_change and mine[left:end] == theirs[right : len(theirs) - left]:
                phrases = any(token.kind == "function" for token in (*tokens[:left], *tokens[end:]))
                return not phrases and not _is_list(tokens[left:end], said)
    return False


def _is_list(middle: Sequence[Term], said: Terms) -> bool:
    """Return True if it has only conjunctions and whole parts of a list."""
    sizes = Counter(term.clause for term in said.terms)
    return all(token.letters in _JOINS or (token.kind != "function" and sizes[token.clause] == 1) for token in middle)
