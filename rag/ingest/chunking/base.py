"""What a chunker is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.types import Chunk

SentenceVectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""Cheap vectors of n texts, shape (n, d), rows of unit length or zero."""


MAXIMUM = 900.0
"""How large a chunk may be, in Latin characters' worth, where nothing else is said: one number for all of them."""


class Chunker(Protocol):
    """Cuts a page's text into chunks: verbatim slices, in order, none over `maximum`, no unit cut.

    `maximum` counts Latin characters' worth (see `units.weigh`). Chunks cover the text but for
    white space; an empty text gives none.
    """

    name: str
    maximum: float

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]: ...
