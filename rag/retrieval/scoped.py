"""A search confined to what a person chose beside the question and to what the question itself names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rag.retrieval.filters import Filters
from rag.retrieval.retriever import Retriever
from rag.retrieval.scope import Scope, may_name_scope, read_scope
from rag.types import Page, Passage, Retrieval


class ScopedSearch:
    """Searches one library for one question and for the queries that are made of it.

    The retriever is made at each search, so that a run begins before the models are loaded; `pages` lists
    the library and is asked only when a question has the form that names some.
    """

    def __init__(
        self,
        make: Callable[[], Retriever],
        pages: Callable[[], Sequence[Page]],
        question: str,
        *,
        filters: Filters | None = None,
        **options: Any,
    ) -> None:
        self._make = make
        self._pages = pages
        self._question = question
        self._filters = filters or Filters()
        self._options = options

    def search(self, question: str, before: Sequence[str] = ()) -> Retrieval:
        """Search for the question, or for a query made of it, without the words that name the scope.

        `before` are the questions that it follows on.

        Where the scope that the question names holds nothing, everything is searched, and the notes say so.
        """
        scope = self._scope(question)
        found = self._find(scope.question, self._filters.within(scope.filters), before)
        if not scope.names:
            return found
        names = ", ".join(scope.names)
        if found.passages:
            return _noted(found, "scope_named", names)
        return _noted(self._find(question, self._filters, before), "scope_empty", names)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return self._make().passages(ids)

    def _find(self, question: str, filters: Filters, before: Sequence[str]) -> Retrieval:
        return self._make().search(question, filters=filters, before=before, **self._options)

    def _scope(self, question: str) -> Scope:
        """What the query names; a query that lost it in rewriting keeps what the question named."""
        if not may_name_scope(question) and not may_name_scope(self._question):
            return Scope(question, Filters(), ())
        pages = self._pages()
        own = read_scope(question, pages)
        return own if own.names else read_scope(self._question, pages)._replace(question=question)


def _noted(found: Retrieval, code: str, names: str) -> Retrieval:
    return replace(found, notes={**found.notes, "scope": {"code": code, "params": {"names": names}}})
