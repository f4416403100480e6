"""The text of a document from the lines of its pages: a section for each page, under the page's number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag.reading.extraction.clean import clean_line, clean_text
from rag.reading.layout.paragraphs import Layout, body_size, drop_running_heads, usual_width, vocabulary
from rag.reading.layout.words import Line
from rag.text import detect_language


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text in Markdown, its language, and its largest lines, which may be its title."""

    text: str
    language: str
    largest: str


def build_document(
    pages: Sequence[Sequence[Line]], titles: frozenset[str] = frozenset(), sure: Mapping[int, float] | None = None
) -> Document:
    """Build the document of pages; `titles` are those of its table of contents, normalized by `plain`.

    `sure` gives the confidence (0 to 1) of the letters of pages, counted from 1, that were read by text recognition.
    """
    body = drop_running_heads(pages)
    layout = Layout(body_size(body), usual_width(body), vocabulary(body), titles)
    language = detect_language(" ".join(line.text for page in body[:50] for line in page))
    text = clean_text("\n\n".join(_iter_sections(layout, body, language, sure or {})))
    return Document(text, language, _find_largest(pages[0], layout.size))


def one_line(text: str) -> str:
    return clean_line(text.replace("\n", " "), 120)


def _iter_sections(
    layout: Layout, pages: Sequence[Sequence[Line]], language: str, sure: Mapping[int, float]
) -> Iterator[str]:
    """Yield each page that has text as a section; one that starts within a part names that part."""
    part = ""
    for number, lines in enumerate(pages, 1):
        blocks = layout.blocks(lines)
        if not blocks:
            continue
        name = f"第 {number} 页" if language == "zh" else f"Page {number}"
        if number in sure:
            share = f"{sure[number]:.0%}"
            name += f" · 由 OCR 识别（把握 {share}）" if language == "zh" else f" · read by OCR ({share} sure)"
        is_continued = part and blocks[0][0] != "heading"
        yield f"## {name} · {part}" if is_continued else f"## {name}"
        yield from _render(blocks)
        part = next((one_line(text) for kind, text in reversed(blocks) if kind == "heading"), part)


def _render(blocks: Sequence[tuple[str, str]]) -> Iterator[str]:
    items: list[str] = []
    for kind, text in [*blocks, ("", "")]:
        if kind == "list":
            items.append("- " + text.replace("\n", "\n  "))
            continue
        if items:
            yield "\n".join(items)
            items = []
        if kind == "heading":
            yield f"### {one_line(text)}"
        elif kind == "code":
            yield f"```\n{text}\n```"
        elif kind == "table":
            yield text
        elif text:
            yield _escape_lines(text)


def _escape_lines(text: str) -> str:
    """Escape lines that start with a Markdown mark by chance."""
    return "\n".join("\\" + line if line.startswith(("#", "|", "```")) else line for line in text.split("\n"))


def _find_largest(page: Sequence[Line], size: float) -> str:
    """Return the largest line of the first page, with the lines of the same size after it, as a title."""
    candidates = [line for line in page if any(character.isalpha() for character in line.text)]
    top = max((line.size for line in candidates), default=0.0)
    if top <= size * 1.05:
        return ""
    first = next(i for i, line in enumerate(page) if line.size == top and line in candidates)
    parts = []
    for line in page[first : first + 4]:
        if line.size != top:
            break
        parts.append(line.text)
    return one_line(" ".join(parts))
