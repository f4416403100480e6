"""Chunkers, all listed in `CHUNKERS`; `tests/contracts/test_chunking.py` checks them against the contract.

They group units (sentences, table rows, code blocks, headings) and never cut one, so chunks have the properties of
units: verbatim, in order, within the maximum size. Splitter packages are imported lazily, as they are heavy.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rag.models.transformer import normalise_rows
from rag.text import cluster_end, find_entries, lazy_regex, split_sentences, weigh
from rag.types import Chunk

if TYPE_CHECKING:
    from langchain_experimental.text_splitter import SemanticChunker

_HEADING = lazy_regex(r"(#{1,6})[ \t]+")
_FENCE = lazy_regex(r"[ \t]*(```|~~~)")
_SOFT_ENDS = (", ", "; ", ": ", "，", "；", "：", "、", ") ", "）", "\n", " ")

_MAX_JOINED_LENGTH = 40
"""Maximum total length of sentences or rows of one block that are joined into one unit."""

_MAX_TITLE = 200
"""Maximum characters of a heading in a heading path, which is stored and indexed with each chunk below it."""

Kind = Literal["text", "heading", "row", "code"]


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A span `text[start:end]` that no chunker cuts.

    `extra` is its weight (`rag.text.weigh`) minus its length. `starts_block` is true for the first unit of a block;
    `header` is the span of the table header that a row belongs to. `is_question` is true for a question.
    """

    start: int
    end: int
    extra: float
    kind: Kind
    section: tuple[str, ...]
    starts_block: bool
    header: tuple[int, int] | None = None
    is_question: bool = False

    @property
    def size(self) -> float:
        return self.end - self.start + self.extra


def span_size(units: Sequence[TextUnit]) -> float:
    """Return the weight of the slice of neighbouring `units`, including white space between them."""
    return units[-1].end - units[0].start + sum(unit.extra for unit in units)


def split_units(text: str, maximum: float) -> list[TextUnit]:
    """Cut `text` into units that weigh up to `maximum`, in order, covering all but white space.

    A cut between neighbours that are together no longer than _MAX_JOINED_LENGTH is not worth considering.
    """
    units: list[TextUnit] = []
    path: list[tuple[int, str]] = []
    for kind, start, end in _blocks(text):
        if kind == "heading" and (heading := _parse_heading(text[start:end].strip())):
            path = [*(step for step in path if step[0] < heading[0]), heading]
        section = tuple(title for _, title in path if title)
        header = None
        if kind == "row" and len(lines := _lines(text, start, end)) > 2:
            has_rule = not text[lines[1][0] : lines[1][1]].strip("|-: \t")
            header = lines[0][0], lines[1 if has_rule else 0][1]
        for i, (a, b) in enumerate(_pieces(text, kind, start, end, maximum)):
            own = None if header is None or a < header[1] else header
            is_question = text[a:b].rstrip().endswith(("?", "？"))
            unit = TextUnit(a, b, weigh(text[a:b]) - (b - a), kind, section, i == 0, own, is_question)
            last = units[-1] if units else None
            is_same_kind = last and last.kind == kind and last.header == own and not unit.starts_block
            if last and is_same_kind and b - last.start <= _MAX_JOINED_LENGTH:
                units.pop()
                unit = replace(last, end=b, extra=last.extra + unit.extra, is_question=is_question)
            units.append(unit)
    return _join_entries(text, units, maximum)


def _join_entries(text: str, units: list[TextUnit], maximum: float) -> list[TextUnit]:
    """Make each entry of a listing one unit, unless it is too long."""
    entries = deque(find_entries(text))
    joined: list[TextUnit] = []
    for unit in units:
        while entries and entries[0].end <= unit.start:
            entries.popleft()
        last = joined[-1] if joined else None
        if last and entries and entries[0].start <= last.start and unit.end <= entries[0].end:
            whole = replace(last, end=unit.end, extra=last.extra + unit.extra, is_question=unit.is_question)
            if whole.size <= maximum:
                joined[-1] = whole
                continue
        joined.append(unit)
    return joined


def _parse_heading(line: str) -> tuple[int, str] | None:
    """Return the level and title of a heading, without Markdown marks; None for marks alone."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = line[match.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")
    title = title.strip("*_` ")
    return len(match[1]), title[: cluster_end(title, 0, _MAX_TITLE)].rstrip()


def _blocks(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Yield runs of lines of one kind: paragraphs, headings, tables, fenced code."""
    kind: Kind | None = None
    begin, at, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        here = _line_kind(line, fence)
        opens = _FENCE.match(line)
        if opens and (not fence or opens[1] == fence):
            fence = "" if fence else opens[1]
        starts_new = here != kind or here == "heading" or here is None or (kind == "code" and opens and bool(fence))
        if starts_new:
            if kind is not None:
                yield kind, begin, at
            begin, kind = at, here
        at += len(line)
    if kind is not None:
        yield kind, begin, at


def _line_kind(line: str, fence: str) -> Kind | None:
    if fence or _FENCE.match(line):
        return "code"
    if not line.strip():
        return None
    if _HEADING.match(line):
        return "heading"
    return "row" if line.lstrip().startswith("|") else "text"


def _pieces(text: str, kind: Kind, start: int, end: int, maximum: float) -> Iterator[tuple[int, int]]:
    if kind == "text":
        spans = split_sentences(text, start, end)
    elif kind == "heading" or (kind == "code" and weigh(text[start:end]) <= maximum):
        spans = [(start, start + len(text[start:end].rstrip()))]
    else:
        spans = _lines(text, start, end)
    for a, b in spans:
        yield from _cut_to_fit(text, a, b, maximum)


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans, at = [], start
    for line in text[start:end].splitlines(keepends=True):
        if body := line.rstrip():
            spans.append((at, at + len(body)))
        at += len(line)
    return spans


def _cut_to_fit(text: str, start: int, end: int, maximum: float) -> Iterator[tuple[int, int]]:
    """Cut a span that is too long at the last clause mark or space that fits, else between any two characters."""
    while end - start > maximum or weigh(text[start:end]) > maximum:
        length = _fitting_length(text, start, end, maximum)
        cut = max(text.rfind(mark, start + length // 2, start + length) + len(mark.rstrip(" ")) for mark in _SOFT_ENDS)
        if cut <= start + length // 2:
            cut = start + length
        cut = cluster_end(text, start, cut)
        yield start, start + len(text[start:cut].rstrip())
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _fitting_length(text: str, start: int, end: int, maximum: float) -> int:
    """Return how many code points from `start` weigh up to `maximum`; at least one."""
    low, high = 1, min(end - start, int(maximum))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weigh(text[start : start + middle]) <= maximum else (low, middle - 1)
    return low


SentenceVectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""Cheap vectors of n texts, shape (n, d), rows of unit length or zero."""

MAXIMUM = 900.0
"""Default maximum weight of a chunk (see `weigh`), the same for all chunkers."""
_MAX_CONTEXT = 600


class Chunker(Protocol):
    """A splitter of page text into chunks: verbatim slices, in order, none over `maximum`, no unit cut.

    `maximum` is a weight (see `weigh`). Chunks cover the text except white space; empty text has none.
    """

    name: str
    maximum: float

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]: ...


def _context(text: str, header: tuple[int, int] | None) -> str:
    """Return the table header, or its cells that fit _MAX_CONTEXT, to be indexed with each part of the table."""
    if header is None:
        return ""
    start, end = header
    if end - start <= _MAX_CONTEXT:
        return text[start:end]
    head = text[start : cluster_end(text, start, start + _MAX_CONTEXT)]
    return head[: head.rfind("|") + 1] or head


def make_chunks(text: str, groups: Sequence[Sequence[TextUnit]]) -> list[Chunk]:
    """Return a chunk for each group of neighbouring units; its section is that of most of its text."""
    chunks = []
    for i, units in enumerate(groups):
        start, end = units[0].start, units[-1].end
        weight: Counter[tuple[str, ...]] = Counter()
        for unit in units:
            weight[unit.section] += max(1, round(unit.size))
        section, _ = weight.most_common(1)[0]
        chunks.append(Chunk(i, text[start:end], start, end, section, _context(text, units[0].header)))
    return chunks


def embedding_text(title: str, chunk: Chunk) -> str:
    """Return the text that is embedded and indexed for a chunk: page title, heading path, table header, then its text.

    Users see only the slice. Headings at the beginning of the slice are not repeated.
    """
    head = [title.strip()]
    head += [step for step in chunk.section if step and step != title.strip() and step not in chunk.text[:300]]
    return "\n".join(part for part in (" › ".join(filter(None, head)), chunk.context, chunk.text) if part)


@dataclass
class RecursiveChunker:
    """Chunks as large as the maximum allows, cut between paragraphs where possible."""

    name = "recursive"
    maximum: float = MAXIMUM

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.fill(split_units(text, self.maximum)))

    def fill(self, units: Sequence[TextUnit]) -> list[list[TextUnit]]:
        """Group neighbouring units, each group as large as the maximum allows."""
        starts = (at for at, (last, unit) in _neighbours(units) if unit.starts_block and last.kind != "heading")
        pieces: list[Sequence[TextUnit]] = []
        for paragraph in _cut(units, starts):
            fits = span_size(paragraph) <= self.maximum
            pieces.extend([paragraph] if fits else bind_headings(paragraph, self.maximum))
        return pack(pieces, self.maximum)


_Item = TypeVar("_Item")


def _neighbours(items: Sequence[_Item]) -> Iterator[tuple[int, tuple[_Item, _Item]]]:
    """Yield each item but the first as (its index, (the item before it, the item))."""
    return enumerate(pairwise(items), 1)


def _cut(items: Sequence[_Item], starts: Iterable[int]) -> list[Sequence[_Item]]:
    """Return the runs of items that begin at the ascending indices `starts`, and at 0."""
    return [items[a:b] for a, b in pairwise([0, *starts, len(items)]) if a < b]


def pack(pieces: Iterable[Sequence[TextUnit]], maximum: float) -> list[list[TextUnit]]:
    """Group neighbouring pieces up to `maximum`, cutting none of them; a larger piece forms a group alone."""
    groups: list[list[TextUnit]] = []
    size = 0.0
    for piece in pieces:
        length = span_size(piece)
        gap = piece[0].start - groups[-1][-1].end if groups else 0
        if groups and size + gap + length <= maximum:
            groups[-1].extend(piece)
            size += gap + length
        else:
            groups.append(list(piece))
            size = length
    return groups


def bind_headings(units: Sequence[TextUnit], maximum: float) -> Iterator[list[TextUnit]]:
    """Yield the units one by one, but headings, table headers and questions with the next unit, as far as it fits."""
    group: list[TextUnit] = []
    size = 0.0
    for i, unit in enumerate(units):
        length = size + (unit.start - group[-1].end if group else 0) + unit.size
        if group and length > maximum:
            yield group
            group, length = [], unit.size
        group.append(unit)
        size = length
        if not _is_introduction(unit, units[i + 1] if i + 1 < len(units) else None):
            yield group
            group, size = [], 0.0
    if group:
        yield group


def _is_introduction(unit: TextUnit, following: TextUnit | None) -> bool:
    """Return whether `unit` only introduces the next one: a heading, a table header, a question above its answer."""
    is_header = unit.kind == "row" and unit.header is None and following is not None and following.header is not None
    is_question = unit.is_question and following is not None and not following.starts_block
    return unit.kind == "heading" or is_header or is_question


@dataclass
class FixedChunker:
    """Chunks filled with sentences up to the maximum, across paragraphs and sections."""

    name = "fixed"
    maximum: float = MAXIMUM

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, pack(bind_headings(split_units(text, self.maximum), self.maximum), self.maximum))


_PARAGRAPH_GAIN = 0.6
_HEADING_GAIN = 4.0
_MEANING_GAIN = 0.15
_MAX_UNITS = 50_000
"""Pages with more units than this, such as a long book, are split by `RecursiveChunker`, which takes only seconds."""


class TopicChunker:
    """Chunks that end where the topic changes, by SemanticChunker's distances between neighbouring sentences.

    SemanticChunker itself cuts wherever a distance exceeds a percentile, which gives chunks of any size, and embeds
    every sentence three times. Here the distances come from static word vectors, which cost less than a hundredth of an
    encoding, and dynamic programming chooses the cuts: where distances are large, with every chunk within the maximum
    and near the target.
    """

    name = "semantic"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum
        self.target = round(maximum * 7 / 9)  # the preferred size of a chunk

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        if len(units) > _MAX_UNITS:
            return make_chunks(text, RecursiveChunker(self.maximum).fill(units))
        cuts = _best_cuts(units, _score_cuts(text, units, vectors), self.maximum, self.target)
        return make_chunks(text, _cut(units, cuts))


def _score_cuts(text: str, units: Sequence[TextUnit], vectors: SentenceVectors) -> NDArray[np.float64]:
    """Return the gain of a cut before each unit, shape (n,), in units of the size penalty."""
    gains = np.zeros(len(units))
    if len(units) > 2:
        distances = semantic_distances(vectors([text[unit.start : unit.end] for unit in units]))
        gains[1:] = _MEANING_GAIN * (distances - distances.mean()) / (distances.std() + 1e-9)
    for i, (last, unit) in _neighbours(units):
        if last.kind == "heading":
            gains[i] = -10 * _HEADING_GAIN
        elif unit.kind == "heading":
            gains[i] += _HEADING_GAIN
        elif unit.starts_block:
            gains[i] += _PARAGRAPH_GAIN
    return gains


def semantic_distances(sums: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return cosine distances between neighbours, shape (n - 1,), each sentence combined with those around it.

    `sums` has shape (n, m). SemanticChunker computes the same with a buffer of one sentence, but embeds each sentence
    three times, with its neighbours; here the vectors of the three are added.
    """
    vectors = sums.copy()
    vectors[1:] += sums[:-1]
    vectors[:-1] += sums[1:]
    vectors = normalise_rows(vectors)
    distances: NDArray[np.float64] = 1.0 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:], dtype=np.float64)
    return distances


def _best_cuts(units: Sequence[TextUnit], gains: NDArray[np.float64], maximum: float, target: float) -> list[int]:
    """Return the indices of the units that begin a new chunk, chosen to maximise gains minus size penalties.

    Dynamic programming over cut positions; O(n · m) for n units, at most m of which fit a chunk. A chunk of size s
    costs ((s - target) / target) ** 2. A single unit always fits.
    """
    n = len(units)
    best, back = [0.0] + [float("inf")] * n, [0] * (n + 1)
    for end in range(1, n + 1):
        extra = 0.0
        for begin in range(end - 1, -1, -1):
            extra += units[begin].extra
            size = units[end - 1].end - units[begin].start + extra
            if size > maximum and begin < end - 1:
                break
            cost = best[begin] + ((size - target) / target) ** 2 - (gains[begin] if begin else 0.0)
            if cost < best[end]:
                best[end], back[end] = cost, begin
    cuts = []
    while n := back[n]:
        cuts.append(n)
    return cuts[::-1]


@dataclass
class MarkdownChunker:
    """Chunks that never mix text of two sections, except neighbours smaller than `tiny` under one parent heading."""

    name = "markdown"
    maximum: float = MAXIMUM
    tiny: float = 250

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.divide(split_units(text, self.maximum)))

    def divide(self, units: Sequence[TextUnit]) -> list[list[TextUnit]]:
        """Return sections as groups of neighbouring units; sections that are too large become several groups."""
        fill = RecursiveChunker(self.maximum).fill
        starts = (at for at, pair in _neighbours(units) if _starts_section(*pair))
        sections = _join_tiny(_cut(units, starts), self.maximum, self.tiny)
        return [group for section in sections for group in fill(section)]


def _starts_section(last: TextUnit, unit: TextUnit) -> bool:
    """Return whether `unit` is a heading that begins a section; it joins a heading without text above or beside it."""
    if unit.kind != "heading" or last.kind != "heading":
        return unit.kind == "heading"
    is_below = unit.section[: len(last.section)] == last.section
    return not is_below and unit.section[:-1] != last.section[:-1]


def _join_tiny(sections: list[Sequence[TextUnit]], maximum: float, tiny: float) -> list[list[TextUnit]]:
    groups: list[list[TextUnit]] = []
    open_parent: tuple[str, ...] | None = None  # the parent heading of the tiny sections in the last group
    for section in sections:
        is_tiny = section[0].kind == "heading" and span_size(section) < tiny
        above, above_text = section[0].section[:-1], section[-1].section[:-1]
        fits = is_tiny and above == above_text == open_parent and span_size([*groups[-1], *section]) <= maximum
        if fits:
            groups[-1].extend(section)
        else:
            groups.append(list(section))
            open_parent = above_text if is_tiny else None
    return groups


class ParentChunker:
    """Small chunks whose `parent` is the section around them, or a part of it if the section is too large.

    Parents cover the page without overlap. `rag.retrieval.context` returns them in place of the chunks found.
    """

    name = "parent"

    def __init__(self, maximum: float = MAXIMUM, size: float = 0.0, parent: float = 0.0) -> None:
        """Chunks are filled up to `size`; one sentence or code block may be larger, up to `maximum`.

        The defaults are four ninths of the maximum for `size`, and five thirds for `parent`.
        """
        self.maximum = maximum
        self.size = size or round(maximum * 4 / 9)
        self.parent = parent or round(maximum * 5 / 3)

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        fill = RecursiveChunker(self.size).fill
        groups, spans = [], []
        for section in MarkdownChunker(self.parent, tiny=self.size).divide(units):
            children = fill(section)
            groups.extend(children)
            span = (section[0].start, section[-1].end) if len(children) > 1 else None
            spans.extend([span] * len(children))
        return [replace(chunk, parent=span) for chunk, span in zip(make_chunks(text, groups), spans, strict=True)]


@dataclass
class BreakpointChunker:
    """Chunks cut by SemanticChunker, wherever a distance exceeds a percentile of the page's, over static vectors.

    Chunks over the maximum are split further. Unlike with the default, `semantic`, sizes vary at random between one
    sentence and the maximum, which makes retrieval worse (docs/decisions/0003-chunking.md).
    """

    name = "breakpoints"
    maximum: float = MAXIMUM

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        # A heading is not a sentence: alone, it is as distant from its own text as from any other.
        pieces = list(bind_headings(units, self.maximum))
        fill = RecursiveChunker(self.maximum).fill
        if len(units) > _MAX_UNITS or len(pieces) < 3:
            return make_chunks(text, fill(units))
        splitter = _semantic_chunker(vectors)
        distances, _ = splitter._calculate_sentence_distances([text[p[0].start : p[-1].end] for p in pieces])
        threshold, _ = splitter._calculate_breakpoint_threshold(distances)
        runs = _cut(pieces, [at for at, distance in enumerate(distances, 1) if distance > threshold])
        return make_chunks(text, [group for run in runs for group in fill([*chain.from_iterable(run)])])


def _semantic_chunker(vectors: SentenceVectors) -> SemanticChunker:
    """Return langchain-experimental's SemanticChunker over static vectors, with its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_experimental.text_splitter import SemanticChunker
    embeddings = SimpleNamespace(embed_documents=vectors)  # the only method of Embeddings that it calls
    return SemanticChunker(cast(Any, embeddings), buffer_size=1)


CHUNKERS: dict[str, Callable[[float], Chunker]] = {
    "semantic": TopicChunker,
    "recursive": RecursiveChunker,
    "fixed": FixedChunker,
    "markdown": MarkdownChunker,
    "parent": ParentChunker,
    "breakpoints": BreakpointChunker,
}


def get_chunker(name: str = "semantic", maximum: float = MAXIMUM) -> Chunker:
    """Return a chunker for chunks of up to `maximum`. Raises KeyError for a name that is not in CHUNKERS."""
    return CHUNKERS[name](maximum)
