"""A library's search as LangChain's retriever, by LangChain's own tests."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from rag.errors import StoreError
from rag.retrieval.langchain import LibraryRetriever
from rag.types import Passage, Retrieval


def passage(number: int) -> Passage:
    return Passage(
        f"id{number}", "https://a.example/", "hash", "Title", "a.example", "en", ("Top",), f"text {number}", 3, 9
    )


def search(question: str, k: int) -> Retrieval:
    return Retrieval(question, "mmr", tuple(passage(number) for number in range(k)), (), (), {}, {}, 1.0)


class TestLibraryRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LibraryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"search": search}

    @property
    def retriever_query_example(self) -> str:
        return "What is it?"


class Heard(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_retriever_start(self, *_: Any, **__: Any) -> None:
        self.events.append("start")

    def on_retriever_end(self, documents: Any, **_: Any) -> None:
        self.events.append(f"end {len(documents)}")

    def on_retriever_error(self, error: BaseException, **_: Any) -> None:
        self.events.append(type(error).__name__)


def test_callbacks_hear_of_a_search_and_of_its_failure() -> None:
    def fails(question: str, k: int) -> Retrieval:
        raise StoreError("database_failed", path="x", detail="y")

    heard = Heard()
    LibraryRetriever(search=search, k=2).invoke("q", {"callbacks": [heard]})
    with pytest.raises(StoreError):
        LibraryRetriever(search=fails).invoke("q", {"callbacks": [heard]})
    assert heard.events == ["start", "end 2", "start", "StoreError"]


def test_a_document_says_where_it_stands() -> None:
    (document,) = LibraryRetriever(search=search, k=1).invoke("q")
    assert (document.id, document.page_content) == ("id0", "text 0")
    assert document.metadata == {
        "url": "https://a.example/",
        "title": "Title",
        "section": ["Top"],
        "start": 3,
        "end": 9,
        "score": 0.0,
    }
