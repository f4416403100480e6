"""When and where HNSW is built: in a child process, on a copy, once writes have calmed down."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Lock, Thread

from rag.errors import StoreError
from rag.store.edge.config import layout
from rag.store.edge.shard import Shard

log = logging.getLogger(__name__)

THRESHOLD = 10_000  # points outside the index; a scan of that many takes about a millisecond
GROWTH = 0.2  # of a large index, so that a growing library is not rebuilt at every step
QUIET = 5.0  # seconds without a write
QUANTISED = 50_000  # points from which one byte a dimension is searched; below, vectors as they are cost little
PATIENCE = 20.0  # seconds to wait for quiet before building amid the writes


class IndexBuilder:
    """Builds one shard's indexes in the background; `docs/decisions/0001-embedded-engine.md` says why so."""

    def __init__(self, shard: Shard, *, threshold: int = THRESHOLD, quiet: float = QUIET) -> None:
        self._shard = shard
        self._threshold = threshold
        self._quiet = quiet
        self._points = shard.points()
        self._last_write = time.monotonic()
        self._held = False
        self._stop = Event()
        self._starting = Lock()
        self._building = Lock()
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def wrote(self, points: int) -> None:
        """Tell of a write of `points` points; starts a build when enough lie outside the index."""
        self._points += points
        self._last_write = time.monotonic()
        if self.due():
            self._points = self._shard.points()  # the sum counts points that were written twice
            if self.due():
                self.start()

    def due(self) -> bool:
        """Whether so many points came or went since the last build that another one pays."""
        if self._held or not self._shard.folder.params.vectors:
            return False
        indexed = self._shard.folder.indexed
        return abs(self._points - indexed) >= max(self._threshold, GROWTH * indexed)

    def start(self) -> None:
        with self._starting:
            if self._stop.is_set() or (self._thread and self._thread.is_alive()):
                return
            self._thread = Thread(target=self._run, name="index-builder", daemon=True)
            self._thread.start()

    def hold(self) -> None:
        """Build nothing by itself from here on; `build` still does."""
        self._held = True

    def wait(self, timeout: float | None = None) -> None:
        if self._thread:
            self._thread.join(timeout)

    def stop(self) -> None:
        """End a build that is under way; its copy is thrown away."""
        self._stop.set()
        if self._child and self._child.poll() is None:
            self._child.kill()
        self.wait()

    def _run(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and (left := self._quiet - self._idle()) > 0:
            if self._stop.wait(left):
                return
        try:
            self.build()
        except StoreError as error:
            log.warning("Index not built: %s", error)

    def _idle(self) -> float:
        return time.monotonic() - self._last_write

    def build(self) -> bool:
        """Build now and wait for it; False when it was stopped or the child failed."""
        with self._building:
            return self._build()

    def _build(self) -> bool:
        started = time.monotonic()
        copy, points = self._shard.branch()
        try:
            built = not self._stop.is_set() and self._optimize(copy, points)
            if built:
                self._shard.adopt(copy, points)
                self._points = self._shard.points()
                log.info("Index built over %d points in %.1f s", points, time.monotonic() - started)
        finally:
            if self._shard.folder.shard != copy:
                self._shard.abandon(copy)
        return built

    def _optimize(self, copy: Path, points: int) -> bool:
        given = layout(self._shard.folder.params, quantised=points >= QUANTISED)
        command = [sys.executable, "-m", "rag.store.edge.optimize_child", str(copy), given]
        root = Path(__file__).resolve().parents[3]
        child = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._child = child
        if self._stop.is_set():
            child.kill()
        _, complaint = child.communicate()
        if child.returncode != 0 and not self._stop.is_set():
            log.warning("Index builder ended with %d: %s", child.returncode, complaint[-300:])
        return child.returncode == 0
