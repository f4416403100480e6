"""Page text as HTML for what Markdown cannot show: the spans of chunks.

Every character of the text is escaped here; nothing else of a page reaches the HTML.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.locales import Language, label
from rag.patterns import lazy_regex
from rag.types import Passage

_UNWANTED = lazy_regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_HEADING = lazy_regex(r"(?m)^#{1,6}[ \t]+(\S.*)$")
_WIDTHS = tuple(
    (lazy_regex(signs), width)
    for signs, width in (
        (r"[il.,:;'|!jI \[\]()/ft]", 0.4),
        (r"[MWmw@%&…—]", 1.0),
        (r"[A-Z]", 0.74),
        (r"[\u2e80-\U0003ffff]", 1.0),
        (r"(?s:.)", 0.64),
    )
)

_STYLE = (
    "<style>svg{color:#57606a}.mark{color:#1f6f5c}.better{color:#1a7f37}.worse{color:#cf222e}"
    "@media(prefers-color-scheme:dark){svg{color:#c4c7c5}.mark{color:#5fc3a6}.better{color:#7fd3bb}"
    ".worse{color:#ee9c92}.boxes{filter:invert(.9) hue-rotate(180deg)}}</style>"
)


def escape_html(text: str) -> str:
    """Return `text` as HTML that shows it literally, without control and direction marks."""
    return html.escape(_UNWANTED.sub("", text))


def svg(width: int, height: int, title: str, content: str) -> str:
    """Return a complete SVG, light or dark like the screen: `currentColor` is its ink, and `boxes` are inverted."""
    name = escape_html(title)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{name}"'
        f' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">{_STYLE}{content}</svg>'
    )


def break_lines(text: str, room: float, size: float, most: int) -> list[str]:
    """Break `text` into up to `most` lines of `room` pixels in a font of `size` pixels; … ends a text that is cut off.

    Widths are those of a wide font, since the browser's font is not known here.
    """
    lines, line = list[str](), ""
    for word in _words(" ".join(text.split())):
        if line and _ems(line + word.rstrip()) * size > room:
            lines, line = [*lines, line.rstrip()], ""
        line += word
    lines.append(line.rstrip())
    if len(lines) <= most:
        return lines
    last = f"{lines[most - 1]} {lines[most]}"
    while last and _ems(f"{last}…") * size > room:
        last = last[:-1]
    return [*lines[: most - 1], f"{last.rstrip()}…"]


def _words(text: str) -> list[str]:
    """Return words with the space after them, and wide characters one by one; long words in pieces."""
    return re.findall(r"[\u2e80-\U0003ffff]|[^\s\u2e80-\U0003ffff]{1,12} ?| ", text)


def _ems(text: str) -> float:
    """Return the width of a text in units of its font size."""
    return sum(next(width for signs, width in _WIDTHS if signs.match(sign)) for sign in text)


def scrollable(svg: str, description: str) -> str:
    """Return a picture in its own size, which a narrow screen scrolls, also by keyboard, with a description."""
    source, name = b64encode(svg.encode()).decode(), escape_html(description)
    image = f'<img alt="{name}" src="data:image/svg+xml;base64,{source}">'
    return f'<div class="tree-picture" tabindex="0" role="group" aria-label="{name}">{image}</div>'


def text_html(text: str) -> str:
    """Return `text` as HTML with headings in bold."""
    return _HEADING.sub(r"<b>\1</b>", escape_html(text))


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a page that the same chunks cover; `chunks` are their positions in the list, in order."""

    start: int
    end: int
    chunks: tuple[int, ...]


def segments_of(length: int, spans: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    """Yield the stretches of a text between the borders of its chunks, in order and without gaps."""
    borders = sorted({0, length, *(place for span in spans for place in span if 0 <= place <= length)})
    for start, end in pairwise(borders):
        covering = [n for n, (first, last) in enumerate(spans) if first <= start and end <= last]
        yield Segment(start, end, tuple(covering))


def chunks_html(text: str, chunks: Sequence[Passage], language: Language, *, first: int = 1, offset: int = 0) -> str:
    """Return the text with its chunks shaded in turn, each with its number and span at its start.

    Overlaps of two chunks have a separate shade. `text` begins at `offset` of its page, and `first` is the number of
    the first of `chunks`.
    """
    spans = [(chunk.start - offset, chunk.end - offset) for chunk in chunks]
    parts: list[str] = []
    for segment in segments_of(len(text), spans):
        starting = [place for place, (start, _) in enumerate(spans) if start == segment.start]
        parts += [_mark(chunks[place], first + place, language) for place in starting]
        content = text_html(text[segment.start : segment.end])
        parts.append(f'<span class="{_shade(segment.chunks)}">{content}</span>' if segment.chunks else content)
    return f'<div class="page-html">{"".join(parts)}</div>'


def _shade(chunks: tuple[int, ...]) -> str:
    return "chunk-both" if len(chunks) > 1 else f"chunk-{chunks[0] % 2}"


def _mark(chunk: Passage, number: int, language: Language) -> str:
    span = label("page_chunk_span", language, start=f"{chunk.start:,}", end=f"{chunk.end:,}")
    path = " › ".join(chunk.section)
    text = f"<b>{number}</b> {text_html(span)}" + (f" · {text_html(path)}" if path else "")
    return f'<span class="chunk-mark">{text}</span>'
