"""An embedding model without weights: hashed words. It can read Latin script but not Chinese.

`python -m tests.support.hashed_model run main.py` serves the app with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.models import model_files
from rag.models.embedding import EmbeddingModel
from rag.models.transformer import hash_characters
from rag.text import is_chinese, terms


class HashedModel:
    name = "hashed"
    dimension = 64

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded.extend(texts)
        return np.stack([self.encode_query(text) for text in texts])

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector = np.full(self.dimension, 1e-3, dtype=np.float32)
        for term in terms(text):
            vector[zlib.crc32(term.encode()) % self.dimension] += 1.0
        return vector / np.float32(np.linalg.norm(vector))

    def can_read(self, text: str) -> bool:
        return not is_chinese(text)

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return hash_characters(texts)


class HashedBuiltin(HashedModel):
    """A hashed model with the built-in model's name and dimension."""

    name = model_files.E5
    dimension = 384


def use_hashed_model(set_attribute: Callable[[object, str, object], None] = setattr) -> None:
    """Let this process's apps load neither model nor answer reader: that takes each process four seconds."""
    from rag.app import libraries
    from rag.commands import pages

    load = libraries.load_embedding_model

    def load_other(name: str) -> EmbeddingModel:
        return HashedBuiltin() if name in (model_files.BUILTIN, model_files.E5) else load(name)

    for module in (libraries, pages):
        set_attribute(module, "load_embedding_model", load_other)
    set_attribute(libraries.Models, "reader", property(lambda _: None))


if __name__ == "__main__":
    from streamlit.web.cli import main

    use_hashed_model()
    main()
