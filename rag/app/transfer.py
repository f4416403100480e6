"""Background export of libraries to single files, and import from them."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from rag.app.libraries import Libraries
from rag.errors import RagError, os_fault
from rag.store.values import wait_limit
from rag.types import Notice

log = logging.getLogger(__name__)

SUFFIX = ".pagelight"
_LIFETIME_SECONDS = 24 * 3600.0
_COPY_BYTES = 1024 * 1024
_UPLOAD_NAME = f"library{SUFFIX}"  # not the uploaded name, which may be too long or contain NUL
_LONGEST_NAME = 200

Work = Callable[[Callable[[int, int], object]], dict[str, int]]
"""A function that reports its progress as done and total pages, and returns the counts of pages and more."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """The progress of an export or import of a library: `done` of `total` pages.

    `path` and `size` (bytes) are those of an exported file, `title` is the library's title, `pages` its number of
    pages after success, `notice` is the reason for a failure. `owner` is the user who started it.
    """

    id: str
    kind: Literal["export", "import"]
    library: str
    state: Literal["running", "done", "failed"]
    title: str = ""
    done: int = 0
    total: int = 0
    path: Path | None = None
    size: int = 0
    pages: int = 0
    notice: Notice | None = None
    owner: str = ""


class Transfers:
    """Exports and imports of libraries. Thread-safe. Exported files expire after a day, or with the process."""

    def __init__(self, folder: Path, libraries: Libraries) -> None:
        self._folder = folder
        self._libraries = libraries
        self._lock = threading.Lock()
        self._transfers: dict[str, Transfer] = {}

    def export(self, library: str, owner: str = "") -> str:
        """Start writing the library to a file; return the transfer's id."""
        transfer = self._new("export", library, self._libraries.title(library), owner)
        with self._forget_on_error(transfer.id):
            path = self._prepare_folder() / f"{transfer.id}{SUFFIX}"
        self._start(transfer.id, partial(self._libraries.export, library, path), path)
        return transfer.id

    def import_file(self, stream: BinaryIO, name: str, title: str, owner: str = "") -> str:
        """Start importing an exported file called `name` as a library with this title; return the transfer's id.

        The stream is copied to disk in chunks before this returns. Raises StoreError if the title is taken or invalid.
        """
        library, plain = self._libraries.new_name(title)
        transfer = self._new("import", library, plain, owner)
        with self._forget_on_error(transfer.id):
            folder = self._prepare_folder() / transfer.id
            _copy(stream, folder / _UPLOAD_NAME)
        # For display: without folders and unprintable characters.
        plain_name = "".join(filter(str.isprintable, name.replace("\\", "/").rpartition("/")[2]))
        file_name = plain_name[:_LONGEST_NAME].strip() or _UPLOAD_NAME

        def work(on_progress: Callable[[int, int], object]) -> dict[str, int]:
            try:
                return self._libraries.import_file(folder / _UPLOAD_NAME, library, on_progress, file_name, plain)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        self._start(transfer.id, work, None)
        return transfer.id

    def transfer(self, transfer_id: str, owner: str = "") -> Transfer | None:
        """Return a transfer's progress; None if it is unknown or another user's, or its file was deleted."""
        with self._lock:
            transfer = self._transfers.get(transfer_id)
        if transfer and transfer.owner != owner:
            return None
        if transfer and transfer.state == "done" and transfer.path and not transfer.path.exists():
            return None
        return transfer

    def library_of(self, transfer_id: str) -> str:
        """Return the library that a transfer reads or creates."""
        with self._lock:
            return self._transfers[transfer_id].library

    def _new(self, kind: Literal["export", "import"], library: str, title: str, owner: str) -> Transfer:
        transfer = Transfer(uuid.uuid4().hex, kind, library, "running", title, owner=owner)
        with self._lock:
            self._transfers[transfer.id] = transfer
        return transfer

    @contextmanager
    def _forget_on_error(self, transfer_id: str) -> Iterator[None]:
        """Forget the transfer if the block fails; the caller gets the error."""
        try:
            yield
        except BaseException:
            with self._lock:
                self._transfers.pop(transfer_id, None)
            raise

    def _start(self, transfer_id: str, work: Work, path: Path | None) -> None:
        threading.Thread(target=self._run, args=(transfer_id, work, path), name="exchange", daemon=True).start()

    def _run(self, transfer_id: str, work: Work, path: Path | None) -> None:
        try:
            with wait_limit(math.inf):
                counts = work(lambda done, total: self._change(transfer_id, done=done, total=total))
            size = path.stat().st_size if path else 0
            self._change(transfer_id, state="done", path=path, size=size, pages=counts["pages"])
        except RagError as error:
            self._change(transfer_id, state="failed", notice=error.notice)
        except Exception:  # would end the thread and leave the user waiting
            log.exception("the transfer of library %s failed", self.library_of(transfer_id))
            self._change(transfer_id, state="failed", notice=Notice("unexpected"))

    def _change(self, transfer_id: str, **values: object) -> None:
        with self._lock:
            self._transfers[transfer_id] = replace(self._transfers[transfer_id], **values)  # type: ignore[arg-type]

    def _prepare_folder(self) -> Path:
        """Return the folder after deleting files that are older than a day or left by an earlier process."""
        with self._lock:
            ids = set(self._transfers)
        oldest = time.time() - _LIFETIME_SECONDS
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            paths = list(self._folder.iterdir())
        except OSError as error:
            raise os_fault(self._folder, error) from error
        for path in paths:
            if path.name.partition(".")[0] not in ids or _is_older(path, oldest):
                _discard(path)
        return self._folder


def _is_older(path: Path, moment: float) -> bool:
    """Return whether the file was last written before `moment`; False if it is missing."""
    try:
        return path.stat().st_mtime < moment
    except OSError:
        return False


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):  # another transfer may have deleted it first
        path.unlink()


def _copy(stream: BinaryIO, path: Path) -> None:
    try:
        path.parent.mkdir()
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, _COPY_BYTES)
    except OSError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise os_fault(path.parent, error) from error
