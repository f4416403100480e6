"""Addresses that open a live page at a sentence: `#:~:text=[prefix-,]start[,end][,-suffix]`.

After the WICG's URL Fragment Text Directives (https://wicg.github.io/scroll-to-text-fragment/): each term lies
within one block of the page and begins and ends at word boundaries; `start,end` may span blocks; context is
given where `start` alone would lead elsewhere. What a browser finds is the rendered text, so the Markdown of
the stored text is taken off first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WIDE = re.compile(f"[{_HAN}]")
# A Latin word with what clings to it, or a run of Chinese up to where its own marks divide it.
_IN_RUN = rf"(?:[{_HAN}0-9A-Za-z%·]|(?<=\d)[,.:](?=\d))"
_UNIT = re.compile(rf"{_IN_RUN}*[{_HAN}]{_IN_RUN}*|[^\s{_HAN}]+")
_EDGE = re.compile(r"^\W++|(?<!\W)\W++$")
_LEAD = re.compile(r"[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,3}[.)][ \t]+)*")
_FENCE = re.compile(r"[ \t]*(`|~)\1\1")
_PIECE = re.compile(r"\S+(?: \S+)*")  # in code white space is kept, and a term holds single spaces only
_ROW = re.compile(r"[ \t]*\|.*\|?[ \t]*")
# Possessive, as page text may hold any number of dashes, which could be divided in too many ways.
_RULE = re.compile(r"[ \t]*+\|?+(?:[ \t]*+:?+-{2,}+:?+[ \t]*+\|?+)++[ \t]*+|[ \t]*+(?:[-*_][ \t]*+){3,}+")
_CELL_END = re.compile(r"(?<!\\)\|")
_EMPHASIS = re.compile(r"\*\*|__|~~|`+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|\\(?=[^\s0-9A-Za-z])")
_SHORT: Final = 24  # units that are given whole; longer text by its beginning and end
_ENDS: Final = 5
_WIDE_SHORT: Final = 40
_WIDE_LEAST: Final = 6
_CONTEXT: Final = 4
_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the page as it is rendered: its text, and where each character stands in the source.

    `group` is what blocks of one paragraph, list, table or piece of code share.
    """

    text: str
    places: tuple[int, ...]
    group: int = 0

    def part(self, start: int, end: int) -> tuple[int, int] | None:
        """Its span that lies within `start` to `end` of the source, or None."""
        inside = [i for i, place in enumerate(self.places) if start <= place < end and not self.text[i].isspace()]
        return (inside[0], inside[-1] + 1) if inside else None


@dataclass(frozen=True, slots=True)
class _Target:
    """A span of one block that is to be found."""

    block: int
    text: str
    start: int
    end: int


def text_fragment(url: str, page_text: str, start: int, end: int) -> str:
    """The address that opens `url` at `page_text[start:end]`; `url` itself where nothing of it is rendered.

    A fragment of the address is kept before the directive.
    """
    base = url.split(":~:", 1)[0]
    blocks = list(_blocks(page_text))
    targets = [
        _Target(i, block.text[part[0] : part[1]], *part)
        for i, block in enumerate(blocks)
        if (part := block.part(start, end)) and re.search(r"\w", block.text[part[0] : part[1]])
    ]
    if not targets:
        return url
    directive = _directive(blocks, targets)
    return f"{base if '#' in base else base + '#'}:~:text={directive}" if directive else url


def _blocks(text: str) -> Iterator[_Block]:
    """Lines without their marks, rows of tables cell by cell, code by what stands between wide gaps."""
    at, fence, group = 0, "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        group += not fence and (mark is not None or not line.strip())
        if fence:
            if mark and mark[1] == fence and not line.strip().strip(fence):
                fence = ""
            else:
                for piece in _PIECE.finditer(line):
                    yield _Block(piece.group(), tuple(range(at + piece.start(), at + piece.end())), group)
        elif mark:
            fence = mark[1]
        elif not _RULE.fullmatch(line):
            yield from _rendered(line, at, group)
        at += len(line) + 1


def _rendered(line: str, at: int, group: int) -> Iterator[_Block]:
    lead = _LEAD.match(line)
    begin = lead.end() if lead else 0
    edges = [begin]
    if _ROW.fullmatch(line):
        edges += [match.end() for match in _CELL_END.finditer(line, begin)]
    for left, right in zip(edges, [*(edge - 1 for edge in edges[1:]), len(line)], strict=True):
        kept = _plain(line, left, right)
        text = "".join(line[i] for i in kept)
        for piece in _PIECE.finditer(text):  # a wide gap is left by something that was not kept
            places = kept[piece.start() : piece.end()]
            yield _Block(piece.group(), tuple(at + i for i in places), group)


def _plain(line: str, left: int, right: int) -> list[int]:
    """The places of `line[left:right]` that are rendered."""
    dropped = {i for match in _EMPHASIS.finditer(line, left, right) for i in range(*match.span())}
    return [i for i in range(left, right) if i not in dropped]


def _directive(blocks: Sequence[_Block], targets: Sequence[_Target]) -> str:
    page = _Page(blocks)
    first = _first(page, targets)
    targets = targets[targets.index(first) :]
    units = _units(first.text)
    if len(targets) == 1 and _is_short(first.text, units):
        start, stop = _trimmed(first.text), ""
    else:
        start = _beginning(page, first.text, units)
        stop = _ending(targets, start)
    if len(targets) == 1 and len(start) + len(stop) >= len(_trimmed(first.text)):
        start, stop = _trimmed(first.text), ""
    prefix, suffix, inside = page.context(first, start) if page.count(start) > 1 else ("", "", True)
    suffix = "" if stop else suffix
    core = ",".join(_encoded(term) for term in (start, stop) if term)
    after = f",-{_encoded(suffix)}" if suffix else ""
    placed = f"{_encoded(prefix)}-,{core}" if prefix else core + after
    # What stands in another block may have company on the live page; then the text alone is better than nothing.
    return placed if inside or placed == core else f"{placed}&text={core}"


def _first(page: _Page, targets: Sequence[_Target]) -> _Target:
    """Where to begin: at the first block, unless that is as short and common as `Yes` in a table."""
    for target in targets[:3]:
        if page.count(_trimmed(target.text)) == 1:
            return target
    return targets[0]


class _Page:
    """The rendered text, as a browser compares it: without case, and white space of one width."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = blocks
        self._folded = "\n".join(_folded(block.text) for block in blocks)

    def count(self, term: str) -> int:
        """How often `term` stands in the page, as whole words, or at least twice."""
        folded = _folded(term)
        left = r"(?<!\w)" if folded[:1].isascii() else ""
        right = r"(?!\w)" if folded[-1:].isascii() else ""
        return sum(1 for _ in re.finditer(f"{left}{re.escape(folded)}{right}", self._folded))

    def context(self, target: _Target, start: str) -> tuple[str, str, bool]:
        """What stands right before, or behind, as far as that tells `start` from the same words elsewhere; and
        whether it stands so close that nothing can have come between on the live page."""
        text = " ".join(self._blocks[target.block].text.split())
        lead = " ".join(self._blocks[target.block].text[: target.start].split())
        at = text.find(start, max(0, len(lead) - 1))
        if at < 0:
            return "", "", True
        before = _trailing(text[:at])
        inside = bool(before) or self._is_joined(target.block - 1, target.block)
        before = before or self._neighbour(target.block - 1, _trailing)
        if not before or self._follows(before, start) == 1:
            return before, "", inside
        after = _leading(text[at + len(start) :])
        behind = after or self._neighbour(target.block + 1, _leading)
        if behind and _trimmed(target.text) == start and self._follows(start, behind) == 1:
            return "", behind, bool(after) or self._is_joined(target.block, target.block + 1)
        return before, "", inside

    def _is_joined(self, first: int, second: int) -> bool:
        known = first >= 0 and second < len(self._blocks)
        return known and self._blocks[first].group == self._blocks[second].group

    def _neighbour(self, block: int, edge: Callable[[str], str]) -> str:
        if not 0 <= block < len(self._blocks):
            return ""
        return edge(self._blocks[block].text)

    def _follows(self, before: str, start: str) -> int:
        pattern = rf"{re.escape(_folded(before))}[\W_]*{re.escape(_folded(start))}"
        return len(re.findall(pattern, self._folded))


def _units(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _UNIT.finditer(text) if re.search(r"\w", match.group())]


def _is_short(text: str, units: Sequence[tuple[int, int]]) -> bool:
    return len(text) <= _WIDE_SHORT if _WIDE.search(text) else len(units) <= _SHORT


def _beginning(page: _Page, text: str, units: Sequence[tuple[int, int]]) -> str:
    """The first words, as many as it takes to be the only such ones of the page."""
    wide = bool(_WIDE.search(text))
    for count in range(1 if wide else min(_ENDS, len(units)), len(units) + 1):
        term = _trimmed(text[units[0][0] : units[count - 1][1]])
        if (not wide or len(term) >= _WIDE_LEAST) and page.count(term) == 1:
            return term
    few = units[: max(_ENDS, 1)]
    return _trimmed(text[few[0][0] : few[-1][1]]) if few else ""


def _ending(targets: Sequence[_Target], start: str) -> str:
    """The last words, as many as it takes not to be met before they should be; the end of an earlier block, if
    those of the last one never are enough."""
    texts = [" ".join(target.text.split()) for target in targets]
    texts[0] = texts[0][texts[0].find(start) + len(start) :]
    for last in range(len(texts) - 1, -1, -1):
        rest = _folded("\n".join(texts[: last + 1]))
        units = _units(texts[last])
        wide = bool(_WIDE.search(texts[last]))
        for count in range(1 if wide else min(_ENDS, len(units)), len(units) + 1):
            term = _trimmed(texts[last][units[-count][0] : units[-1][1]]) if count else ""
            if term and (not wide or len(term) >= _WIDE_LEAST or last) and rest.count(_folded(term)) == 1:
                return term
    return ""


def _trailing(text: str) -> str:
    """The last words of what stands before, with the marks behind them: context must touch the text."""
    units = _units(text)
    units = units[-1:] if units and _WIDE.search(text[slice(*units[-1])]) else units[-_CONTEXT:]
    return " ".join(text[units[0][0] :].split()) if units else ""


def _leading(text: str) -> str:
    units = _units(text)
    units = units[:1] if units and _WIDE.search(text[slice(*units[0])]) else units[:_CONTEXT]
    return " ".join(text[: units[-1][1]].split()) if units else ""


def _trimmed(term: str) -> str:
    """One line, without marks at its ends: typography differs there between what is stored and what is shown."""
    term = " ".join(term.split())
    return _EDGE.sub("", term) or term


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _encoded(term: str) -> str:
    """Percent-encoded, with the signs that the directive itself uses."""
    return quote(term, safe="").replace("-", "%2D")
