"""Who does what to whom: whether the same words stand the other way round about a verb."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from typing import Final

from rag.agent.citing.comparing import english
from rag.agent.citing.comparing.coverage import stands
from rag.agent.citing.comparing.reading import Reading, Token

_NEAR: Final = 3  # tokens that may stand between a verb and who does it
_MARKER = re.compile(r"\b(?:by|from|to|than|into|before|after)\b|[被把由将从是]", re.IGNORECASE)
_RANGE = re.compile(r"\s*(?:[-:~/至到]|to)\s*")
_NOMINAL = re.compile(
    r"(?:\b(?:the|a|an|of|in|on|at|with|for|his|her|its|their|our|this|that|these|those|and|or|as)\s+|'s?\s+|的)$",
    re.IGNORECASE,
)
_ADJUNCT = re.compile(
    r"(?:\b(?:in|on|at|during|within|since|for|with|under|near|as|about|of|through|across|among|between)\s+(?:the "
    r"|a |an |its |his )?|[在于])$",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"\bby\b|\b(?:is|are|was|were|been|being|be)\s+(?:\w+ly\s+)?\w+(?:ed|en)\b|[被由遭]|受到|为.{1,8}所", re.IGNORECASE
)
_EITHER_WAY = re.compile(
    r"\b(?:meet|met|marr|border|adjoin|equal|resembl|differ|merg|coincid|compet|cooperat|correspond|similar"
    r"|identical|adjacent"
    r"|next to|connect|link|relat|compar|neighbou?r|and|or|is|are|was|were|be)|相[邻同似等当关连]|接壤|毗邻|结婚"
    r"|合并|合作|会[晤见面]|不同|竞争|等于|平行|对应|[和与及跟同]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Bead:
    """A token, or a word such as `by` that tells roles apart."""

    key: str
    token: Token | None


@dataclass(frozen=True, slots=True)
class _Tile:
    """A run that stands in both: `mine:mine + size` here, `theirs:theirs + size` there."""

    mine: int
    theirs: int
    size: int


def exchanged_roles(statement: Reading, evidence: Reading) -> str:
    """`exchanged` where who and whom changed places, `numbers` where two numbers did, else empty."""
    here, there = _beads(statement), _beads(evidence)
    tiles = sorted(_tiles(here, there), key=lambda tile: tile.mine)
    pair = _Pair(statement, evidence, here, there)
    for first, middle, last in combinations(tiles, 3):
        if first.theirs > middle.theirs > last.theirs and pair.turns(first, middle, last):
            return "numbers" if pair.is_number(first) and pair.is_number(last) else "exchanged"
    replaced = any(
        a.theirs > b.theirs and b.mine == a.mine + a.size and pair.is_replaced(a, b) for a, b in combinations(tiles, 2)
    )
    return "exchanged" if replaced else ""


def _beads(reading: Reading) -> list[_Bead]:
    beads: list[_Bead] = []
    at = 0
    for token in reading.tokens:
        if beads and (marker := _marker(reading.text[at : token.start])):
            beads.append(_Bead(marker, None))
        beads.append(_Bead(token.aligned, token))
        at = token.end
    return beads


def _marker(gap: str) -> str:
    if _RANGE.fullmatch(gap):
        return "|-"
    found = _MARKER.search(gap)
    return "|" + found.group().lower() if found else ""


def _tiles(here: Sequence[_Bead], there: Sequence[_Bead]) -> Iterator[_Tile]:
    """The longest runs in common, each place used once."""
    mine: list[object] = [bead.key for bead in here]
    theirs: list[object] = [bead.key for bead in there]
    while True:
        match = SequenceMatcher(None, mine, theirs, autojunk=False).find_longest_match()
        if not match.size:
            return
        tile = _without_markers(here, _Tile(match.a, match.b, match.size))
        yield tile
        for i in range(tile.size):
            mine[tile.mine + i] = object()
            theirs[tile.theirs + i] = object()


def _without_markers(here: Sequence[_Bead], tile: _Tile) -> _Tile:
    """A marker stands between two, and is part of neither."""
    start, size = 0, tile.size
    while size > 1 and here[tile.mine + start].token is None:
        start, size = start + 1, size - 1
    while size > 1 and here[tile.mine + start + size - 1].token is None:
        size -= 1
    return _Tile(tile.mine + start, tile.theirs + start, size)


@dataclass(frozen=True, slots=True)
class _Pair:
    statement: Reading
    evidence: Reading
    here: list[_Bead]
    there: list[_Bead]

    def turns(self, first: _Tile, middle: _Tile, last: _Tile) -> bool:
        """Whether `first` and `last` stand on the other sides of `middle`, close to it, as who and whom do."""
        near = (
            self._is_near(self.here, first.mine + first.size, middle.mine)
            and self._is_near(self.here, middle.mine + middle.size, last.mine)
            and self._is_near(self.there, last.theirs + last.size, middle.theirs)
            and self._is_near(self.there, middle.theirs + middle.size, first.theirs)
        )
        if not near or self.is_number(first) != self.is_number(last):
            return False
        if not (self._is_certain(first, first, middle, last) and self._is_certain(last, first, middle, last)):
            return False
        mine = self._between(self.statement, self.here, first.mine, last.mine + last.size)
        theirs = self._between(self.evidence, self.there, last.theirs, first.theirs + first.size)
        if mine is None or theirs is None or bool(_PASSIVE.search(mine)) != bool(_PASSIVE.search(theirs)):
            return False
        return self._is_relation(first, middle, last) and not (self._is_adjunct(first) or self._is_adjunct(last))

    def is_replaced(self, subject: _Tile, said: _Tile) -> bool:
        """Tenant pays … where the page has: landlord pays … to the tenant."""
        tokens = [bead.token for bead in self.here[said.mine : said.mine + said.size] if bead.token]
        weight = sum(0.5 if token.kind == "han" else 1.0 for token in tokens if token.kind != "number")
        before = self.there[said.theirs - 1].token if said.theirs else None
        who = self.here[subject.mine + subject.size - 1].token
        if weight < 2 or before is None or who is None or not self._is_once(subject):
            return False
        rest = self._between(self.evidence, self.there, said.theirs - 1, subject.theirs + subject.size)
        if rest is None or _PASSIVE.search(rest) or _EITHER_WAY.search(rest) or self._is_adjunct(subject):
            return False
        named = before.kind in ("word", "name") and before.key not in english.COMMON and who.kind in ("word", "name")
        return named and not stands(before, self.statement)

    def is_number(self, tile: _Tile) -> bool:
        return tile.size == 1 and (token := self.here[tile.mine].token) is not None and token.kind == "number"

    def _is_near(self, beads: Sequence[_Bead], start: int, end: int) -> bool:
        return 0 <= end - start <= _NEAR

    def _is_once(self, tile: _Tile) -> bool:
        keys = [bead.key for bead in self.here[tile.mine : tile.mine + tile.size]]
        return all([bead.key for bead in side].count(key) == 1 for key in keys[:1] for side in (self.here, self.there))

    def _is_certain(self, tile: _Tile, first: _Tile, middle: _Tile, last: _Tile) -> bool:
        """One Chinese sign recurs by chance, unless it stands right where the other stood."""
        token = self.here[tile.mine].token
        if token is None:
            return False
        if token.kind != "han" or tile.size > 1:
            return tile.size > 1 or self._is_once(tile)
        touching = first.mine + first.size == middle.mine and middle.mine + middle.size == last.mine
        there = last.theirs + last.size == middle.theirs and middle.theirs + middle.size == first.theirs
        return touching and there

    def _between(self, reading: Reading, beads: Sequence[_Bead], start: int, end: int) -> str | None:
        """The text of these beads; None where they do not stand in one clause."""
        tokens = [bead.token for bead in beads[start:end] if bead.token]
        if not tokens or tokens[0].clause != tokens[-1].clause:
            return None
        return reading.text[tokens[0].start : tokens[-1].end]

    def _belong(self, first: _Tile, last: _Tile) -> bool:
        """X is Y's husband, Y is X's: what is said belongs to the other one."""
        mine, theirs = self.here[last.mine + last.size - 1].token, self.there[first.theirs + first.size - 1].token
        behind = mine is not None and self.statement.text[mine.end : mine.end + 1] == "的"
        return behind and theirs is not None and self.evidence.text[theirs.end : theirs.end + 1] == "的"

    def _is_relation(self, first: _Tile, middle: _Tile, last: _Tile) -> bool:
        """Whether it can be a verb: no noun with its article, nothing that says the same either way round."""
        tokens = [bead.token for bead in self.here[middle.mine : middle.mine + middle.size] if bead.token]
        if len(tokens) < middle.size:
            return self.here[middle.mine].key != "|是" or self._belong(first, last)
        if all(token.kind in ("number", "name") for token in tokens):
            return False
        if sum(0.5 if token.kind == "han" else 1.0 for token in tokens) < 1:
            return False
        other = self.there[middle.theirs].token
        span = self.statement.text[tokens[0].start : tokens[-1].end]
        nouns = self._follows(_NOMINAL, self.statement, tokens[0]) or (
            other is not None and self._follows(_NOMINAL, self.evidence, other)
        )
        return not nouns and not _EITHER_WAY.match(span)

    def _is_adjunct(self, tile: _Tile) -> bool:
        mine, theirs = self.here[tile.mine].token, self.there[tile.theirs].token
        return any(
            token is not None and self._follows(_ADJUNCT, reading, token)
            for token, reading in ((mine, self.statement), (theirs, self.evidence))
        )

    def _follows(self, pattern: re.Pattern[str], reading: Reading, token: Token) -> bool:
        return bool(pattern.search(reading.text[max(0, token.start - 24) : token.start]))
