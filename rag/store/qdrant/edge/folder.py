"""The layout of a collection on disk, and its recovery after a crash.

    <root>/<name>/collection.json   its parameters
    <root>/<name>/current.json      name of the live shard's folder, and the number of points in its index
    <root>/<name>/shard-<random>/   the live shard; any other one is left over from an interrupted build

Replacing `current.json` is the only step that makes another shard live, so the process may be killed at any time.

Only one process at a time can use the folder. The engine locks a collection only while opening it, so a lock file
guards the whole folder; the system releases the lock when the process ends for any reason.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import qdrant_edge as edge

from rag.errors import StoreBusyError, StoreError, os_fault
from rag.store.qdrant.edge.config import TO_ADD, CollectionParams, disk_use, engine_faults, require_space

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
        folders[:] = [name for name in folders if _is_needed(Path(path) / name, payloads)]
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


def _is_needed(folder: Path, payloads: bool) -> bool:
    if folder.name in _BY_POINT:
        return payloads and disk_use(folder) <= _MAX_READ_AHEAD
    return folder.name != "wal"


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
        self._recover()

    @classmethod
    def create(cls, root: Path, name: str, params: CollectionParams) -> CollectionFolder:
        """Create the folder and its empty shard, atomically."""
        require_space(root, TO_ADD)
        draft = root / f"{_NEW_PREFIX}{uuid.uuid4().hex}"
        shard = draft / _shard_name()
        try:
            shard.mkdir(parents=True)
            with engine_faults("create_collection", shard):
                edge.EdgeShard.create(str(shard), params.engine_config()).close()
            _write_file(draft / _PARAMS, params.to_json())
            _write_file(draft / _CURRENT, json.dumps({"shard": shard.name, "indexed": 0}))
            draft.rename(root / _file_name(name))
            sync_names(root)
        except OSError as error:
            raise os_fault(root, error) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return cls(root, name)

    def new_shard(self) -> Path:
        """Return a path for a shard that is not live yet."""
        return self.path / _shard_name()

    def make_current(self, shard: Path, indexed: int) -> None:
        """Make `shard` the live one, atomically."""
        try:
            _write_file(self.path / _CURRENT, json.dumps({"shard": shard.name, "indexed": indexed}))
        except OSError as error:
            raise os_fault(self.path, error) from error
        self.shard, self.indexed = shard, indexed

    def remove(self) -> None:
        trash = self.path.with_name(f"{_DELETED_PREFIX}{uuid.uuid4().hex}")
        try:
            self.path.rename(trash)
        except OSError as error:
            raise os_fault(self.path, error) from error
        shutil.rmtree(trash, ignore_errors=True)

    def _recover(self) -> None:
        for path in self.path.glob("shard-*"):
            if path != self.shard:
                shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.shard / _TEMPORARY, ignore_errors=True)
        shutil.rmtree(self.shard / "segments" / _TEMPORARY, ignore_errors=True)


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


class FolderLock:
    """A lock on `folder`, acquired by the constructor.

    Raises StoreBusyError if another process has locked it, StoreError if the folder is not writable.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError("store_unwritable", path=str(folder)) from error
        try:
            _lock(self._file)
        except OSError as error:
            os.close(self._file)
            raise StoreBusyError("store_busy", path=str(folder)) from error

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
