"""Every error that can reach a person.

RagError
├── ConfigError        a setting is wrong
├── StoreError         the database cannot do what was asked
│   ├── StoreAwayError     the server of the database does not answer, which may pass
│   ├── StoreBusyError     another process has the embedded folder open
│   └── ModelMismatchError the library was made with another embedding model
├── ModelError         an embedding or chat model cannot be loaded or does not answer
├── ToolError          a tool of a conversation cannot do what it was called for
├── WebSearchError     a search service of the open web does not answer as it should
└── IngestError        one source cannot become a page; the others go on
    └── FetchError         its address cannot be fetched

An error carries a code of `rag.locales` and the values for its sentence, so that the command line
says it in English and the pages in the reader's language. Details for the log go into `__cause__`.
"""

from __future__ import annotations

from typing import Any

from rag.locales import say
from rag.types import Notice


class RagError(Exception):
    """An expected failure, with one sentence for the person who meets it."""

    def __init__(self, code: str, **params: Any) -> None:
        self.notice = Notice(code, params)
        super().__init__(say(self.notice, "en"))

    @property
    def code(self) -> str:
        return self.notice.code


class ConfigError(RagError):
    """A setting is wrong; the sentence names it."""


class StoreError(RagError):
    """The database cannot do what was asked."""


class LibraryMovedError(StoreError):
    """A write with the vectors of a model from which another process, or thread, has moved the library since."""


class StoreAwayError(StoreError):
    """The server of the database does not answer, or takes nothing for now; the same call may do later."""


class StoreBusyError(StoreError):
    """Another process has the embedded database open."""


class ModelMismatchError(StoreError):
    """The library was made with another embedding model."""


class ModelError(RagError):
    """An embedding or chat model cannot be loaded, or does not answer."""


class ToolError(RagError):
    """A tool of a conversation cannot do what it was called for."""


class WebSearchError(RagError):
    """A search service of the open web does not answer as it should."""


class IngestError(RagError):
    """One source cannot become a page; nothing of it is stored."""


class FetchError(IngestError):
    """An address cannot be fetched."""
