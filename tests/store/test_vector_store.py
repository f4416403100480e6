"""LangChain's view of a library."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.documents import Document

from rag.errors import StoreError
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import chunk_id
from rag.types import SparseVector
from tests.store.support import Draft, HashEmbeddings, WordEmbeddings, draft


@pytest.fixture
def given(library: Library) -> Draft:
    """Return a page whose vectors are those of the two embeddings below."""
    plain = draft("a", chunks=25)
    texts = [chunk.text for chunk in plain.chunks]
    sparse = [SparseVector(list(v.indices), list(v.values)) for v in WordEmbeddings().embed_documents(texts)]
    dense = np.array(HashEmbeddings().embed_documents(texts), dtype=np.float32)
    made = Draft(plain.page, plain.chunks, dense, plain.dense_ok, sparse)
    made.commit(library)
    return made


def test_mmr_is_relevance_with_lambda_one_and_diversity_with_zero(library: Library, given: Draft) -> None:
    store = library.vector_store(HashEmbeddings())
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 10, "fetch_k": 20, "lambda_mult": 0.7})
    found = retriever.invoke(given.chunks[7].text)
    assert len({document.page_content for document in found}) == 10
    assert found[0].page_content == given.chunks[7].text
    assert found[0].metadata["url"] == given.page.url
    assert found[0].metadata["section"] == ["Heading"]
    query = given.chunks[3].text
    nearest = [document.page_content for document in store.similarity_search(query, k=6)]

    def picked(lambda_mult: float) -> list[str]:
        found = store.max_marginal_relevance_search(query, k=6, fetch_k=25, lambda_mult=lambda_mult)
        return [document.page_content for document in found]

    assert picked(1.0) == nearest
    assert picked(0.0) != nearest


def test_only_active_chunks_are_seen(library: Library, given: Draft) -> None:
    stored = library.page(given.page.url_hash)
    assert stored is not None
    hidden = chunk_id(stored.url_hash, stored.generation, 4)
    library.client.set_payload(library.chunks_collection, {"active": False}, points=[hidden], key="metadata")
    store = library.vector_store(HashEmbeddings(), WordEmbeddings())
    text = given.chunks[4].text
    vector = HashEmbeddings().embed_query(text)
    for found in (
        store.similarity_search(text, k=25),
        store.similarity_search_by_vector(vector, k=25),
        store.max_marginal_relevance_search(text, k=25, fetch_k=25),
    ):
        assert len(found) == 24
        assert text not in {document.page_content for document in found}


def test_it_does_not_write(library: Library, given: Draft) -> None:
    store = library.vector_store(HashEmbeddings())
    with pytest.raises(StoreError, match="read-only"):
        store.add_documents([Document(page_content="x")])
    with pytest.raises(StoreError, match="read-only"):
        store.delete(["x"])
    assert library.chunk_count() == 25
