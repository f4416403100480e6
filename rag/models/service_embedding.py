"""An embedding model by address: Text Embeddings Inference, or OpenAI's protocol as many services speak it."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.engines import MIN_COSINE
from rag.models.families import family_of
from rag.models.service import AWAY, Batches, Service, first_understood
from rag.tracing import span

TEI: Final = "/embed"
_WAYS: Final = (TEI, "/embeddings", "/v1/embeddings")
_PROBES: Final = (
    "The river rises in the mountains and reaches the sea after four hundred kilometres.",
    "检索系统先找到段落，再根据段落回答问题。",
    "def area(radius): return 3.14159 * radius ** 2  # 1910",
)
_FINGERPRINT: Final = 64  # of each probe's numbers
_OPEN_SECONDS: Final = 300.0  # until the probes are sent again
_IMPORT_WAITS: Final = 30.0  # seconds for the probes
_PASSAGE_SECONDS: Final = 120.0  # for a request
_REST: Final = 1.0  # seconds in which a failed service isn't asked again, so that one question waits for it once
_QUERIES: Final = 512

Vectors = NDArray[np.float32]


def served(model: str) -> str:
    """What libraries call a model by address: not what they call the same weights computed here."""
    return f"{model}@service"


class ServiceEncoder:
    """An EmbeddingModel behind a service. Nothing is sent before it is needed.

    Its first request, and one every few minutes, encodes three fixed texts: they tell the dimension, and whether the
    service still has the model that it had.
    """

    def __init__(
        self, service: Service, model: str, *, seconds: float, static: Callable[[Sequence[str]], Vectors]
    ) -> None:
        """A question waits `seconds` for its vector, an import longer; `static` gives the vectors for chunking."""
        self.name = served(model)
        self.host = service.host
        self.sentence_vectors = static
        self._service, self._model, self._seconds = service, model, seconds
        self._family = family_of(model.partition(":")[0], Path("/nonexistent"))
        self._batches = Batches()
        self._lock = threading.Lock()
        self._way = ""
        self._probes: Vectors | None = None
        self._checked = self._failed = float("-inf")
        self._problem: ModelError | None = None
        self._remembered = lru_cache(_QUERIES)(self._query)

    @property
    def dimension(self) -> int:
        """Raises ModelError."""
        return int(self._opened().shape[1])

    def fingerprint(self) -> str:
        """What tells the service's model from others, see `is_same`. Raises ModelError."""
        probes = self._opened(self._seconds)
        first = base64.b64encode(probes[:, :_FINGERPRINT].astype("<f2").tobytes()).decode()
        return f"{probes.shape[1]} {first}"

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """As `EmbeddingModel.encode_passages`. Raises ModelError."""
        dimension = self.dimension
        with span(self._model, "embedding", texts=len(texts)), self._watched():
            texts = [self._family.passage + text for text in texts]
            rows = self._batches.rows(texts, partial(self._ask, seconds=_PASSAGE_SECONDS, dimension=dimension))
        return np.stack(rows) if rows else np.empty((0, dimension), dtype=np.float32)

    def encode_query(self, text: str) -> Vectors:
        """As `EmbeddingModel.encode_query`. Raises ModelError."""
        self._opened(self._seconds)
        return self._remembered(text)

    def can_read(self, text: str) -> bool:
        """Whether there is something to read: which languages a service knows it doesn't tell."""
        return any(map(str.isalnum, text))

    def _query(self, text: str) -> Vectors:
        dimension = self._opened(self._seconds).shape[1]
        ask = partial(self._ask, seconds=self._seconds, dimension=dimension)
        with span(self._model, "embedding", texts=1), self._watched():
            (vector,) = self._batches.rows([self._family.query + text], ask)
        vector.setflags(write=False)
        return vector

    def _opened(self, seconds: float = _IMPORT_WAITS) -> Vectors:
        """The vectors of the probes. Raises ModelError."""
        if not self._lock.acquire(timeout=seconds):
            raise self._service.late(seconds)
        try:
            now = time.monotonic()
            asks = seconds == self._seconds
            if asks and self._problem is not None and self._problem.code in AWAY and now - self._failed < _REST:
                raise ModelError(self._problem.code, **self._problem.notice.params)
            if self._probes is None or now - self._checked > _OPEN_SECONDS:
                ask = partial(self._ask, _PROBES, seconds=seconds, dimension=0)
                with self._watched():
                    self._way, rows = first_understood(_WAYS, lambda way: ask(way=way))
                self._probes, self._checked = np.stack(rows), time.monotonic()
                self._remembered.cache_clear()
            return self._probes
        finally:
            self._lock.release()

    def _ask(self, texts: Sequence[str], *, seconds: float, dimension: int, way: str = "") -> list[Vectors]:
        """L2-normalised vectors (d,) of so many texts as one request may hold; any dimension where it is 0."""
        way, texts = way or self._way, [text if text.strip() else "." for text in texts]
        tei, openai = {"inputs": texts, "truncate": True}, {"model": self._model, "input": texts}
        vectors = self._read(self._service.ask(way, tei if way == TEI else openai, seconds), len(texts), way)
        if dimension and vectors.shape[1] != dimension:
            raise ModelError("service_dimension", host=self.host, was=dimension, dimension=vectors.shape[1])
        return list(vectors)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Check the model again after a failure: the service may come back with another."""
        try:
            yield
        except ModelError as error:
            self._problem, self._failed, self._checked = error, time.monotonic(), float("-inf")
            raise
        self._problem = None

    def _read(self, reply: Any, count: int, way: str) -> Vectors:
        try:
            rows = reply if way == TEI else _by_index(reply["data"], count)
            vectors = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            raise self._service.unusable() from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise self._service.unusable()
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ModelError("service_not_finite", name=self._model)
        return np.asarray(vectors / lengths, dtype=np.float32)


def is_same(fingerprint: str, other: str) -> bool:
    """Whether two fingerprints are of one model, however it is computed."""
    (dimension, first), (other_dimension, second) = (one.split(" ") for one in (fingerprint, other))
    if dimension != other_dimension:
        return False
    left, right = (np.frombuffer(base64.b64decode(one), "<f2").astype(np.float32) for one in (first, second))
    left, right = left.reshape(len(_PROBES), -1), right.reshape(len(_PROBES), -1)
    cosines = (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))
    return bool((cosines >= MIN_COSINE).all())


def _by_index(rows: Sequence[Any], count: int) -> list[Any]:
    """The vectors in the order of their `index`: services may send them in any."""
    found = {int(row["index"]): row["embedding"] for row in rows}
    return [found[place] for place in range(count)]
