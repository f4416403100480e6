"""An embedding model that is loaded when it is first needed, and remembers the vectors of sentences it has seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel

_REMEMBERED = 20_000  # vectors: 15 MB in half precision


class SentenceModel:
    """Safe to share between threads. Methods raise ModelError."""

    def __init__(self, model: Callable[[], EmbeddingModel]) -> None:
        """`model` is called when it is first needed."""
        self._model = model
        self._vectors: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        self._lock = threading.Lock()

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """As `EmbeddingModel.encode_query`."""
        return self._model().encode_query(text)

    def can_read(self, text: str) -> bool:
        """As `EmbeddingModel.can_read`."""
        return self._model().can_read(text)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `EmbeddingModel.encode_passages`, to within half precision."""
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(new, self._model().encode_passages(new).astype(np.float16), strict=True))
        with self._lock:
            for text in texts:
                self._vectors[text] = known[text]
                self._vectors.move_to_end(text)
            while len(self._vectors) > _REMEMBERED:
                self._vectors.popitem(last=False)
        return np.stack([known[text] for text in texts]).astype(np.float32)
