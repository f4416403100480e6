"""langchain-qdrant over the embedded engine, by LangChain's own tests for vector stores."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langchain_qdrant import QdrantVectorStore, RetrievalMode
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from qdrant_client import models

from rag.store.qdrant.edge.client import EdgeClient
from tests.store.support import WordEmbeddings


class AnyIds(QdrantVectorStore):
    """A store that accepts any string as an id, as LangChain's tests require (Qdrant: UUIDs), and returns it."""

    def add_texts(self, texts: Any, metadatas: Any = None, ids: Any = None, **kwargs: Any) -> list[Any]:
        ids = [one or uuid.uuid4().hex for one in ids] if ids else [uuid.uuid4().hex for _ in texts]
        named = [
            {**(metadata or {}), "named": one} for metadata, one in zip(metadatas or [{}] * len(ids), ids, strict=True)
        ]
        super().add_texts(texts, named, _uuids(ids), **kwargs)
        return list(ids)

    def delete(self, ids: Any = None, **kwargs: Any) -> bool | None:
        return super().delete(_uuids(ids), **kwargs)

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        return super().get_by_ids(_uuids(ids))

    @classmethod
    def _document_from_point(cls, *args: Any) -> Document:
        metadata = super()._document_from_point(*args).metadata
        text = args[0].payload["page_content"]
        own = {key: value for key, value in metadata.items() if key not in ("_id", "_collection_name", "named")}
        return Document(id=metadata["named"], page_content=text, metadata=own)


def _uuids(ids: Sequence[str]) -> list[str]:
    return [str(uuid.uuid5(uuid.NAMESPACE_OID, one)) for one in ids]


class _OverTheEngine(VectorStoreIntegrationTests):
    mode: RetrievalMode

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        client = EdgeClient(tmp_path)
        client.create_collection(
            "c",
            vectors_config={"dense": models.VectorParams(size=6, distance=models.Distance.COSINE)},
            sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        yield AnyIds(
            client,
            "c",
            self.get_embeddings(),
            retrieval_mode=self.mode,
            vector_name="dense",
            sparse_embedding=WordEmbeddings(),
            sparse_vector_name="sparse",
        )
        client.close()


class TestDense(_OverTheEngine):
    mode = RetrievalMode.DENSE


class TestHybrid(_OverTheEngine):
    mode = RetrievalMode.HYBRID


del _OverTheEngine
