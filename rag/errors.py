"""Every error that a user may see.

RagError
├── ConfigError        a setting is wrong
├── StoreError         a database operation failed
│   ├── StoreAwayError     the database server does not answer; a retry may work
│   ├── StoreBusyError     another process has the embedded folder open
│   └── ModelMismatchError the library was made with another embedding model
├── ModelError         an embedding or chat model cannot be loaded or does not answer
├── ToolError          a tool call in a conversation failed
├── WebSearchError     a web search service does not answer properly
└── IngestError        one source cannot become a page; the others continue
    └── FetchError         its URL cannot be fetched

An error carries a code of `rag.locales` and the values for its sentence, so that the command line
shows it in English and the app in the user's language. Details for the log are in `__cause__`.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from rag.locales import say
from rag.types import Notice


class RagError(Exception):
    """An expected failure, with one sentence for the user."""

    def __init__(self, code: str, **params: Any) -> None:
        self.notice = Notice(code, params)
        super().__init__(say(self.notice, "en"))

    @property
    def code(self) -> str:
        return self.notice.code


class ConfigError(RagError):
    """A setting is wrong; the sentence names it."""


class StoreError(RagError):
    """A database operation failed."""


class LibraryMovedError(StoreError):
    """The library has since moved to another model, so vectors of the old one cannot be written."""


class StoreAwayError(StoreError):
    """The database server does not answer or rejects requests for now; the same call may work later."""


class StoreBusyError(StoreError):
    """Another process has the embedded database open."""


class ModelMismatchError(StoreError):
    """The library was made with another embedding model."""


class ModelError(RagError):
    """An embedding or chat model cannot be loaded, or does not answer."""


class ToolError(RagError):
    """A tool call in a conversation failed."""


class WebSearchError(RagError):
    """A web search service does not answer properly."""


class IngestError(RagError):
    """One source cannot become a page; nothing of it is stored."""


class FetchError(IngestError):
    """A URL cannot be fetched."""


def os_fault(path: Path, error: OSError) -> StoreError:
    """Return the error for a failed file operation under `path`."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return StoreError("store_disk_full", path=str(path))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError("store_unwritable", path=str(path))
    return StoreError("store_damaged", path=str(path), detail=error.strerror or type(error).__name__)
