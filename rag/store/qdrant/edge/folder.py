"""The layout of a collection on disk, and its recovery after a crash.

    <root>/<name>/collection.json   its parameters
    <root>/<name>/current.json      which shard folder is live, and how many points its index covers
    <root>/<name>/shard-<random>/   the live shard; any other is the leftover of a build that did not end

Replacing `current.json` is the one step that makes another shard live, so a process may die anywhere.

One process at a time is in the folder. The engine's own lock shows only once a collection is opened, so a lock file
guards the folder as a whole; the system drops the lock when the process ends, however it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from pathlib import Path
from urllib.parse import quote, unquote

import qdrant_edge as edge

from rag.errors import StoreBusyError, StoreError
from rag.store.qdrant.edge.config import TO_ADD, CollectionParams, engine_faults, os_fault, require_space
from rag.store.qdrant.edge.copying import sync_names

_PARAMS = "collection.json"
_CURRENT = "current.json"
_NEW = ".new-"
_GONE = ".gone-"
_TEMPORARY = "temp_segments"  # where the engine leaves the work of a killed optimize()
_NAME = "in-use.lock"


def collection_names(root: Path) -> list[str]:
    found = [path for path in root.iterdir() if (path / _PARAMS).is_file() and not path.name.startswith(".")]
    return sorted(unquote(path.name) for path in found)


def clear_leftovers(root: Path) -> None:
    """Remove collections that were half created or half deleted when the process ended."""
    for path in [*root.glob(f"{_NEW}*"), *root.glob(f"{_GONE}*")]:
        shutil.rmtree(path, ignore_errors=True)


class CollectionFolder:
    """One collection's folder. `shard` is the live shard, `indexed` the points its index was built over."""

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
        """Make the folder and its empty shard; it appears under its name in one step, complete."""
        require_space(root, TO_ADD)
        draft = root / f"{_NEW}{uuid.uuid4().hex}"
        shard = draft / _shard_name()
        try:
            shard.mkdir(parents=True)
            with engine_faults("create_collection", shard):
                edge.EdgeShard.create(str(shard), params.engine_config()).close()
            _write(draft / _PARAMS, params.to_json())
            _write(draft / _CURRENT, json.dumps({"shard": shard.name, "indexed": 0}))
            draft.rename(root / _file_name(name))
            sync_names(root)
        except OSError as error:
            raise os_fault(root, error) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return cls(root, name)

    def new_shard(self) -> Path:
        """A path for a shard that is not live yet."""
        return self.path / _shard_name()

    def make_current(self, shard: Path, indexed: int) -> None:
        """The one step that makes `shard` the live one."""
        try:
            _write(self.path / _CURRENT, json.dumps({"shard": shard.name, "indexed": indexed}))
        except OSError as error:
            raise os_fault(self.path, error) from error
        self.shard, self.indexed = shard, indexed

    def remove(self) -> None:
        gone = self.path.with_name(f"{_GONE}{uuid.uuid4().hex}")
        try:
            self.path.rename(gone)
        except OSError as error:
            raise os_fault(self.path, error) from error
        shutil.rmtree(gone, ignore_errors=True)

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


def _write(path: Path, text: str) -> None:
    """Write a small file so that it is there whole or not at all, after a power cut too."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_names(path.parent)


class FolderLock:
    """Holds `folder` from construction until `release`.

    Raises StoreBusyError when another holder is alive, StoreError when the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o600)
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
