"""A library's search as a LangChain retriever, for programs that use LangChain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from rag.types import Passage, Retrieval


class LibraryRetriever(BaseRetriever):
    """A retriever with the results of a question in the app: up to `k` passages, best first.

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
