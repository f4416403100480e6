"""An embedding model behind a service: Text Embeddings Inference, or OpenAI's protocol in its variants."""

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
from rag.models.service import OUTAGES, Batches, Service, find_understood
from rag.tracing import span

TEI: Final = "/embed"
_WAYS: Final = (TEI, "/embeddings", "/v1/embeddings")
_PROBES: Final = (
    "The river rises in the mountains and reaches the sea after four hundred kilometres.",
    "检索系统先找到段落，再根据段落回答问题。",
    "def area(radius): return 3.14159 * radius ** 2  # 1910",
)
_FINGERPRINT: Final = 64  # numbers of each probe
_OPEN_SECONDS: Final = 300.0  # until the probes are sent again
_IMPORT_WAITS: Final = 30.0  # seconds for the probes
_PASSAGE_SECONDS: Final = 120.0  # for a request
_REST: Final = 1.0  # seconds without calls to a failed service, so that a question waits for it only once
_QUERIES: Final = 512

Vectors = NDArray[np.float32]


def service_name(model: str) -> str:
    """Return the name of a model behind a service in libraries; it differs from the name of the same weights here."""
    return f"{model}@service"


class ServiceEncoder:
    """An EmbeddingModel behind a service. It sends nothing before first use.

    Its first request, and one every few minutes, encodes three fixed texts, to learn the dimension and if the service
    still has the same model.
    """

    def __init__(
        self, service: Service, model: str, *, seconds: float, static: Callable[[Sequence[str]], Vectors]
    ) -> None:
        """A question waits `seconds` for its vector, an import longer; `static` returns the vectors for chunking."""
        self.name = service_name(model)
        self.host = service.host
        self.sentence_vectors = static
        self._service, self._model, self._seconds = service, model, seconds
        self._family = family_of(model.partition(":")[0], Path("/nonexistent"))
        self._batches = Batches()
        self._lock = threading.Lock()
        self._way = ""
        self._probes: Vectors | None = None
        self._checked_at = self._failed_at = float("-inf")
        self._problem: ModelError | None = None
        self._cached_query = lru_cache(_QUERIES)(self._query)

    @property
    def dimension(self) -> int:
        """The length of a vector. Raises ModelError."""
        return int(self._open().shape[1])

    def fingerprint(self) -> str:
        """Return data that distinguishes the service's model from others, see `is_same`. Raises ModelError."""
        probes = self._open(self._seconds)
        first = base64.b64encode(probes[:, :_FINGERPRINT].astype("<f2").tobytes()).decode()
        return f"{probes.shape[1]} {first}"

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Same as `EmbeddingModel.encode_passages`. Raises ModelError."""
        dimension = self.dimension
        with span(self._model, "embedding", texts=len(texts)), self._watch():
            texts = [self._family.passage + text for text in texts]
            rows = self._batches.rows(texts, partial(self._ask, seconds=_PASSAGE_SECONDS, dimension=dimension))
        return np.stack(rows) if rows else np.empty((0, dimension), dtype=np.float32)

    def encode_query(self, text: str) -> Vectors:
        """Same as `EmbeddingModel.encode_query`. Raises ModelError."""
        self._open(self._seconds)
        return self._cached_query(text)

    def can_read(self, text: str) -> bool:
        """True if there is something to read; services do not list their languages."""
        return any(map(str.isalnum, text))

    def _query(self, text: str) -> Vectors:
        dimension = self._open(self._seconds).shape[1]
        ask = partial(self._ask, seconds=self._seconds, dimension=dimension)
        with span(self._model, "embedding", texts=1), self._watch():
            (vector,) = self._batches.rows([self._family.query + text], ask)
        vector.setflags(write=False)
        return vector

    def _open(self, seconds: float = _IMPORT_WAITS) -> Vectors:
        """Return the vectors of the probes. Raises ModelError."""
        if not self._lock.acquire(timeout=seconds):
            raise self._service.late_error(seconds)
        try:
            now = time.monotonic()
            asks = seconds == self._seconds
            if asks and self._problem is not None and self._problem.code in OUTAGES and now - self._failed_at < _REST:
                raise ModelError(self._problem.code, **self._problem.notice.params)
            if self._probes is None or now - self._checked_at > _OPEN_SECONDS:
                ask = partial(self._ask, _PROBES, seconds=seconds, dimension=0)
                with self._watch():
                    self._way, rows = find_understood(_WAYS, lambda way: ask(way=way))
                self._probes, self._checked_at = np.stack(rows), time.monotonic()
                self._cached_query.cache_clear()
            return self._probes
        finally:
            self._lock.release()

    def _ask(self, texts: Sequence[str], *, seconds: float, dimension: int, way: str = "") -> list[Vectors]:
        """Return L2-normalised vectors (d,) of the texts of one request; any dimension is valid if it is 0."""
        way, texts = way or self._way, [text if text.strip() else "." for text in texts]
        tei, openai = {"inputs": texts, "truncate": True}, {"model": self._model, "input": texts}
        vectors = self._read(self._service.ask(way, tei if way == TEI else openai, seconds), len(texts), way)
        if dimension and vectors.shape[1] != dimension:
            raise ModelError("service_dimension", host=self.host, was=dimension, dimension=vectors.shape[1])
        return list(vectors)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """Check the model again after a failure, since the service may return with another."""
        try:
            yield
        except ModelError as error:
            self._problem, self._failed_at, self._checked_at = error, time.monotonic(), float("-inf")
            raise
        self._problem = None

    def _read(self, reply: Any, count: int, way: str) -> Vectors:
        try:
            rows = reply if way == TEI else _sort_by_index(reply["data"], count)
            vectors = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            raise self._service.unusable_error() from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise self._service.unusable_error()
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ModelError("service_not_finite", name=self._model)
        return np.asarray(vectors / lengths, dtype=np.float32)


def is_same(fingerprint: str, other: str) -> bool:
    """True if two fingerprints are of one model, even if computed differently."""
    (dimension, first), (other_dimension, second) = (value.split(" ") for value in (fingerprint, other))
    if dimension != other_dimension:
        return False
    left, right = (np.frombuffer(base64.b64decode(value), "<f2").astype(np.float32) for value in (first, second))
    left, right = left.reshape(len(_PROBES), -1), right.reshape(len(_PROBES), -1)
    cosines = (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))
    return bool((cosines >= MIN_COSINE).all())


def _sort_by_index(rows: Sequence[Any], count: int) -> list[Any]:
    """Return the vectors in the order of their `index`, since services may send them in any."""
    vectors = {int(row["index"]): row["embedding"] for row in rows}
    return [vectors[place] for place in range(count)]
