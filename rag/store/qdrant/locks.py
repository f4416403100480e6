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
    """A reentrant lock; `changes` counts how often it was acquired and released."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self._failed = False
        self.changes = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        self.changes += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._failed = self._failed or error is not None
        self.changes += 1
        self._depth -= 1
        self._lock.release()

    def snapshot(self) -> int | None:
        """Return a number that stays the same until a change; None during a change, or after a failed one."""
        return None if self._depth or self._failed else self.changes


class LibraryLocks:
    """Locks of one library: `lock_pages` prevents two writers of one page, `switch` covers the replacement of pages.

    `notes` covers updates of a record that no chunk shows.
    """

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.switch = Switch()
        self.notes = Switch()

    @contextmanager
    def lock_pages(self, url_hashes: Iterable[str]) -> Iterator[None]:
        """Lock these pages for the block, always in the same order, so that threads cannot deadlock."""
        stripes = sorted({crc32(url_hash.encode()) % _STRIPES for url_hash in url_hashes})
        with ExitStack() as stack:
            for stripe in stripes:
                stack.enter_context(self._stripes[stripe])
            yield

    @contextmanager
    def lock_all(self) -> Iterator[None]:
        with ExitStack() as stack:
            for stripe in self._stripes:
                stack.enter_context(stripe)
            stack.enter_context(self.switch)
            yield


_registry: WeakKeyDictionary[QdrantClient, dict[str, LibraryLocks]] = WeakKeyDictionary()
_registry_lock = Lock()


def library_locks(client: QdrantClient, library: str) -> LibraryLocks:
    with _registry_lock:
        return _registry.setdefault(client, {}).setdefault(library, LibraryLocks())
