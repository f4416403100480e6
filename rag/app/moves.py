"""Moves of libraries to another embedding model, each in a separate thread."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from rag.app.libraries import Libraries, Models
from rag.errors import RagError, StoreError
from rag.ingest.chunking import embedding_text
from rag.models.embedding import EmbeddingModel, lexical_head
from rag.retrieval.context import is_overlapping
from rag.retrieval.retriever import Retriever
from rag.store.qdrant.library import Library
from rag.store.qdrant.moving import Encoded
from rag.store.sql.conversation_table import ConversationTable
from rag.store.values import wait_limit
from rag.types import Chunk, Notice, Passage

log = logging.getLogger(__name__)

_QUESTIONS = 50  # latest ones, to test the new model with


@dataclass(frozen=True, slots=True)
class LibraryMove:
    """The progress of a library's move to `model`: `done` of `total` passages.

    For `found` of `asked` past questions, the new model finds a passage that their answer cites. `notice` is the reason
    for a failure.
    """

    library: str
    model: str
    state: Literal["building", "comparing", "done", "failed", "stopped"] = "building"
    done: int = 0
    total: int = 0
    asked: int = 0
    found: int = 0
    notice: Notice | None = None

    @property
    def is_running(self) -> bool:
        return self.state in ("building", "comparing")


class Moves:
    """Moves of libraries. Thread-safe. `resume` or `begin` continues an interrupted move."""

    def __init__(self, libraries: Libraries, models: Models, conversations: ConversationTable) -> None:
        self._libraries = libraries
        self._models = models
        self._conversations = conversations
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._moves: dict[str, LibraryMove] = {}
        self._threads: dict[str, threading.Thread] = {}

    def begin(self, library: str, model: str) -> LibraryMove:
        """Start moving the library to `model`, by its name in libraries, unless a move is already running."""
        with self._lock:
            running = self._moves.get(library)
            if running and running.is_running:
                return running
            self._moves[library] = LibraryMove(library, model)
            self._threads[library] = threading.Thread(target=self._run, args=(library, model), name="move", daemon=True)
            self._threads[library].start()
            return self._moves[library]

    def go_back(self, library: str) -> LibraryMove:
        """Start moving the library back to its previous model. Raises StoreError if it is too late."""
        info = self._libraries.info(library)
        if not info.previous_model or (info.revertible_until and datetime.now(UTC) >= info.revertible_until):
            raise StoreError("move_no_way_back", library=info.display_name)
        return self.begin(library, info.previous_model)

    def move(self, library: str) -> LibraryMove | None:
        """Return the library's current or last move since startup, or None."""
        with self._lock:
            return self._moves.get(library)

    def forget(self, library: str) -> None:
        """Stop showing a move that has ended."""
        with self._lock:
            if library in self._moves and not self._moves[library].is_running:
                del self._moves[library]

    def resume(self) -> None:
        """Continue interrupted moves."""
        for info in self._libraries.infos():
            if info.moving_to:
                self.begin(info.name, info.moving_to)

    def wait(self, library: str, seconds: float) -> LibraryMove:
        """Return the move when it has ended, or after `seconds`."""
        self._threads[library].join(seconds)
        return self._moves[library]

    def close(self) -> None:
        """Stop after the current batch; the next start resumes."""
        self._closed.set()
        for thread in list(self._threads.values()):
            thread.join()

    def _run(self, library: str, stored: str) -> None:
        try:
            with wait_limit(math.inf, self._closed.is_set):
                move, model = self._libraries.move(library, stored, lambda loaded: partial(encode, loaded))
                filled = move.fill(
                    lambda done, total: self._change(library, done=done, total=total), self._closed.is_set
                )
                if filled:
                    self._change(library, state="comparing")
                    self._compare(move.target, model)
                if not filled or self._closed.is_set():
                    self._change(library, state="stopped")
                    return
                self._libraries.switch(move)
                self._change(library, state="done")
        except RagError as error:
            self._change(library, state="failed", notice=error.notice)
        except Exception:  # would end the thread and leave the user waiting
            log.exception("the move of library %s failed", library)
            self._change(library, state="failed", notice=Notice("unexpected"))

    def _compare(self, target: Library, model: EmbeddingModel) -> None:
        """Search the new chunks for past questions, and count those that find a cited passage."""
        retriever = Retriever(target, model, self._models.sparse)
        count = hits = 0
        for answer in self._conversations.answers_with_citations(target.name, _QUESTIONS):
            if self._closed.is_set():
                return
            own = [row for row in answer["citations"] if row.get("library", "") in ("", target.name)]
            texts = target.texts([row["url_hash"] for row in own])
            places = [
                (row["url_hash"], int(row["start"]), int(row["end"]))
                for row in own
                if texts.get(row["url_hash"], "")[row["start"] : row["end"]] == row["quote"] != ""
            ]
            if places:  # quotes that are still at the same offsets
                passages = retriever.search(answer.get("standalone") or answer["question"]).passages
                count += 1
                hits += any(is_overlapping(passage, *place) for passage in passages for place in places)
                self._change(target.name, asked=count, found=hits)

    def _change(self, library: str, **values: Any) -> None:
        with self._lock:
            self._moves[library] = replace(self._moves[library], **values)


def encode(model: EmbeddingModel, passages: Sequence[Passage]) -> list[Encoded]:
    """Return the vectors (d,) and learned terms of stored chunks; None for those that the model cannot read."""
    chunks = [Chunk(0, one.text, one.start, one.end, tuple(one.section), one.header) for one in passages]
    readable = [bool(one.text) and model.can_read(one.text) for one in passages]
    rows = zip(passages, chunks, readable, strict=True)
    texts = [embedding_text(passage.title, chunk) for passage, chunk, is_readable in rows if is_readable]
    vectors = iter(model.encode_passages(texts) if texts else ())
    head = lexical_head(model)
    learned = iter(head.encode(texts) if head else ())
    return [(next(vectors), next(learned, None)) if is_readable else (None, None) for is_readable in readable]
