"""A read-only langchain-qdrant vector store over a library's chunks."""

from __future__ import annotations

from typing import Any, NoReturn

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore, RetrievalMode, SparseEmbeddings
from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.qdrant.records import DENSE, SPARSE, active_chunks


class LibraryVectorStore(QdrantVectorStore):
    """A store that returns only active chunks and rejects writes, which would bypass the pages' records."""

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: models.Filter | None = None,  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        return super().similarity_search_with_score(query, k, active_chunks(filter), *args, **kwargs)

    def similarity_search_with_score_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: models.Filter | None = None,  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        return super().similarity_search_with_score_by_vector(embedding, k, active_chunks(filter), *args, **kwargs)

    def max_marginal_relevance_search_with_score_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: models.Filter | None = None,  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Search by MMR on the dense vector. `lambda_mult` ranges from 0 (diversity only) to 1 (relevance only).

        The base class passes `lambda_mult` on as Qdrant's `diversity`, which has the opposite meaning.
        """
        return super().max_marginal_relevance_search_with_score_by_vector(
            embedding, k, fetch_k, 1.0 - lambda_mult, active_chunks(filter), *args, **kwargs
        )

    def add_texts(self, *_: Any, **__: Any) -> NoReturn:
        raise StoreError("vector_store_read_only")

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise StoreError("vector_store_read_only")


def library_vector_store(
    client: QdrantClient, collection: str, embeddings: Embeddings | None = None, sparse: SparseEmbeddings | None = None
) -> LibraryVectorStore:
    """Return a store for dense or, with `sparse`, hybrid retrieval; without `embeddings`, for search by vector only."""
    return LibraryVectorStore(
        client=client,
        collection_name=collection,
        embedding=embeddings,
        retrieval_mode=RetrievalMode.HYBRID if sparse else RetrievalMode.DENSE,
        vector_name=DENSE,
        sparse_embedding=sparse,
        sparse_vector_name=SPARSE,
        validate_embeddings=embeddings is not None,
        validate_collection_config=False,  # would embed a text only to learn the dimension
    )
