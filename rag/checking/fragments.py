"""Links that open a live page at a sentence: `#:~:text=[prefix-,]start[,end][,-suffix]`.

As in WICG's URL Fragment Text Directives (https://wicg.github.io/scroll-to-text-fragment/), each term is within one
block of the page and begins and ends at word boundaries; `start,end` may span blocks; context is added if `start` alone
is ambiguous. Browsers search the rendered text, so the Markdown of the stored text is removed first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from rag.text import lazy_regex

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WIDE = lazy_regex(f"[{_HAN}]")
# A Latin word with its punctuation, or a run of Chinese up to its next punctuation mark.
_IN_RUN = rf"(?:[{_HAN}0-9A-Za-z%·]|(?<=\d)[,.:](?=\d))"
_UNIT = lazy_regex(rf"{_IN_RUN}*[{_HAN}]{_IN_RUN}*|[^\s{_HAN}]+")
_EDGE = lazy_regex(r"^\W++|(?<!\W)\W++$")
_LEAD = lazy_regex(r"[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,3}[.)][ \t]+)*")
_FENCE = lazy_regex(r"[ \t]*(`|~)\1\1")
_PIECE = lazy_regex(r"\S+(?: \S+)*")  # code keeps its white space, but a term has single spaces only
_ROW = lazy_regex(r"[ \t]*\|.*\|?[ \t]*")
# Possessive: a long run of dashes could be split in too many ways.
_RULE = lazy_regex(r"[ \t]*+\|?+(?:[ \t]*+:?+-{2,}+:?+[ \t]*+\|?+)++[ \t]*+|[ \t]*+(?:[-*_][ \t]*+){3,}+")
_CELL_END = lazy_regex(r"(?<!\\)\|")
_EMPHASIS = lazy_regex(r"\*\*|__|~~|`+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|\\(?=[^\s0-9A-Za-z])")
_SHORT: Final = 24  # units that are quoted in full; longer text by its beginning and end
_ENDS: Final = 5
_WIDE_SHORT: Final = 40
_WIDE_LEAST: Final = 6
_CONTEXT: Final = 4


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the rendered page: its text, and the offset of each character in the source.

    `group` is the number of the paragraph, list, table or piece of code that the block belongs to.
    """

    text: str
    places: tuple[int, ...]
    group: int = 0

    def part(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of the block within `start` to `end` of the source, or None."""
        inside = [i for i, place in enumerate(self.places) if start <= place < end and not self.text[i].isspace()]
        return (inside[0], inside[-1] + 1) if inside else None


@dataclass(frozen=True, slots=True)
class _Target:
    """A span of one block for the browser to find."""

    block: int
    text: str
    start: int
    end: int


def text_fragment(url: str, page_text: str, start: int, end: int) -> str:
    """Return the address that opens `url` at `page_text[start:end]`, or `url` itself if none of that is rendered.

    An existing fragment of the URL is kept before the directive.
    """
    base = url.split(":~:", 1)[0]
    blocks = list(_read_blocks(page_text))
    targets = [
        _Target(i, block.text[part[0] : part[1]], *part)
        for i, block in enumerate(blocks)
        if (part := block.part(start, end)) and re.search(r"\w", block.text[part[0] : part[1]])
    ]
    if not targets:
        return url
    directive = _build_directive(blocks, targets)
    return f"{base if '#' in base else base + '#'}:~:text={directive}" if directive else url


def _read_blocks(text: str) -> Iterator[_Block]:
    """Yield lines without their Markdown, table rows cell by cell, and code split at wide gaps."""
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
            yield from _render(line, at, group)
        at += len(line) + 1


def _render(line: str, at: int, group: int) -> Iterator[_Block]:
    marker = _LEAD.match(line)
    start = marker.end() if marker else 0
    edges = [start]
    if _ROW.fullmatch(line):
        edges += [match.end() for match in _CELL_END.finditer(line, start)]
    for left, right in zip(edges, [*(edge - 1 for edge in edges[1:]), len(line)], strict=True):
        hidden = {i for match in _EMPHASIS.finditer(line, left, right) for i in range(*match.span())}
        visible = [i for i in range(left, right) if i not in hidden]
        text = "".join(line[i] for i in visible)
        for piece in _PIECE.finditer(text):  # a removed part leaves a wide gap
            places = visible[piece.start() : piece.end()]
            yield _Block(piece.group(), tuple(at + i for i in places), group)


def _build_directive(blocks: Sequence[_Block], targets: Sequence[_Target]) -> str:
    page = _Page(blocks)
    # Start from the first one, unless it is ambiguous, such as `Yes` in a table.
    first = next((target for target in targets[:3] if page.count(_trim(target.text)) == 1), targets[0])
    targets = targets[targets.index(first) :]
    units = _units(first.text)
    if len(targets) == 1 and _is_short(first.text, units):
        start, stop = _trim(first.text), ""
    else:
        start = _find_beginning(page, first.text, units)
        stop = _find_ending(targets, start)
    if len(targets) == 1 and len(start) + len(stop) >= len(_trim(first.text)):
        start, stop = _trim(first.text), ""
    prefix, suffix, touches = page.context(first, start) if page.count(start) > 1 else ("", "", True)
    suffix = "" if stop else suffix
    core = ",".join(_encode(term) for term in (start, stop) if term)
    suffix_part = f",-{_encode(suffix)}" if suffix else ""
    with_context = f"{_encode(prefix)}-,{core}" if prefix else core + suffix_part
    # The live page may have more text between two blocks; then the text alone is better than nothing.
    return with_context if touches or with_context == core else f"{with_context}&text={core}"


class _Page:
    """The rendered text as browsers compare it: case-insensitive, with single spaces."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = blocks
        self._folded = "\n".join(_fold(block.text) for block in blocks)

    def count(self, term: str) -> int:
        """Count the occurrences of `term` in the page as whole words."""
        folded = _fold(term)
        left = r"(?<!\w)" if folded[:1].isascii() else ""
        right = r"(?!\w)" if folded[-1:].isascii() else ""
        return sum(1 for _ in re.finditer(f"{left}{re.escape(folded)}{right}", self._folded))

    def context(self, target: _Target, start: str) -> tuple[str, str, bool]:
        """Return a prefix or a suffix that distinguishes `start` from the same words elsewhere, and True if the live
        page cannot have other text between it and `start`."""
        text = " ".join(self._blocks[target.block].text.split())
        leading = " ".join(self._blocks[target.block].text[: target.start].split())
        place = text.find(start, max(0, len(leading) - 1))
        if place < 0:
            return "", "", True
        prefix = _last_words(text[:place])
        touches = bool(prefix) or self._is_joined(target.block - 1, target.block)
        prefix = prefix or self._words_of_block(target.block - 1, _last_words)
        if not prefix or self._count_pairs(prefix, start) == 1:
            return prefix, "", touches
        following = _first_words(text[place + len(start) :])
        suffix = following or self._words_of_block(target.block + 1, _first_words)
        if suffix and _trim(target.text) == start and self._count_pairs(start, suffix) == 1:
            return "", suffix, bool(following) or self._is_joined(target.block, target.block + 1)
        return prefix, "", touches

    def _is_joined(self, first: int, second: int) -> bool:
        exists = first >= 0 and second < len(self._blocks)
        return exists and self._blocks[first].group == self._blocks[second].group

    def _words_of_block(self, block: int, edge: Callable[[str], str]) -> str:
        if not 0 <= block < len(self._blocks):
            return ""
        return edge(self._blocks[block].text)

    def _count_pairs(self, before: str, start: str) -> int:
        pattern = rf"{re.escape(_fold(before))}[\W_]*{re.escape(_fold(start))}"
        return len(re.findall(pattern, self._folded))


def _units(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _UNIT.finditer(text) if re.search(r"\w", match.group())]


def _is_short(text: str, units: Sequence[tuple[int, int]]) -> bool:
    return len(text) <= _WIDE_SHORT if _WIDE.search(text) else len(units) <= _SHORT


def _find_beginning(page: _Page, text: str, units: Sequence[tuple[int, int]]) -> str:
    """Return the shortest run of first words that is unique in the page."""
    wide = bool(_WIDE.search(text))
    for count in range(1 if wide else min(_ENDS, len(units)), len(units) + 1):
        term = _trim(text[units[0][0] : units[count - 1][1]])
        if (not wide or len(term) >= _WIDE_LEAST) and page.count(term) == 1:
            return term
    first_units = units[:_ENDS]
    return _trim(text[first_units[0][0] : first_units[-1][1]]) if first_units else ""


def _find_ending(targets: Sequence[_Target], start: str) -> str:
    """Return the shortest run of last words that is unique after `start`; of an earlier block if the last has none."""
    texts = [" ".join(target.text.split()) for target in targets]
    texts[0] = texts[0][texts[0].find(start) + len(start) :]
    for last in range(len(texts) - 1, -1, -1):
        rest = _fold("\n".join(texts[: last + 1]))
        units = _units(texts[last])
        wide = bool(_WIDE.search(texts[last]))
        for count in range(1 if wide else min(_ENDS, len(units)), len(units) + 1):
            term = _trim(texts[last][units[-count][0] : units[-1][1]]) if count else ""
            if term and (not wide or len(term) >= _WIDE_LEAST or last) and rest.count(_fold(term)) == 1:
                return term
    return ""


def _last_words(text: str) -> str:
    """Return the last words with the punctuation after them, since context must be adjacent to the text."""
    units = _units(text)
    units = units[-1:] if units and _WIDE.search(text[slice(*units[-1])]) else units[-_CONTEXT:]
    return " ".join(text[units[0][0] :].split()) if units else ""


def _first_words(text: str) -> str:
    units = _units(text)
    units = units[:1] if units and _WIDE.search(text[slice(*units[0])]) else units[:_CONTEXT]
    return " ".join(text[: units[-1][1]].split()) if units else ""


def _trim(term: str) -> str:
    """Return one line without punctuation at its ends, since stored and live typography differ."""
    term = " ".join(term.split())
    return _EDGE.sub("", term) or term


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _encode(term: str) -> str:
    """Percent-encode the term, including the characters that the directive uses."""
    return quote(term, safe="").replace("-", "%2D")
