"""LangChain's BM25Retriever with its defaults, which splits words at spaces: PAGES QUESTIONS RUN K."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.peers import rows


def main(pages: str, questions: str, run: str, k: str) -> None:
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=150)
    documents = [Document(page["text"], metadata={"url": page["url"]}) for page in rows.read(pages)]
    began = time.perf_counter()
    chunks = splitter.split_documents(documents)
    retriever = BM25Retriever.from_documents(chunks, k=int(k))
    stored = time.perf_counter() - began

    def find(question: str) -> list[rows.Hit]:
        return [(found.metadata["url"], found.page_content) for found in retriever.invoke(question)]

    ms = rows.answer(rows.read(questions), run, find)
    print(json.dumps({"stored_s": stored, "chunks": len(chunks), "ms": ms, "encoded": 0}))


if __name__ == "__main__":
    rows.quiet()
    main(*sys.argv[1:5])
