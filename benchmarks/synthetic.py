"""Libraries of any size without a model: synthetic vectors, payloads of real size, texts whose words follow Zipf's law.

Dense vectors cluster around topics in a space of fewer dimensions, with noise in all of them, like those of embedding
models; uniformly drawn ones would be nearly equidistant, which no index can search. Keyword weights are BM25's for the
words of the text, with the encoder's terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.models.embedding import AVERAGE_TERMS, SparseEncoder, index_sentences, pack_sentences
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import Revision, chunk_id, chunk_payload, page_point, recipe, scope_filter, walk
from rag.store.values import Filters, NewChunks, content_hash, sign
from rag.types import Chunk, Page, SparseVector
from rag.web.urls import url_hash

DIMENSION = 384
MODEL = "synthetic"
CHUNKS_A_PAGE = 10
SITES, LANGUAGES = 20, ("en", "zh", "de", "fr")
_VOCABULARY, _TOPICS, _LATENT = 30_000, 400, 48
_SENTENCES, _WORDS = 6, 15
_K, _B = 1.2, 0.75
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "il")]


@dataclass(frozen=True)
class Draft:
    """A page with the input of `Library.draft`."""

    page: Page
    chunks: list[Chunk]
    dense: NDArray[np.float32]
    sparse: list[SparseVector]
    sentences: list[str]

    @property
    def new(self) -> NewChunks:
        hashes = [content_hash(chunk.text) for chunk in self.chunks]
        return NewChunks(self.chunks, self.dense, [True] * len(self.chunks), self.sparse, hashes, self.sentences)

    def commit(self, library: Library) -> Page:
        return library.commit_all([library.draft(self.page, self.new)])[0].page


class World:
    """A deterministic generator of numbered pages, and of questions that they answer."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        self._encoder = SparseEncoder()
        self._map = rng.standard_normal((_LATENT, DIMENSION)).astype(np.float32)
        self._topics = rng.standard_normal((_TOPICS, _LATENT)).astype(np.float32)
        self._shares = np.cumsum(1.0 / np.arange(10, _VOCABULARY + 10))
        self._shares /= self._shares[-1]

    @cached_property
    def _words(self) -> tuple[list[str], NDArray[np.int64]]:
        """The vocabulary, and the term of each word."""
        spellings = (_word(number) for number in range(2 * _VOCABULARY))
        pairs = ((word, self._encoder.encode_query(word).indices) for word in spellings)
        usable = list(islice(((word, terms[0]) for word, terms in pairs if terms), _VOCABULARY))  # some are stop words
        return [word for word, _ in usable], np.array([term for _, term in usable], dtype=np.int64)

    def page(self, number: int) -> Draft:
        rng = np.random.default_rng(number)
        words, _ = self._words
        word_ids = self._draw(rng, (CHUNKS_A_PAGE, _SENTENCES, _WORDS))
        texts = [" ".join(" ".join(words[w] for w in line).capitalize() + "." for line in part) for part in word_ids]
        starts = np.cumsum([0, *(len(text) + 2 for text in texts)])
        chunks = [
            Chunk(i, text, int(starts[i]), int(starts[i]) + len(text), ("Guide", f"Part {i % 3}"))
            for i, text in enumerate(texts)
        ]
        sparse = [self._weights(part.ravel()) for part in word_ids]
        sentences = [pack_sentences(index_sentences(text, self._encoder), len(text)) for text in texts]
        return Draft(_page(number, "\n\n".join(texts)), chunks, self._vectors(rng, CHUNKS_A_PAGE), sparse, sentences)

    def question(self, number: int, pages: int) -> tuple[str, NDArray[np.float32]]:
        """Return six words of a chunk of one of the first `pages` pages, and a vector near its own."""
        rng = np.random.default_rng(10**9 + number)
        draft = self.page(int(rng.integers(pages)))
        place = int(rng.integers(CHUNKS_A_PAGE))
        chunk_words = [word.strip(".").lower() for word in draft.chunks[place].text.split()]
        choice = rng.choice(len(chunk_words), size=6, replace=False)
        near = draft.dense[place] + 0.5 * rng.standard_normal(DIMENSION).astype(np.float32) / np.sqrt(DIMENSION)
        return " ".join(chunk_words[i] for i in choice), (near / np.linalg.norm(near)).astype(np.float32)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(self._shares, rng.random(shape)), _VOCABULARY - 1)

    def _vectors(self, rng: np.random.Generator, count: int) -> NDArray[np.float32]:
        topic = self._topics[int(rng.integers(_TOPICS))]
        latent = topic + rng.standard_normal((count, _LATENT)).astype(np.float32)
        points = latent @ self._map + 1.5 * rng.standard_normal((count, DIMENSION)).astype(np.float32)
        vectors: NDArray[np.float32] = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def _weights(self, words: NDArray[np.int64]) -> SparseVector:
        _, terms = self._words
        unique_terms, counts = np.unique(terms[words], return_counts=True)
        weights = counts * (_K + 1) / (counts + _K * (1 - _B + _B * len(words) / AVERAGE_TERMS))
        return SparseVector(unique_terms.tolist(), weights.tolist())


def fill(library: Library, world: World, first: int, last: int) -> None:
    """Write pages `first` to `last` - 1 in the state that commits leave, but in batches, which is faster."""
    chunks: list[models.PointStruct] = []
    pages: list[models.PointStruct] = []
    for number in range(first, last):
        page, points = _points(world.page(number), library.embedding_model)
        pages.append(page)
        chunks.extend(points)
        if len(pages) == 100 or number == last - 1:
            library.client.upsert(library.chunks_collection, chunks)
            library.client.upsert(library.pages_collection, pages)
            chunks, pages = [], []


def _points(draft: Draft, model: str) -> tuple[models.PointStruct, list[models.PointStruct]]:
    hashes = [content_hash(chunk.text) for chunk in draft.chunks]
    page = replace(draft.page, generation=recipe(draft.page.text, "", model) + "0" * 16, chunks=len(hashes))
    return page_point(page, sign(page.text), Revision(1), excluded=False), [
        _point(
            chunk_id(page.url_hash, page.generation, chunk.index),
            {
                "dense": draft.dense[row].tolist(),
                "sparse": models.SparseVector.model_construct(**_columns(draft.sparse[row])),
            },
            _with_flag(
                chunk_payload(page, chunk, hashes[row], active=True, written=0.0, sentences=draft.sentences[row])
            ),
        )
        for row, chunk in enumerate(draft.chunks)
    ]


def _with_flag(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk's payload with the flag that a commit sets once its page is stored."""
    return {**payload, "metadata": {**payload["metadata"], "left_out": False}}


def _columns(vector: SparseVector) -> dict[str, Any]:
    return {"indices": list(vector.indices), "values": list(vector.values)}


def _point(identity: str, vector: Any, payload: Any) -> models.PointStruct:
    return models.PointStruct.model_construct(id=identity, vector=vector, payload=payload)


def _page(number: int, text: str) -> Page:
    url = page_url(number)
    moment = f"2026-01-{1 + number % 28:02d}T{number % 24:02d}:00:00.{number % 1_000_000:06d}Z"
    return Page(
        url=url,
        url_hash=url_hash(url),
        title=f"Guide number {number}",
        language=LANGUAGES[number % len(LANGUAGES)],
        site=f"site{number % SITES}.example",
        text=text,
        text_hash=hashlib.sha256(text.encode()).hexdigest(),
        source="web",
        characters=len(text),
        added_at=moment,
        updated_at=moment,
    )


def page_url(number: int) -> str:
    return f"https://site{number % SITES}.example/guide/{number}"


def _word(number: int) -> str:
    """Spell a number in two or more syllables: no two words are the same, and common ones are short."""
    number, last = divmod(number + len(_SYLLABLES), len(_SYLLABLES))
    return (_word(number - len(_SYLLABLES)) if number >= len(_SYLLABLES) else _SYLLABLES[number]) + _SYLLABLES[last]


def local_copy(
    library: Library, vectors: Mapping[str, NDArray[np.float32]], folder: Path
) -> Callable[[str, Filters], object]:
    """Copy the library's chunks to qdrant-client's local mode; return langchain-qdrant's hybrid query on them."""
    client = QdrantClient(path=str(folder))
    dense = {"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)}
    sparse = {"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)}
    client.create_collection("chunks", vectors_config=dense, sparse_vectors_config=sparse)
    batch: list[models.PointStruct] = []
    for record in walk(library.client, library.chunks_collection, vectors=True):
        batch.append(_point(str(record.id), record.vector, record.payload))
        if len(batch) == 1000:
            client.upsert("chunks", batch)
            batch = []
    client.upsert("chunks", batch) if batch else None
    encoder = SparseEncoder()

    def search(question: str, filters: Filters) -> object:
        terms = encoder.encode_query(question)
        condition = scope_filter(filters)
        legs = [
            models.Prefetch(query=vectors[question].tolist(), using="dense", filter=condition, limit=20),
            models.Prefetch(query=models.SparseVector(**_columns(terms)), using="sparse", filter=condition, limit=20),
        ]
        fused = models.FusionQuery(fusion=models.Fusion.RRF)
        return client.query_points("chunks", query=fused, prefetch=legs, limit=10, with_payload=True)

    return search
