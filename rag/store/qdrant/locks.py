"""Locks between the threads of one process; `commit` handles other processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, RLock
from weakref import WeakKeyDictionary
from zlib import crc32

from qdrant_client import QdrantClient

_STRIPES = 64


class Switch:
    """A lock that one thread may take again, and that counts in `changes` how often it was taken and given back."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._inside = 0
        self._failed = False
        self.changes = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._inside += 1
        self.changes += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._failed = self._failed or error is not None
        self.changes += 1
        self._inside -= 1
        self._lock.release()

    def calm(self) -> int | None:
        """A number that stays the same until something changes; None while something does, or once that has failed."""
        return None if self._inside or self._failed else self.changes


class LibraryLocks:
    """`pages` keeps two writers off one page; `switch` covers the instant in which a page changes over.

    `notes` covers that in which a page's record takes in what its site says of it, which no chunk shows.
    """

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.switch = Switch()
        self.notes = Switch()

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
