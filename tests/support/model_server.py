"""A model service on loopback: embeddings and rerankers with the APIs of several services, and their faults.

    with ModelServer("tei") as server:
        settings = load_settings(None, embedding_base_url=server.url, embedding_model="m")

Vectors are hashed words and scores the share of a question's words in a text, unless `encode` or `score` are given.
"""

from __future__ import annotations

import json
import socket
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from rag.text import terms
from tests.support.loopback import Handler, LoopbackServer

Shape = Literal["openai", "tei", "cohere", "voyage"]
PATHS = {"openai": "/v1/embeddings", "tei": "/embed", "cohere": "/v1/rerank", "voyage": "/rerank"}


def hash_texts(texts: Sequence[str], seed: int = 0, dimension: int = 64) -> list[list[float]]:
    rows = np.full((len(texts), dimension), 1e-3)
    for row, text in zip(rows, texts, strict=True):
        for term in terms(text):
            row[zlib.crc32(f"{seed}{term}".encode()) % dimension] += 2.0
    return rows.tolist()  # type: ignore[no-any-return]


def logits(question: str, texts: Sequence[str]) -> list[float]:
    asked = set(terms(question))
    return [20.0 * len(asked & set(terms(text))) / max(1, len(asked)) - 10.0 for text in texts]


class ModelServer(LoopbackServer):
    """A model service; `faults` are the statuses of the next requests, or (status, Retry-After in seconds)."""

    def __init__(
        self,
        shape: Shape,
        *,
        encode: Callable[[Sequence[str]], list[list[float]]] = hash_texts,
        score: Callable[[str, Sequence[str]], list[float]] = logits,
        max_texts: int = 1000,
        max_characters: int = 100_000,
        key: str = "",
        port: int = 0,
    ) -> None:
        super().__init__(_Handler, port=port)
        self.url = self.origin
        self.shape, self.encode, self.score = shape, encode, score
        self.max_texts, self.max_characters, self.key = max_texts, max_characters, key
        self.faults: list[int | tuple[int, str]] = []
        self.delay = 0.0
        self.transform: Callable[[Any], Any] = lambda reply: reply
        self.requests: list[dict[str, Any]] = []
        self.sockets: list[socket.socket] = []

    def answer(self, path: str, body: dict[str, Any], key: str) -> tuple[int, Any, str]:
        paths = {PATHS[self.shape], *(["/rerank"] if self.shape == "tei" else [])}
        if path not in paths:
            return 404, {"error": "no such route"}, ""
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": "key"}, ""
        self.requests.append({"path": path, **body})
        time.sleep(self.delay)
        if self.faults:
            fault = self.faults.pop(0)
            status, after = fault if isinstance(fault, tuple) else (fault, "")
            return status, {"error": "fault"}, after
        reranks = "query" in body
        field = "texts" if self.shape == "tei" else "documents"
        texts = body.get(field if reranks else {"tei": "inputs"}.get(self.shape, "input"))
        if texts is None:
            return 422, {"error": "missing field"}, ""
        if len(texts) > self.max_texts or any(len(text) > self.max_characters for text in texts):
            return 413, {"error": "too large"}, ""
        return 200, self.transform(self._scores(body["query"], texts) if reranks else self._embeddings(texts)), ""

    def _embeddings(self, texts: Sequence[str]) -> Any:
        vectors = self.encode(texts)
        if self.shape == "tei":
            return vectors
        return {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)][::-1]}

    def _scores(self, question: str, texts: Sequence[str]) -> Any:
        name = "score" if self.shape == "tei" else "relevance_score"
        rows = [{"index": place, name: score} for place, score in enumerate(self.score(question, texts))]
        rows.sort(key=lambda row: -row[name])
        return rows if self.shape == "tei" else {"data" if self.shape == "voyage" else "results": rows}

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for one in self.sockets:
            with suppress(OSError):  # already closed
                one.shutdown(socket.SHUT_RDWR)


class _Handler(Handler):
    def setup(self) -> None:
        super().setup()
        self.server.owner.sockets.append(self.connection)

    def post(self) -> None:
        body = json.loads(self.read_body())
        status, reply, after = self.server.owner.answer(self.path, body, self.headers.get("authorization", ""))
        self.send_whole(status, json.dumps(reply).encode(), {"retry-after": after} if after else {})
