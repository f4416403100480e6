"""A Pagelight library in your own LangChain program.

    PYTHONPATH=. .venv/bin/python examples/langchain_program.py "What does the Team plan cost?"

Reads the library in .env (RAG_DATA_DIR, RAG_LIBRARY). While the app has an embedded library open, nobody else can open
it: stop the app first, or use a Qdrant server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag.app import App
from rag.config import load_settings


def as_prompt(inputs: dict[str, object]) -> str:
    """Return the prompt to send to your model."""
    documents = inputs["context"]
    assert isinstance(documents, list)
    return f"{list_documents(documents)}\n\nAnswer from these passages, and cite their numbers: {inputs['question']}"


def list_documents(documents: list[Document]) -> str:
    rows = (f"[{n}] {one.metadata['title']}: {one.page_content}" for n, one in enumerate(documents, 1))
    return "\n\n".join(rows)


def run(app: App, library: str, question: str) -> Iterator[str]:
    """Yield the prompt from the app's own search, then the chunks from the vector store's MMR."""
    chain = {"context": app.as_retriever(library, k=4), "question": RunnablePassthrough()} | RunnableLambda(as_prompt)
    yield chain.invoke(question)
    # Qdrant's own search, without the app's additions:
    for document in app.vector_store(library).max_marginal_relevance_search(question, k=3, fetch_k=20):
        yield f"{document.metadata['url']}: {document.page_content[:80]}"


def main() -> None:
    settings = load_settings()
    app = App(settings)
    for part in run(app, settings.rag_library, " ".join(sys.argv[1:]) or "What does the Team plan cost?"):
        print(part)
    app.close()


if __name__ == "__main__":
    main()
