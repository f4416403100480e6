"""Adapters of the encoders and of a library's search to LangChain's interfaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_qdrant import SparseEmbeddings
from langchain_qdrant.sparse_embeddings import SparseVector

from rag.models.embedding import EmbeddingModel, SparseEncoder
from rag.types import Passage, Retrieval


class LibraryRetriever(BaseRetriever):
    """A retriever that returns what the app finds for a question: up to `k` passages, best first.

    `search` takes the question and `k`; its exceptions (StoreError, ModelError) reach `on_retriever_error` and the
    caller. `k` may also be passed to `invoke`.
    """

    search: Callable[[str, int], Retrieval]
    k: int = 10

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **_: Any
    ) -> list[Document]:
        result = self.search(query, self.k if k is None else k)
        return [as_document(passage) for passage in result.passages]


def as_document(passage: Passage) -> Document:
    """Convert a passage; `start` and `end` index its page's text, in code points."""
    return Document(
        id=passage.id,
        page_content=passage.text,
        metadata={
            "url": passage.url,
            "title": passage.title,
            "section": list(passage.section),
            "start": passage.start,
            "end": passage.end,
            "score": passage.score,
        },
    )


class ModelEmbeddings(Embeddings):
    """An EmbeddingModel as LangChain's Embeddings."""

    def __init__(self, model: EmbeddingModel) -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.model.encode_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.model.encode_query(text).tolist()
        return vector


class Bm25Embeddings(SparseEmbeddings):
    """A SparseEncoder as langchain-qdrant's SparseEmbeddings."""

    def __init__(self, encoder: SparseEncoder) -> None:
        self.encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[SparseVector]:
        vectors = map(self.encoder.encode_passage, texts)
        return [SparseVector(indices=vector.indices, values=vector.values) for vector in vectors]

    def embed_query(self, text: str) -> SparseVector:
        vector = self.encoder.encode_query(text)
        return SparseVector(indices=vector.indices, values=vector.values)
