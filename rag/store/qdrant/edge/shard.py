"""A collection on disk, recovered after a crash, and its open shard, which threads share.

    <root>/<name>/collection.json   its parameters
    <root>/<name>/current.json      name of the live shard's folder, and the number of points in its index
    <root>/<name>/shard-<random>/   the live shard; any other one is left over from an interrupted build

Replacing `current.json` is the only step that makes another shard live, so the process may be killed at any time. The
HNSW index is built on a copy, in a child process.

Only one process at a time can use the folder. The engine locks a collection only while opening it, so a lock file
guards the whole folder; the system releases the lock when the process ends for any reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Lock, RLock, Thread
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import qdrant_edge as edge

from rag.errors import StoreBusyError, StoreError, os_fault
from rag.store.qdrant.edge.translation import (
    TO_ADD,
    TO_CHANGE,
    CollectionParams,
    disk_faults,
    disk_use,
    engine_faults,
    from_id,
    layout,
    require_space,
)
from rag.store.values import batches

log = logging.getLogger(__name__)


_BLOCK = 1 << 20
_BY_POINT = frozenset({"payload_storage", "vector_storage-sparse"})  # random access, for requested points only
_MAX_READ_AHEAD = 256 << 20  # bytes; larger folders of _BY_POINT are not read ahead


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder to a new path. Raises OSError."""
    for folder, _, names in os.walk(source):
        target_folder = target / Path(folder).relative_to(source)
        target_folder.mkdir(parents=True)
        for name in names:
            copy_file(Path(folder) / name, target_folder / name)


def sync_folder(folder: Path) -> None:
    """Flush a folder's files and directory entries to disk, so that they survive a power cut."""
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError), (Path(path) / name).open("rb+") as file:
                os.fsync(file.fileno())
        sync_names(Path(path))


def sync_names(folder: Path) -> None:
    """Flush a folder's directory entries to disk, if supported: Windows and some network drives cannot."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_ahead(folder: Path, *, payloads: bool) -> None:
    """Load the files that the engine needs to open and query a shard into the page cache.

    `payloads` includes the payloads of its points, unless they are large: a search reads those of its hits only. Unlike
    the engine, this releases the GIL, and reads from disk eight times as fast: records of 10 000 pages load in
    0.33 s instead of 1.07 s. Cached data is skipped. Unreadable files are ignored here; the engine reports them.
    """
    buffer = bytearray(_BLOCK)
    for path, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name != "wal"
            and (name not in _BY_POINT or (payloads and disk_use(Path(path) / name) <= _MAX_READ_AHEAD))
        ]
        for name in names:
            with contextlib.suppress(OSError), (Path(path) / name).open("rb", buffering=0) as file:
                for start, end in _data_spans(file.fileno(), os.fstat(file.fileno()).st_size):
                    if _is_cached(file.fileno(), start, end):
                        continue
                    file.seek(start)
                    while file.tell() < end and file.readinto(buffer):
                        pass


def _is_cached(file: int, start: int, end: int) -> bool:
    """Return whether the first byte of each megabyte is in the page cache; False if the system cannot tell."""
    if not hasattr(os, "RWF_NOWAIT"):
        return False
    byte = bytearray(1)
    try:
        return all(os.preadv(file, [byte], position, os.RWF_NOWAIT) for position in range(start, end, _BLOCK))
    except OSError:  # reading would block
        return False


def copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        for start, end in _data_spans(reader.fileno(), size):
            reader.seek(start)
            writer.seek(start)
            while start < end and (block := reader.read(min(_BLOCK, end - start))):
                writer.write(block)
                start += len(block)
        writer.truncate(size)


def _data_spans(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a sparse file that are not holes; the whole file if the system cannot tell."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    position = 0
    while position < size:
        try:
            start = os.lseek(file, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            yield position, size
            return
        position = os.lseek(file, start, os.SEEK_HOLE)
        yield start, position


_PARAMS = "collection.json"
_CURRENT = "current.json"
_NEW_PREFIX = ".new-"
_DELETED_PREFIX = ".gone-"
_TEMPORARY = "temp_segments"  # leftovers of a killed optimize()
_LOCK_FILE = "in-use.lock"


def collection_names(root: Path) -> list[str]:
    paths = [path for path in root.iterdir() if (path / _PARAMS).is_file() and not path.name.startswith(".")]
    return sorted(unquote(path.name) for path in paths)


def clear_leftovers(root: Path) -> None:
    """Delete collections that were only partly created or deleted when the process ended."""
    for path in [*root.glob(f"{_NEW_PREFIX}*"), *root.glob(f"{_DELETED_PREFIX}*")]:
        shutil.rmtree(path, ignore_errors=True)


class CollectionFolder:
    """One collection's folder. `shard` is the live shard, `indexed` the number of points in its index."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / _file_name(name)
        try:
            self.params = CollectionParams.from_json((self.path / _PARAMS).read_text("utf-8"))
            current = json.loads((self.path / _CURRENT).read_text("utf-8"))
            self.shard = self.path / str(current["shard"])
            self.indexed = int(current["indexed"])
        except (OSError, ValueError, KeyError) as error:
            raise StoreError("store_damaged", path=str(self.path), detail=str(error)) from error
        unused = [path for path in self.path.glob("shard-*") if path != self.shard]
        for path in (*unused, self.shard / _TEMPORARY, self.shard / "segments" / _TEMPORARY):
            shutil.rmtree(path, ignore_errors=True)

    @classmethod
    def create(cls, root: Path, name: str, params: CollectionParams) -> CollectionFolder:
        """Create the folder and its empty shard, atomically."""
        require_space(root, TO_ADD)
        draft = root / f"{_NEW_PREFIX}{uuid.uuid4().hex}"
        shard = draft / _shard_name()
        try:
            with disk_faults(root):
                shard.mkdir(parents=True)
                with engine_faults("create_collection", shard):
                    edge.EdgeShard.create(str(shard), params.engine_config()).close()
                _write_file(draft / _PARAMS, params.to_json())
                _write_file(draft / _CURRENT, json.dumps({"shard": shard.name, "indexed": 0}))
                draft.rename(root / _file_name(name))
                sync_names(root)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return cls(root, name)

    def make_current(self, shard: Path, indexed: int) -> None:
        """Make `shard` the live one, atomically."""
        with disk_faults(self.path):
            _write_file(self.path / _CURRENT, json.dumps({"shard": shard.name, "indexed": indexed}))
        self.shard, self.indexed = shard, indexed

    def remove(self) -> None:
        trash = self.path.with_name(f"{_DELETED_PREFIX}{uuid.uuid4().hex}")
        with disk_faults(self.path):
            self.path.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def _file_name(collection: str) -> str:
    quoted = quote(collection, safe="")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def _shard_name() -> str:
    return f"shard-{uuid.uuid4().hex[:12]}"


def _write_file(path: Path, text: str) -> None:
    """Write a small file atomically, even in case of a power cut."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_names(path.parent)


def lock_folder(folder: Path) -> int:
    """Lock the folder; return the descriptor of the lock file, whose closing unlocks it.

    Raises StoreBusyError if another process has locked it, StoreError if the folder is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError("store_unwritable", path=str(folder)) from error
    try:
        _lock(file)
    except OSError as error:
        os.close(file)
        raise StoreBusyError("store_busy", path=str(folder)) from error
    return file


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


T = TypeVar("T")
_FLUSH_EVERY = 400  # writes; a flush blocks for 20-40 ms, and shortens the replay after a kill
_REPLAY_BATCH = 128  # points per call; the engine holds the GIL for a whole call
_GHOST_SHARE = 0.005  # of the points; this share changes the third digit of a score


class _Journal:
    """The writes since a shard was copied: ids of changed points, and operations by a filter.

    The points themselves would take as much memory again as in the engine.
    """

    def __init__(self) -> None:
        self._operations: list[edge.UpdateOperation] = []
        self._ids: dict[int | str, None] = {}

    def add(self, operation: edge.UpdateOperation, ids: Sequence[Any] | None) -> None:
        if ids is None:
            self._operations.append(operation)
        else:
            self._ids.update((from_id(point_id), None) for point_id in ids)

    def replay(self, source: edge.EdgeShard, copy: edge.EdgeShard) -> None:
        """Give the copy the state of `source`.

        A filter chooses the same among the points that were not written by id; all others are then copied.
        """
        for operation in self._operations:
            copy.update(operation)
        ids: list[Any] = list(self._ids)
        for batch in batches(ids, _REPLAY_BATCH):
            records = source.retrieve(batch, True, True)
            points = [edge.Point(record.id, record.vector or {}, record.payload) for record in records]
            copy.update(edge.UpdateOperation.upsert_points(points))
            if removed := set(batch) - {from_id(record.id) for record in records}:
                copy.update(edge.UpdateOperation.delete_points(list(removed)))


class Shard:
    """Reads and writes of one collection.

    The engine serialises its calls (it holds the GIL), so the two locks only separate them from a replacement:
    `_write_lock` blocks writers while files are copied and the journal is replayed; `_engine_lock` is held for one call
    or for the replacement itself. An idle shard has no engine; the next call loads one.
    """

    def __init__(self, folder: CollectionFolder) -> None:
        self.folder = folder
        self._write_lock = RLock()
        self._engine_lock = RLock()
        self._journal: _Journal | None = None
        self._unflushed = 0
        self._closed = False
        self._used_at = 0.0
        self._counted_points = 0
        self._has_ghosts: bool | None = False
        self._shard: edge.EdgeShard | None = None
        with self._engine_lock:
            self._get_engine()

    def read(self, call: str, function: Callable[[edge.EdgeShard], T]) -> T:
        """Run one read-only call; `call` names it in errors."""
        with self._engine_lock, engine_faults(call, self.folder.path):
            return function(self._get_engine())

    def write(
        self, call: str, operation: edge.UpdateOperation, *, ids: Sequence[Any] | None = None, points: int = 0
    ) -> None:
        """Apply one operation, which adds `points` points; it is crash-safe once this returns.

        `ids` are those of all points that it may change, None if it has a filter or is of the whole collection.
        """
        require_space(self.folder.path, TO_ADD if points else TO_CHANGE)
        with self._write_lock:
            with self._engine_lock, engine_faults(call, self.folder.path):
                self._get_engine().update(operation)
                self._counted_points += points
                self._has_ghosts = None
            if self._journal is not None:
                self._journal.add(operation, ids)
            self._unflushed += 1
            if self._unflushed >= _FLUSH_EVERY:
                self.flush()

    def flush(self) -> None:
        with self._engine_lock, engine_faults("flush", self.folder.path):
            self._get_engine().flush()
            self._unflushed = 0

    def points(self) -> int:
        return self.read("count", lambda shard: shard.info().points_count)

    def has_ghosts(self) -> bool:
        """Return whether the engine counts many deleted points, as it does until the shard is reopened."""
        if self._has_ghosts is None:
            self._has_ghosts = self.read("count", self._count_ghosts)
        return self._has_ghosts

    def _count_ghosts(self, shard: edge.EdgeShard) -> bool:
        existing = shard.info().points_count
        return self._counted_points - existing > _GHOST_SHARE * existing

    def start_copy(self) -> tuple[Path, int]:
        """Copy the shard's files, and journal all writes from then on until `replace_with` or `abandon`.

        Returns the copy's path and its number of points.
        """
        with self._write_lock:
            if self._journal is not None:  # a second journal would lose the writes of the first
                raise RuntimeError("this shard is being copied already")
            self.flush()
            require_space(self.folder.path, 2 * disk_use(self.folder.shard) + TO_ADD)
            points, copy = self.points(), self.folder.path / _shard_name()
            try:
                copy_folder(self.folder.shard, copy)
            except OSError as error:
                shutil.rmtree(copy, ignore_errors=True)
                raise os_fault(self.folder.path, error) from error
            self._journal = _Journal()
            return copy, points

    def replace_with(self, copy: Path, indexed: int) -> None:
        """Replay the journal on the copy, sync it to disk, and make it the live shard."""
        with disk_faults(self.folder.path):
            sync_folder(copy)
        with self._write_lock:
            replacement = self._load(copy)
            try:
                with engine_faults("replay", copy):
                    if self._journal:
                        self._journal.replay(self._get_engine(), replacement)
                    replacement.flush()
                with disk_faults(self.folder.path):
                    sync_folder(copy)  # only the replayed writes are left, so writers wait briefly
                with self._engine_lock:
                    old, old_path = self._get_engine(), self.folder.shard
                    self.folder.make_current(copy, indexed)
                    self._adopt(replacement)
            except StoreError:
                replacement.close()
                raise
            self._journal = None
            old.close()
            del old
        _trim_memory()
        shutil.rmtree(old_path, ignore_errors=True)

    def abandon(self, copy: Path) -> None:
        with self._write_lock:
            self._journal = None
        shutil.rmtree(copy, ignore_errors=True)

    def close(self) -> None:
        with self._write_lock, self._engine_lock:
            self._closed = True
            self._unload()

    def unload_idle(self, idle: float) -> bool:
        """Release the engine's threads and memory if idle for `idle` seconds; return False while in use."""
        if not self._write_lock.acquire(blocking=False):
            return False
        try:
            with self._engine_lock:
                is_idle = self._shard is not None and self._journal is None and time.monotonic() - self._used_at >= idle
                if is_idle:
                    self._unload()
        finally:
            self._write_lock.release()
        if is_idle:
            _trim_memory()
        return is_idle

    def _unload(self) -> None:
        with engine_faults("close", self.folder.path):
            if self._shard is not None:
                shard, self._shard = self._shard, None
                if self._unflushed:
                    shard.flush()
                    self._unflushed = 0
                shard.close()

    def _get_engine(self) -> edge.EdgeShard:
        """Return the engine, loaded if needed. The caller must hold `_engine_lock`."""
        if self._closed:
            raise StoreError("store_closed")
        self._used_at = time.monotonic()
        return self._shard or self._adopt(self._load(self.folder.shard))

    def _adopt(self, engine: edge.EdgeShard) -> edge.EdgeShard:
        """Use an engine that was just opened, so that it counts no deleted points."""
        self._shard, self._counted_points, self._has_ghosts = engine, engine.info().points_count, False
        return engine

    def _load(self, path: Path) -> edge.EdgeShard:
        read_ahead(path, payloads=not self.folder.params.vectors)  # pages are listed, chunks are searched
        with engine_faults("open", path):
            return edge.EdgeShard.load(str(path))


def _trim_memory() -> None:
    """Return freed memory to the system, if the allocator supports it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


MIN_UNINDEXED = 10_000  # points outside the index; scanning them takes about a millisecond
MIN_GROWTH = 0.2  # share of the indexed points, so that a large index is rarely rebuilt
DELAY_SECONDS = 2.0  # between the write that makes a build due and its start, since writes come in bursts
QUANTISATION_THRESHOLD = 50_000  # points from which vectors are quantised; searching fewer is cheap


class IndexBuilder:
    """A background builder of one shard's indexes; `docs/decisions/0001-storage.md` gives the reasons."""

    def __init__(self, shard: Shard, *, threshold: int = MIN_UNINDEXED, delay: float = DELAY_SECONDS) -> None:
        self._shard = shard
        self._threshold = threshold
        self._delay = delay
        self._points = shard.points()
        self._is_paused = False
        self._stop = Event()
        self._start_lock = Lock()
        self._build_lock = Lock()
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def note_write(self, points: int) -> None:
        """Record a write of `points` points; start a build when enough are outside the index."""
        self._points += points
        if self.is_due():
            self._points = self._shard.points()  # the running sum counts rewritten points twice
            if self.is_due():
                self.start()

    def is_due(self) -> bool:
        """Return whether enough points changed since the last build to justify another."""
        if self._is_paused or not self._shard.folder.params.vectors:
            return False
        indexed = self._shard.folder.indexed
        return abs(self._points - indexed) >= max(self._threshold, MIN_GROWTH * indexed)

    def start(self) -> None:
        with self._start_lock:
            if self._stop.is_set() or (self._thread and self._thread.is_alive()):
                return
            self._thread = Thread(target=self._run, name="index-builder", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Stop automatic builds; `build` still works."""
        self._is_paused = True

    def wait(self, timeout: float | None = None) -> None:
        if self._thread:
            self._thread.join(timeout)

    def stop(self) -> None:
        """End a running build and discard its copy."""
        self._stop.set()
        if self._child and self._child.poll() is None:
            self._child.kill()
        self.wait()

    def _run(self) -> None:
        if self._stop.wait(self._delay):
            return
        try:
            self.build()
        except StoreError as error:
            log.warning("Index not built: %s", error)

    def build(self) -> bool:
        """Build now, blocking; return False if it was stopped or the child process failed."""
        with self._build_lock:
            start = time.monotonic()
            copy, points = self._shard.start_copy()
            try:
                is_built = not self._stop.is_set() and self._optimize(copy, points)
                if is_built:
                    self._shard.replace_with(copy, points)
                    self._points = self._shard.points()
                    log.info("Index built over %d points in %.1f s", points, time.monotonic() - start)
            finally:
                if self._shard.folder.shard != copy:
                    self._shard.abandon(copy)
            return is_built

    def _optimize(self, copy: Path, points: int) -> bool:
        config = layout(self._shard.folder.params, quantised=points >= QUANTISATION_THRESHOLD)
        command = [sys.executable, "-m", "rag.store.qdrant.edge.optimize_child", str(copy), config]
        root = Path(__file__).resolve().parents[4]
        child = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._child = child
        if self._stop.is_set():
            child.kill()
        _, stderr = child.communicate()
        if child.returncode != 0 and not self._stop.is_set():
            log.warning("Index builder ended with %d: %s", child.returncode, stderr[-300:])
        return child.returncode == 0
