"""Adapters of the encoders to LangChain's interfaces, for a vector store that wants these."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings
from langchain_qdrant import SparseEmbeddings
from langchain_qdrant.sparse_embeddings import SparseVector

from rag.models.embedding import EmbeddingModel
from rag.models.sparse import SparseEncoder


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
        vectors = self.encoder.encode_passages(texts)
        return [SparseVector(indices=vector.indices, values=vector.values) for vector in vectors]

    def embed_query(self, text: str) -> SparseVector:
        vector = self.encoder.encode_query(text)
        return SparseVector(indices=vector.indices, values=vector.values)
