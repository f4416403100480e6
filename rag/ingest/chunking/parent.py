"""Small chunks for searching, large ones for reading: each small one knows the section that it is a part of."""

from __future__ import annotations

from dataclasses import replace

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, make_chunks, split_units
from rag.ingest.chunking.markdown import MarkdownChunker
from rag.ingest.chunking.recursive import RecursiveChunker
from rag.types import Chunk


class ParentChunker:
    """Small chunks whose `parent` is the section around them, or the part of it that is not too large.

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
