"""The mean vectors of languages, which are taken off a multilingual model's vectors.

Such a model finds a question nearer to all passages of its own language than to what answers it in another. Without
the means what is left is what a text says (Libovický et al. 2020, "On the Language Neutrality of Pre-trained
Multilingual Representations", arXiv 2004.05160). `python -m benchmarks.language_means` computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rag.models.tokens import normalised
from rag.text import is_chinese

FILE = "language_means.safetensors"
Kind = Literal["passage", "query"]
Vectors = NDArray[np.float32]


class LanguageMeans:
    """Means of unit vectors, (d,), by kind of text, for Chinese and for languages in Latin script."""

    def __init__(self, means: dict[str, Vectors]) -> None:
        """`means` are named `passage.zh`, `passage.en`, `query.zh` and `query.en`."""
        self._means = {kind: np.stack((means[f"{kind}.en"], means[f"{kind}.zh"])) for kind in ("passage", "query")}

    def remove(self, vectors: Vectors, texts: Sequence[str], kind: Kind) -> Vectors:
        """The unit vectors of `texts`, (n, d), without their language's mean, as unit vectors."""
        chinese = np.fromiter(map(is_chinese, texts), dtype=np.int64, count=len(texts))
        return normalised(vectors - self._means[kind][chinese])


def read_language_means(folder: Path) -> LanguageMeans | None:
    """Those in a model's folder; None where there are none."""
    if not (folder / FILE).is_file():
        return None
    from safetensors.numpy import load_file

    return LanguageMeans(load_file(folder / FILE))
