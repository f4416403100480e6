"""A reranker behind a service: Text Embeddings Inference, Voyage, or as Cohere, Jina, vLLM and llama.cpp speak it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from rag.errors import ModelError
from rag.models.engines import sigmoid
from rag.models.service import Batches, Service, find_understood

Scale = Literal["", "logits", "probabilities"]
_PATHS: Final = ("/rerank", "/v1/rerank", "/v2/rerank", "/reranks")
_WAYS: Final = tuple((path, field) for path in _PATHS for field in ("documents", "texts"))
_SECONDS: Final = 20.0  # without another limit
_MAX_QUESTION: Final = 1_500  # characters
_PROBES: Final = (
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
"""Questions with their texts, the first of which is an answer."""


class ServiceReranker:
    """A Reranker behind a service. It sends nothing before first use.

    Services return logits or probabilities. Eight pairs decide which, once for a model: a score outside of 0 to 1 is a
    logit. They also show if the service scores pairs at all.
    """

    def __init__(
        self, service: Service, model: str, scale: Scale = "", decided: Callable[[Scale], object] | None = None
    ) -> None:
        """`scale` is an earlier decision; `decided` is called with a new one."""
        self.name = model or service.host
        self._service, self._model = service, model
        self._scale, self._decided = scale, decided
        self._way: tuple[str, str] | None = None
        self._batches = Batches()
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
            if self._way is None:
                question, texts = _PROBES[0]
                self._way, _ = find_understood(_WAYS, lambda way: self._ask(question, ends, texts, way))
            if not self._scale:
                results = [self._ask(question, ends, texts) for question, texts in _PROBES]
                if any(row is None or row[0] is None or row[0] <= max(map(_low, row[1:])) for row in results):
                    raise ModelError("reranker_wrong_order", name=self.name)
                scores = [score for row in results for score in row if score is not None]
                self._scale = "probabilities" if all(0 <= score <= 1 for score in scores) else "logits"
                if self._decided is not None:
                    self._decided(self._scale)
            return self._scale

    def _ask(
        self, question: str, ends: float, texts: Sequence[str], way: tuple[str, str] | None = None
    ) -> list[float | None]:
        """Return the service's own score a text; None for a text without one."""
        path, field = way or self._way or _WAYS[0]
        body: dict[str, Any] = {"query": question, field: list(texts)}
        body |= {"truncate": True} if field == "texts" else {"model": self._model} if self._model else {}
        if (seconds := ends - time.monotonic()) <= 0:
            return [None] * len(texts)
        reply = self._service.ask(path, body, seconds)
        try:
            rows = reply if isinstance(reply, list) else reply["results"] if "results" in reply else reply["data"]
            scores = {int(row["index"]): _score(row) for row in rows}
        except (TypeError, ValueError, LookupError) as error:
            raise self._service.unusable_error() from error
        if not scores or not scores.keys() <= set(range(len(texts))) or len(scores) != len(rows):
            raise self._service.unusable_error()
        if not all(map(math.isfinite, scores.values())):
            raise ModelError("service_not_finite", name=self.name)
        return [scores.get(place) for place in range(len(texts))]


def _score(row: Any) -> float:
    return float(row["relevance_score"] if "relevance_score" in row else row["score"])


def _low(score: float | None) -> float:
    return -math.inf if score is None else score
