"""llama-index with its defaults and the built-in model: PAGES QUESTIONS RUN K [TOKENS A CHUNK].

sentence-transformers loads the weights, as in llama-index's HuggingFaceEmbedding.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks import tokens
from benchmarks.peers import rows


def main(pages: str, questions: str, run: str, k: str, size: str = "") -> None:
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.node_parser import SentenceSplitter

    embedding = _embedding()
    embedding.get_text_embedding("warm up")
    embedding.seen.clear()
    splitter = SentenceSplitter(chunk_size=int(size), chunk_overlap=int(size) // 8) if size else SentenceSplitter()
    documents = [
        Document(text=page["text"], id_=page["url"], metadata={"title": page.get("title", "")})
        for page in rows.read(pages)
    ]
    began = time.perf_counter()
    nodes = splitter.get_nodes_from_documents(documents)
    retriever = VectorStoreIndex(nodes, embed_model=embedding).as_retriever(similarity_top_k=int(k))
    stored = time.perf_counter() - began

    def find(question: str) -> list[rows.Hit]:
        return [(found.node.ref_doc_id or "", found.node.get_content()) for found in retriever.retrieve(question)]

    ms = rows.answer(rows.read(questions), run, find)
    encoded = tokens.count(embedding.seen, tokens.MAX_TOKENS)
    print(json.dumps({"stored_s": stored, "chunks": len(nodes), "ms": ms, "encoded": encoded}))


def _embedding() -> Any:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from pydantic import PrivateAttr
    from sentence_transformers import SentenceTransformer

    from rag.models.model_files import BUILTIN, family_of, find_model

    source = find_model(BUILTIN)
    family = family_of(source.origin, source.folder)
    model = SentenceTransformer(str(source.folder), device="cpu", model_kwargs={"dtype": "float32"})

    def _encode(prefix: str, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = model.encode([prefix + text for text in texts], normalize_embeddings=True).tolist()
        return vectors

    class Adapter(BaseEmbedding):
        """An embedding that records its texts, so that their tokens are counted after the timing."""

        _seen: list[str] = PrivateAttr(default_factory=list)

        @property
        def seen(self) -> list[str]:
            return self._seen

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            self._seen.extend(texts)
            return _encode(family.passage, texts)

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return _encode(family.query, [query])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return Adapter()


if __name__ == "__main__":
    rows.quiet()
    main(*sys.argv[1:6])
