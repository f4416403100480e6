"""Small synthetic pages and collections, made from seeded random numbers."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_qdrant import SparseEmbeddings
from langchain_qdrant.sparse_embeddings import SparseVector as LangChainSparseVector
from numpy.typing import NDArray

from rag.errors import RagError
from rag.models.embedding import SparseEncoder, index_sentences, pack_sentences
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.sql.conversation_table import ConversationTable
from rag.store.values import NewChunks, content_hash
from rag.types import Chunk, Page, SparseVector

DIMENSION = 16
MODEL = "synthetic"
ENCODER = SparseEncoder()


@dataclass(frozen=True)
class Draft:
    """A page with the input of `Library.draft`."""

    page: Page
    chunks: list[Chunk]
    dense: NDArray[np.float32]
    dense_ok: list[bool]
    sparse: list[SparseVector]

    def commit(self, library: Library, chunker: str = "", claim: str = "") -> Page:
        return library.commit_all([library.draft(self.page, self.new, chunker, claim)])[0].page

    @property
    def new(self) -> NewChunks:
        hashes = [content_hash(chunk.text) for chunk in self.chunks]
        sentences = [pack_sentences(index_sentences(chunk.text, ENCODER), len(chunk.text)) for chunk in self.chunks]
        return NewChunks(self.chunks, self.dense, self.dense_ok, self.sparse, hashes, sentences)


def draft(key: str, *, chunks: int = 4, version: int = 0, site: str = "a.example") -> Draft:
    """Return page `key` in one of its versions; its vectors depend on key and version only."""
    sentences = [f"Sentence {at} of {key}, version {version}." for at in range(chunks)]
    text = " ".join(sentences)
    spans = [(text.index(one), text.index(one) + len(one)) for one in sentences]
    rng = np.random.default_rng(int(hashlib.sha256(f"{key} {version}".encode()).hexdigest()[:8], 16))
    page = Page(
        url=f"https://{site}/{key}",
        url_hash=hashlib.md5(f"https://{site}/{key}".encode(), usedforsecurity=False).hexdigest(),
        title=f"Page {key}",
        language="en",
        site=site,
        text=text,
        text_hash=hashlib.sha256(text.encode()).hexdigest(),
        source="web",
    )
    return Draft(
        page,
        [Chunk(at, text[a:b], a, b, ("Heading",)) for at, (a, b) in enumerate(spans)],
        unit(rng, chunks),
        [True] * chunks,
        [sparse_vector(rng) for _ in range(chunks)],
    )


def unit(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    vectors = rng.standard_normal((rows, DIMENSION)).astype(np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def sparse_vector(rng: np.random.Generator) -> SparseVector:
    indices = sorted(rng.choice(60, size=6, replace=False).tolist())
    return SparseVector(indices, rng.uniform(0.5, 2.0, 6).round(3).tolist())


def open_edge(folder: Path) -> tuple[EdgeClient, Library]:
    client = EdgeClient(folder)
    return client, open_library(client, "main", MODEL, DIMENSION)


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[RagError]]:
    """Expect that the block raises a RagError with this code."""
    with pytest.raises(RagError) as caught:
        yield caught
    assert caught.value.code == code


def point_id(number: int) -> str:
    return str(uuid.UUID(int=number))


class HashEmbeddings(Embeddings):
    """Random embeddings seeded by the text's hash: equal for equal texts, otherwise unrelated."""

    def embed_query(self, text: str) -> list[float]:
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        vector: list[float] = unit(np.random.default_rng(seed), 1)[0].tolist()
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class WordEmbeddings(SparseEmbeddings):
    """Sparse embeddings with one dimension per word, by hash."""

    def embed_query(self, text: str) -> LangChainSparseVector:
        words = {int(hashlib.sha256(word.encode()).hexdigest()[:6], 16) for word in text.lower().split()}
        return LangChainSparseVector(indices=sorted(words), values=[1.0] * len(words))

    def embed_documents(self, texts: list[str]) -> list[LangChainSparseVector]:
        return [self.embed_query(text) for text in texts]


def save_turn(
    table: ConversationTable, conversation_id: str, library: str, owner: str, answer: Mapping[str, Any]
) -> str:
    """Add an answer to a conversation, which the first answer creates; return the turn's id."""
    turn_id = table.begin_turn(conversation_id, library, owner, str(answer.get("question", "")))
    table.finish_turn(turn_id, answer)
    return turn_id
