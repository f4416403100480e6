"""Errors that users may see.

An error has a code of `rag.locales` and the parameters of its message, which the command line shows in English and the
app in the user's language. `__cause__` has the details for the log.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from rag.locales import say
from rag.types import Notice


class RagError(Exception):
    """An expected failure with a message for the user."""

    def __init__(self, code: str, **params: Any) -> None:
        self.notice = Notice(code, params)
        super().__init__(say(self.notice, "en"))

    @property
    def code(self) -> str:
        return self.notice.code


class ConfigError(RagError):
    """A setting is invalid; the message names it."""


class StoreError(RagError):
    """A database operation failed."""


class LibraryMovedError(StoreError):
    """The library has moved to another model, so vectors of the old model cannot be written."""


class StoreUnavailableError(StoreError):
    """The database server does not respond or temporarily rejects requests; a retry may work."""


class StoreBusyError(StoreError):
    """Another process has the embedded database open."""


class ModelMismatchError(StoreError):
    """The library uses another embedding model."""


class ModelError(RagError):
    """An embedding or chat model cannot be loaded, or does not respond."""


class ToolError(RagError):
    """A tool call in a conversation failed."""


class WebSearchError(RagError):
    """A web search service does not respond, or its response is invalid."""


class IngestError(RagError):
    """A source cannot be imported: nothing from it is stored, and the others continue."""


class FetchError(IngestError):
    """A URL cannot be fetched."""


def os_fault(path: Path, error: OSError) -> StoreError:
    """Return the error for a failed file operation under `path`."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return StoreError("store_disk_full", path=str(path))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError("store_unwritable", path=str(path))
    return StoreError("store_damaged", path=str(path), detail=error.strerror or type(error).__name__)
