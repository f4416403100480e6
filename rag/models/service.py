"""Embedding models and rerankers behind configured HTTP services, and the requests to these services.

Embeddings come from Text Embeddings Inference or a service compatible with OpenAI; reranking from Text Embeddings
Inference, Voyage, or a service compatible with Cohere, Jina, vLLM or llama.cpp. Requests use the HTTP client of the
configured chat model (`http_clients.py`), with its proxies and certificate authorities, and follow no redirects.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import httpx2
import numpy as np
from numpy.typing import NDArray

from rag.background import BACKGROUND
from rag.errors import ModelError
from rag.models.http_clients import EnvironmentTransport, client_options
from rag.models.model_files import family_of
from rag.models.transformer import MIN_COSINE, sigmoid
from rag.text import estimate_tokens, make_encodable
from rag.tracing import span

MAX_REPLY_BYTES: Final = 64_000_000
_MAX_ATTEMPTS: Final = 4
_PAUSE, _MAX_PAUSE = 0.25, 8.0  # seconds before the first retry, doubled each time
_RETRY_STATUSES: Final = (429, 500, 502, 503, 504, 520, 529)
_SIZE_STATUSES: Final = (400, 413, 422)
_MAX_TEXTS, _MAX_TOKENS = 64, 16_000  # per request, until a service refuses that many
_MIN_CHARACTERS: Final = 200  # characters; a refused text is halved down to this length
_OUTAGES: Final = frozenset({"service_timeout", "service_unreachable", "service_busy", "service_failed"})
"""Error codes of transient failures."""

Row = TypeVar("Row")
Api = TypeVar("Api")
Result = TypeVar("Result")


class _RefusedError(ModelError):
    """An error for a request that a service rejects, or a reply in an unexpected format, with its HTTP `status`."""

    def __init__(self, code: str, status: int, **params: Any) -> None:
        super().__init__(code, status=status, **params)
        self.status = status


class Service:
    """A client for JSON requests below one base URL. Thread-safe; must not be called in the event loop of runs."""

    def __init__(self, base_url: str, key: str, setting: str) -> None:
        """`setting` is the name of the setting for error messages, such as EMBEDDING_BASE_URL."""
        self._base_url = base_url.rstrip("/")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.host = httpx2.URL(base_url).netloc.decode()
        self._params = {"host": self.host, "setting": setting}

    def ask(self, path: str, body: Mapping[str, Any], seconds: float) -> Any:
        """POST `body` to `path` with retries, and return the JSON of the reply. Raises ModelError."""
        url = self._base_url if self._base_url.endswith(path) else f"{self._base_url}{path}"
        headers = {**self._headers, "content-type": "application/json", "accept": "application/json"}
        try:
            status, content = post(url, json.dumps(body).encode(), headers, seconds=seconds)
        except TimeoutError as error:
            raise self.timeout_error(seconds) from error
        except ConnectionError as error:
            raise ModelError("service_unreachable", **self._params) from error
        if status in (401, 403):
            key = self._params["setting"].replace("BASE_URL", "API_KEY")
            raise ModelError("service_wrong_key", key=key, **self._params)
        if status == 429:
            raise ModelError("service_busy", **self._params)
        if 400 <= status < 500:
            code = "service_wrong_address" if status == 404 else "service_refused"
            raise _RefusedError(code, status, **self._params)
        if not 200 <= status < 300:
            raise ModelError("service_failed", status=status, **self._params)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.format_error() from error

    def timeout_error(self, seconds: float) -> ModelError:
        return ModelError("service_timeout", seconds=f"{seconds:g}", **self._params)

    def format_error(self) -> _RefusedError:
        """Return the error for a reply in an unexpected format."""
        return _RefusedError("service_unusable", 200, **self._params)


def post(url: str, content: bytes, headers: Mapping[str, str], *, seconds: float) -> tuple[int, bytes]:
    """Send a POST request, with retries while time remains, and return the status and body of the reply. Blocks.

    Raises TimeoutError, ConnectionError, and ModelError for a misconfigured proxy.
    """
    try:
        return BACKGROUND.wait(_post(url, content, {**headers, "accept-encoding": "identity"}, seconds))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConnectionError(type(error).__name__) from error


async def _post(url: str, content: bytes, headers: Mapping[str, str], seconds: float) -> tuple[int, bytes]:
    now = asyncio.get_running_loop().time
    ends = now() + seconds
    headers = {"user-agent": "Pagelight", **headers}
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        retry_after, problem, status, body = "", None, 0, bytearray()
        try:
            async with (
                asyncio.timeout_at(ends),
                _client().stream("POST", url, content=content, headers=headers, timeout=seconds) as response,
            ):
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > MAX_REPLY_BYTES:
                        raise httpx2.ReadError("the reply is too large")
                status, retry_after = response.status_code, response.headers.get("retry-after", "")
        except httpx2.TimeoutException as error:
            raise TimeoutError from error
        except httpx2.TransportError as error:
            problem = error
        pause = _pause(attempt, retry_after)
        if attempt == _MAX_ATTEMPTS or now() + pause >= ends or (problem is None and status not in _RETRY_STATUSES):
            break
        await asyncio.sleep(pause)
    if problem is not None:
        raise problem
    return status, bytes(body)


@cache
def _client() -> httpx2.AsyncClient:
    client: httpx2.AsyncClient = client_options(EnvironmentTransport())["http_async_client"]
    return client


def _pause(attempt: int, retry_after: str) -> float:
    """Return the seconds of Retry-After, a number or a date, plus a jitter whose limit doubles with each attempt."""
    more = random.uniform(0.0, min(_MAX_PAUSE, _PAUSE * 2.0 ** (attempt - 1)))
    try:
        return max(0.0, float(retry_after)) + more
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()) + more
    except (ValueError, TypeError):
        return more


def _negotiate(apis: Sequence[Api], ask: Callable[[Api], Result]) -> tuple[Api, Result]:
    """Return the first request format that the service understands, and its reply. Raises ModelError."""
    errors: list[_RefusedError] = []
    for api in apis:
        try:
            return api, ask(api)
        except _RefusedError as error:
            errors.append(error)
    raise min(errors, key=lambda error: error.status in (404, 405))


class _Batches:
    """Batches of texts: smaller after the service refused their size; a single refused text is shortened."""

    def __init__(self) -> None:
        self._max_texts = _MAX_TEXTS
        self._shortened = 0

    def rows(self, texts: Iterable[str], ask: Callable[[Sequence[str]], Sequence[Row]]) -> list[Row]:
        """Return one row per text, in order. Raises the errors of `ask`."""
        rows: list[Row] = []
        batch: list[str] = []
        tokens = 0
        for text in map(make_encodable, texts):
            size = estimate_tokens(text)
            if batch and (len(batch) >= self._max_texts or tokens + size > _MAX_TOKENS):
                rows += self._ask(batch, ask)
                batch, tokens = [], 0
            batch.append(text)
            tokens += size
        return rows + (self._ask(batch, ask) if batch else [])

    def _ask(self, texts: Sequence[str], ask: Callable[[Sequence[str]], Sequence[Row]]) -> list[Row]:
        try:
            return list(ask(texts))
        except _RefusedError as error:
            if error.status not in _SIZE_STATUSES or (len(texts) == 1 and len(texts[0]) <= _MIN_CHARACTERS):
                raise
        if len(texts) == 1:
            self._shortened += 1
            return self._ask([texts[0][: len(texts[0]) // 2]], ask)
        half, shortened = (len(texts) + 1) // 2, self._shortened
        rows = [*self._ask(texts[:half], ask), *self._ask(texts[half:], ask)]
        if self._shortened == shortened:  # the size of the batch was refused, not one of its texts
            self._max_texts = min(self._max_texts, half)
        return rows


TEI: Final = "/embed"
_EMBEDDING_APIS: Final = (TEI, "/embeddings", "/v1/embeddings")
_PROBE_TEXTS: Final = (
    "The river rises in the mountains and reaches the sea after four hundred kilometres.",
    "检索系统先找到段落，再根据段落回答问题。",
    "def area(radius): return 3.14159 * radius ** 2  # 1910",
)
_FINGERPRINT: Final = 64  # components of each probe's vector
_OPEN_SECONDS: Final = 300.0  # until the probes are sent again
_PROBE_SECONDS: Final = 30.0  # seconds for the probes
_PASSAGE_SECONDS: Final = 120.0  # for a request
_COOLDOWN: Final = 1.0  # seconds without calls to a failed service, so that a question waits for it only once
_QUERIES: Final = 512

Vectors = NDArray[np.float32]

Scale = Literal["", "logits", "probabilities"]
_PATHS: Final = ("/rerank", "/v1/rerank", "/v2/rerank", "/reranks")
_RERANK_APIS: Final = tuple((path, field) for path in _PATHS for field in ("documents", "texts"))
_SECONDS: Final = 20.0  # without another limit
_MAX_QUESTION: Final = 1_500  # characters
_PROBE_PAIRS: Final = (
    (
        "When was the bridge opened to traffic?",
        (
            "The bridge below the old town was opened to traffic in 1910.",
            "Bake the bread at 220 degrees until the crust is brown.",
            "The committee elects its chair for a term of two years.",
            "Penguins cannot fly, but they swim very well.",
        ),
    ),
    (
        "这座桥是哪一年通车的？",
        (
            "老城下游的这座桥于1910年通车。",
            "面包要烤到外皮变成棕色。",
            "委员会每两年选举一次主席。",
            "企鹅不会飞，但很会游泳。",
        ),
    ),
)
"""Questions, each with texts of which only the first is an answer."""


def service_name(model: str) -> str:
    """Return the name in libraries of a model behind a service; the same weights have another name if run locally."""
    return f"{model}@service"


class ServiceEncoder:
    """An EmbeddingModel behind a service. Sends nothing before first use.

    The first request, and another every few minutes, encodes three probe texts, to learn the dimension and to check
    that the service still has the same model.
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
        self._batches = _Batches()
        self._lock = threading.Lock()
        self._api = ""
        self._probes: Vectors | None = None
        self._checked_at = self._failed_at = float("-inf")
        self._problem: ModelError | None = None
        self._cached_query = lru_cache(_QUERIES)(self._query)

    @property
    def dimension(self) -> int:
        """The length of a vector. Raises ModelError."""
        return int(self._open().shape[1])

    def fingerprint(self) -> str:
        """Return a fingerprint of the service's model, to compare by `is_same`. Raises ModelError."""
        probes = self._open(is_question=True)
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
        self._open(is_question=True)
        return self._cached_query(text)

    def can_read(self, text: str) -> bool:
        """True for any text with letters or digits, since services do not list their languages."""
        return any(map(str.isalnum, text))

    def _query(self, text: str) -> Vectors:
        dimension = self._open(is_question=True).shape[1]
        ask = partial(self._ask, seconds=self._seconds, dimension=dimension)
        with span(self._model, "embedding", texts=1), self._watch():
            (vector,) = self._batches.rows([self._family.query + text], ask)
        vector.setflags(write=False)
        return vector

    def _open(self, *, is_question: bool = False) -> Vectors:
        """Return the vectors of the probes. Only an import waits for a service that just failed. Raises ModelError."""
        seconds = self._seconds if is_question else _PROBE_SECONDS
        if not self._lock.acquire(timeout=seconds):
            raise self._service.timeout_error(seconds)
        try:
            now = time.monotonic()
            problem = self._problem if now - self._failed_at < _COOLDOWN else None
            if is_question and problem is not None and problem.code in _OUTAGES:
                raise ModelError(problem.code, **problem.notice.params)
            if self._probes is None or now - self._checked_at > _OPEN_SECONDS:
                ask = partial(self._ask, _PROBE_TEXTS, seconds=seconds, dimension=0)
                with self._watch():
                    self._api, rows = _negotiate(_EMBEDDING_APIS, lambda api: ask(api=api))
                self._probes, self._checked_at = np.stack(rows), time.monotonic()
                self._cached_query.cache_clear()
            return self._probes
        finally:
            self._lock.release()

    def _ask(self, texts: Sequence[str], *, seconds: float, dimension: int, api: str = "") -> list[Vectors]:
        """Send one request, and return the texts' L2-normalised vectors, (d,); a `dimension` of 0 accepts any."""
        api, texts = api or self._api, [text if text.strip() else "." for text in texts]
        tei, openai = {"inputs": texts, "truncate": True}, {"model": self._model, "input": texts}
        reply = self._service.ask(api, tei if api == TEI else openai, seconds)
        try:
            if api != TEI:  # the vectors may come in any order
                by_index = {int(row["index"]): row["embedding"] for row in reply["data"]}
                reply = [by_index[place] for place in range(len(texts))]
            vectors = np.asarray(reply, dtype=np.float32)
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            raise self._service.format_error() from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise self._service.format_error()
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ModelError("service_not_finite", name=self._model)
        if dimension and vectors.shape[1] != dimension:
            raise ModelError("service_dimension", host=self.host, was=dimension, dimension=vectors.shape[1])
        return list(np.asarray(vectors / lengths, dtype=np.float32))

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """Check the model again after a failure, since the service may come back with a different one."""
        try:
            yield
        except ModelError as error:
            self._problem, self._failed_at, self._checked_at = error, time.monotonic(), float("-inf")
            raise
        self._problem = None


def is_same(fingerprint: str, other: str) -> bool:
    """True if two fingerprints belong to the same model, within the tolerance for numerical differences."""
    (dimension, first), (other_dimension, second) = (value.split(" ") for value in (fingerprint, other))
    if dimension != other_dimension:
        return False
    left, right = (np.frombuffer(base64.b64decode(value), "<f2").astype(np.float32) for value in (first, second))
    left, right = left.reshape(len(_PROBE_TEXTS), -1), right.reshape(len(_PROBE_TEXTS), -1)
    cosines = (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))
    return bool((cosines >= MIN_COSINE).all())


class ServiceReranker:
    """A Reranker behind a service. Sends nothing before first use.

    Services return logits or probabilities. Eight probe pairs decide which, once per model: a score outside 0 to 1 is a
    logit. They also verify that the service ranks answers first.
    """

    def __init__(
        self, service: Service, model: str, scale: Scale = "", on_decision: Callable[[Scale], object] | None = None
    ) -> None:
        """`scale` is an earlier decision, or empty; `on_decision` is called with a new one."""
        self.name = model or service.host
        self._service, self._model = service, model
        self._scale, self._on_decision = scale, on_decision
        self._api: tuple[str, str] | None = None
        self._batches = _Batches()
        self._lock = threading.Lock()

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """See Reranker."""
        ends = time.monotonic() + (seconds or _SECONDS)
        scale = self._open(ends)
        service_scores = self._batches.rows(texts, partial(self._ask, question[:_MAX_QUESTION], ends))
        scored = [place for place, score in enumerate(service_scores) if score is not None]
        values = np.array([service_scores[place] for place in scored], dtype=np.float32)
        if scale == "probabilities" and not ((values >= 0) & (values <= 1)).all():
            raise ModelError("reranker_scale", name=self.name)
        scores: list[float | None] = [None] * len(service_scores)
        for place, score in zip(scored, sigmoid(values) if scale == "logits" else values, strict=True):
            scores[place] = float(score)
        return scores

    def _open(self, ends: float) -> Scale:
        with self._lock:
            if self._api is None:
                question, texts = _PROBE_PAIRS[0]
                self._api, _ = _negotiate(_RERANK_APIS, lambda api: self._ask(question, ends, texts, api))
            if not self._scale:
                results = [self._ask(question, ends, texts) for question, texts in _PROBE_PAIRS]
                for first, *others in results:
                    if first is None or any(score is not None and score >= first for score in others):
                        raise ModelError("reranker_wrong_order", name=self.name)
                scores = [score for row in results for score in row if score is not None]
                self._scale = "probabilities" if all(0 <= score <= 1 for score in scores) else "logits"
                if self._on_decision is not None:
                    self._on_decision(self._scale)
            return self._scale

    def _ask(
        self, question: str, ends: float, texts: Sequence[str], api: tuple[str, str] | None = None
    ) -> list[float | None]:
        """Return the service's raw score for each text; None for a text without one."""
        path, field = api or self._api or _RERANK_APIS[0]
        body: dict[str, Any] = {"query": question, field: list(texts)}
        body |= {"truncate": True} if field == "texts" else {"model": self._model} if self._model else {}
        if (seconds := ends - time.monotonic()) <= 0:
            return [None] * len(texts)
        reply = self._service.ask(path, body, seconds)
        try:
            rows = reply if isinstance(reply, list) else reply["results"] if "results" in reply else reply["data"]
            key = "relevance_score"
            scores = {int(row["index"]): float(row[key] if key in row else row["score"]) for row in rows}
        except (TypeError, ValueError, LookupError) as error:
            raise self._service.format_error() from error
        if not scores or not scores.keys() <= set(range(len(texts))) or len(scores) != len(rows):
            raise self._service.format_error()
        if not all(map(math.isfinite, scores.values())):
            raise ModelError("service_not_finite", name=self.name)
        return [scores.get(place) for place in range(len(texts))]
