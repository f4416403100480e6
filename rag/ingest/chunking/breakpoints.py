"""SemanticChunker's own breakpoints: a cut wherever the distance lies above a percentile of the page's distances.

The default, `semantic`, departs from it: how large these chunks become is left to chance between one
sentence and the maximum, and retrieval is the worse for it (docs/decisions/0003-chunking.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag.ingest.chunking.assemble import make_chunks
from rag.ingest.chunking.base import MAXIMUM, SentenceVectors
from rag.ingest.chunking.recursive import RecursiveChunker, bind_headings
from rag.ingest.chunking.semantic import MAX_UNITS, semantic_distances, semantic_splitter
from rag.ingest.chunking.units import Unit, split_units
from rag.types import Chunk


class BreakpointChunker:
    """SemanticChunker's cuts over cheap static vectors; what is still above the maximum is filled up part by part."""

    name = "breakpoints"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        # A heading is no sentence: alone it is as far from its text as from any other.
        pieces = list(bind_headings(units, self.maximum))
        fill = RecursiveChunker(self.maximum).fill
        if len(units) > MAX_UNITS or len(pieces) < 3:
            return make_chunks(text, fill(units))
        distances = semantic_distances([text[piece[0].start : piece[-1].end] for piece in pieces], vectors)
        threshold, _ = semantic_splitter(vectors)._calculate_breakpoint_threshold(distances.tolist())
        return make_chunks(text, [group for run in _cut(pieces, distances > threshold) for group in fill(run)])


def _cut(pieces: Sequence[list[Unit]], after: NDArray[np.bool_]) -> list[list[Unit]]:
    """Runs of units that end after each piece whose flag is set; shape of `after` is (pieces - 1,)."""
    runs: list[list[Unit]] = [list(pieces[0])]
    for piece, ended in zip(pieces[1:], after, strict=True):
        if ended:
            runs.append([])
        runs[-1].extend(piece)
    return runs
