"""The locks of one library, shared by every `Library` object over the same client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, RLock
from weakref import WeakKeyDictionary
from zlib import crc32

from qdrant_client import QdrantClient

_STRIPES = 64


class Switch:
    """A lock that one thread may take again, and that counts how often it was taken in `changes`."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.changes = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.changes += 1

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class LibraryLocks:
    """`page` keeps two writers off one page; `switch` covers the instant in which a page changes over."""

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.switch = Switch()

    @contextmanager
    def pages(self, url_hashes: Iterable[str]) -> Iterator[None]:
        """Hold the locks of these pages. Always in the same order, so that no two holders wait in a ring."""
        wanted = sorted({crc32(one.encode()) % _STRIPES for one in url_hashes})
        with ExitStack() as stack:
            for stripe in wanted:
                stack.enter_context(self._stripes[stripe])
            yield

    @contextmanager
    def everything(self) -> Iterator[None]:
        with ExitStack() as stack:
            for stripe in self._stripes:
                stack.enter_context(stripe)
            stack.enter_context(self.switch)
            yield


_registry: WeakKeyDictionary[QdrantClient, dict[str, LibraryLocks]] = WeakKeyDictionary()
_registering = Lock()


def library_locks(client: QdrantClient, library: str) -> LibraryLocks:
    with _registering:
        return _registry.setdefault(client, {}).setdefault(library, LibraryLocks())
