"""Links that open a live page at a sentence: `#:~:text=[prefix-,]start[,end][,-suffix]`.

As in WICG's URL Fragment Text Directives (https://wicg.github.io/scroll-to-text-fragment/), each term is within one
block of the page and begins and ends at word boundaries; `start,end` may span blocks; context is added if `start` alone
is ambiguous. Browsers search the rendered text, so the Markdown of the stored text is removed first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
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
    """A block of the rendered page: its text, and the offset of each character in the source."""

    text: str
    places: tuple[int, ...]

    def part(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of the block within `start` to `end` of the source, or None."""
        inside = [i for i, place in enumerate(self.places) if start <= place < end and not self.text[i].isspace()]
        return (inside[0], inside[-1] + 1) if inside else None


@dataclass(frozen=True, slots=True)
class _Target:
    """A part of a block for the browser to find, and its start there."""

    block: int
    text: str
    start: int


def text_fragment(url: str, page_text: str, start: int, end: int) -> str:
    """Return the address that opens `url` at `page_text[start:end]`, or `url` itself if none of that is rendered.

    An existing fragment of the URL is kept before the directive.
    """
    base = url.split(":~:", 1)[0]
    blocks = list(_read_blocks(page_text))
    targets = [
        _Target(i, block.text[part[0] : part[1]], part[0])
        for i, block in enumerate(blocks)
        if (part := block.part(start, end)) and re.search(r"\w", block.text[part[0] : part[1]])
    ]
    if not targets:
        return url
    directive = _build_directive(blocks, targets)
    return f"{base if '#' in base else base + '#'}:~:text={directive}" if directive else url


def _read_blocks(text: str) -> Iterator[_Block]:
    """Yield lines without their Markdown, table rows cell by cell, and code split at wide gaps."""
    at, fence = 0, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1] == fence and not line.strip().strip(fence):
                fence = ""
            else:
                for piece in _PIECE.finditer(line):
                    yield _Block(piece.group(), tuple(range(at + piece.start(), at + piece.end())))
        elif mark:
            fence = mark[1]
        elif not _RULE.fullmatch(line):
            yield from _render(line, at)
        at += len(line) + 1


def _render(line: str, at: int) -> Iterator[_Block]:
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
            yield _Block(piece.group(), tuple(at + i for i in places))


def _build_directive(blocks: Sequence[_Block], targets: Sequence[_Target]) -> str:
    page = "\n".join(_fold(block.text) for block in blocks)
    # Start from the first one, unless it is ambiguous, such as `Yes` in a table.
    first = next((target for target in targets[:3] if _count(_trim(target.text), page) == 1), targets[0])
    targets = targets[targets.index(first) :]
    whole, start, stop = _trim(first.text), "", ""
    if len(targets) > 1 or not _is_short(first.text):
        start = _find_beginning(first.text, page)
        stop = _find_ending(targets, start)
    if len(targets) == 1 and (not start or len(start) + len(stop) >= len(whole)):
        start, stop = whole, ""
    core = ",".join(_encode(term) for term in (start, stop) if term)
    if _count(start, page) == 1:
        return core
    text = blocks[first.block].text
    if prefix := _last_words(text[: text.find(start, first.start)]):
        return f"{_encode(prefix)}-,{core}"
    above = _last_words(blocks[first.block - 1].text) if first.block else ""
    # The live page may have more text between two blocks; then the text alone is better than nothing.
    return f"{_encode(above)}-,{core}&text={core}" if above else core


def _count(term: str, page: str) -> int:
    """Count the occurrences of `term` as whole words in a page, folded as browsers compare it."""
    folded = _fold(term)
    left = r"(?<!\w)" if folded[:1].isascii() else ""
    right = r"(?!\w)" if folded[-1:].isascii() else ""
    return sum(1 for _ in re.finditer(f"{left}{re.escape(folded)}{right}", page))


def _units(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _UNIT.finditer(text) if re.search(r"\w", match.group())]


def _is_short(text: str) -> bool:
    return len(text) <= _WIDE_SHORT if _WIDE.search(text) else len(_units(text)) <= _SHORT


def _iter_runs(text: str, *, backwards: bool = False) -> Iterator[str]:
    """Yield longer and longer runs of the first words of a text, or of the last."""
    units, is_wide = _units(text), bool(_WIDE.search(text))
    for count in range(1 if is_wide else min(_ENDS, len(units)), len(units) + 1) if units else ():
        (start, _), (_, end) = (units[-count], units[-1]) if backwards else (units[0], units[count - 1])
        if not is_wide or end - start >= min(_WIDE_LEAST, len(_trim(text))):
            yield _trim(text[start:end])


def _find_beginning(text: str, page: str) -> str:
    """Return the shortest run of first words that is unique in the page, or the shortest of all."""
    runs = list(_iter_runs(text))
    return next((run for run in runs if _count(run, page) == 1), runs[0])


def _find_ending(targets: Sequence[_Target], start: str) -> str:
    """Return the shortest run of last words that is unique after `start`; of an earlier block if the last has none."""
    texts = [target.text for target in targets]
    texts[0] = texts[0][texts[0].find(start) + len(start) :]
    for last in range(len(texts) - 1, -1, -1):
        rest = _fold("\n".join(texts[: last + 1]))
        if run := next((run for run in _iter_runs(texts[last], backwards=True) if rest.count(_fold(run)) == 1), ""):
            return run
    return ""


def _last_words(text: str) -> str:
    """Return the last words with the punctuation after them, since context must be adjacent to the text."""
    units = _units(text)
    count = 1 if units and _WIDE.search(text[slice(*units[-1])]) else _CONTEXT
    return text[units[-count:][0][0] :].strip() if units else ""


def _trim(term: str) -> str:
    """Return a term without punctuation at its ends, since stored and live typography differ."""
    return _EDGE.sub("", term) or term


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _encode(term: str) -> str:
    """Percent-encode the term, including the characters that the directive uses."""
    return quote(term, safe="").replace("-", "%2D")
