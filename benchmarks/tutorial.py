"""The pipeline of tutorials with the built-in model: PAGES.jsonl FOLDER [QUESTIONS.jsonl RUN.jsonl].

Prints the seconds from models loaded to stored. With questions it answers them by MMR, ten passages of twenty, as
tutorials do, and writes the run (see `benchmarks/peers`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")


def main(pages: str, folder: str, questions: str = "", run: str = "") -> None:
    from FlagEmbedding import FlagModel
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_experimental.text_splitter import SemanticChunker
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    from rag.models.model_files import BUILTIN, family_of, find_model

    source = find_model(BUILTIN)
    family = family_of(source.origin, source.folder)
    flag = FlagModel(str(source.folder), pooling_method=family.pooling, use_fp16=False, devices="cpu")
    flag.model.float()  # the files are in bfloat16

    encoded_texts: list[str] = []

    class Stock(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            encoded_texts.extend(texts)
            return flag.encode([family.passage + text for text in texts]).tolist()

        def embed_query(self, text: str) -> list[float]:
            return flag.encode([family.query + text])[0].tolist()

    stock = Stock()
    size = len(stock.embed_query("warm up"))
    client = QdrantClient(path=folder)
    client.create_collection("pages", models.VectorParams(size=size, distance=models.Distance.COSINE))
    store = QdrantVectorStore(client=client, collection_name="pages", embedding=stock)
    splitter = SemanticChunker(stock)
    rows = [json.loads(line) for line in Path(pages).read_text(encoding="utf-8").splitlines()]
    began = time.perf_counter()
    chunks = 0
    for row in rows:
        digest = hashlib.md5(row["url"].encode(), usedforsecurity=False).hexdigest()
        same = models.FieldCondition(key="metadata.url_hash", match=models.MatchValue(value=digest))
        if client.scroll("pages", models.Filter(must=[same]), limit=1)[0]:
            continue
        page = Document(row["text"], metadata={"url": row["url"], "url_hash": digest})
        documents = splitter.split_documents([page])
        store.add_documents(documents)
        chunks += len(documents)
    report = {"stored_s": time.perf_counter() - began, "pages": len(rows), "chunks": chunks}
    print(json.dumps({**report, **(_ask(store, encoded_texts, questions, run) if questions else {})}))


def _ask(store: Any, encoded: list[str], questions: str, run: str) -> dict[str, float]:
    from benchmarks import tokens
    from benchmarks.peers import rows

    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 10, "fetch_k": 20, "lambda_mult": 0.7})

    def find(question: str) -> list[rows.Hit]:
        return [(document.metadata["url"], document.page_content) for document in retriever.invoke(question)]

    return {"encoded": tokens.count(encoded, tokens.MAX_TOKENS), "ms": rows.answer(rows.read(questions), run, find)}


if __name__ == "__main__":
    main(*sys.argv[1:3])
