"""Moves libraries to another embedding model, each in a separate thread."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from rag.app.libraries import Libraries
from rag.app.models import Models
from rag.errors import RagError, StoreError
from rag.ingest.chunking.base import embedded_text
from rag.models.embedding import EmbeddingModel
from rag.models.lexical import lexical_of
from rag.retrieval.retriever import Retriever
from rag.store.qdrant.library import Library
from rag.store.qdrant.moving import Encoded
from rag.store.sql.conversation_table import ConversationTable
from rag.store.values import patience
from rag.types import Chunk, Notice, Passage

log = logging.getLogger(__name__)

_QUESTIONS = 50  # the latest ones, which the two models are compared on


@dataclass(frozen=True, slots=True)
class LibraryMove:
    """A library that moves to `model`; `done` of `total` passages so far.

    Of `asked` past questions, `found` get a passage that their answer cited among what the new model finds. `notice`
    says why the move failed.
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
    """Safe to share between threads. A move that was cut off continues where it was, by `resume` or `begin`."""

    def __init__(self, libraries: Libraries, models: Models, conversations: ConversationTable) -> None:
        self._libraries = libraries
        self._models = models
        self._conversations = conversations
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._moves: dict[str, LibraryMove] = {}
        self._threads: dict[str, threading.Thread] = {}

    def begin(self, library: str, model: str) -> LibraryMove:
        """Move the library to the model that libraries call `model`; one that is under way continues."""
        with self._lock:
            running = self._moves.get(library)
            if running and running.is_running:
                return running
            self._moves[library] = LibraryMove(library, model)
            self._threads[library] = threading.Thread(target=self._run, args=(library, model), name="move", daemon=True)
            self._threads[library].start()
            return self._moves[library]

    def go_back(self, library: str) -> LibraryMove:
        """Move the library to the model that it was searched with before. Raises StoreError when that is too late."""
        info = self._libraries.info(library)
        if not info.previous_model or (info.back_until and datetime.now(UTC) >= info.back_until):
            raise StoreError("move_no_way_back", library=info.shown)
        return self.begin(library, info.previous_model)

    def move(self, library: str) -> LibraryMove | None:
        """The library's move, or its last one since the start; None if there was none."""
        with self._lock:
            return self._moves.get(library)

    def forget(self, library: str) -> None:
        """No longer show a move that has ended."""
        with self._lock:
            if library in self._moves and not self._moves[library].is_running:
                del self._moves[library]

    def resume(self) -> None:
        """Continue the moves that were cut off."""
        for info in self._libraries.infos():
            if info.moving_to:
                self.begin(info.name, info.moving_to)

    def wait(self, library: str, seconds: float) -> LibraryMove:
        """The move, once it has ended or so many seconds have passed."""
        self._threads[library].join(seconds)
        return self._moves[library]

    def close(self) -> None:
        """Stop after the passages in hand; the next start resumes."""
        self._closed.set()
        for thread in list(self._threads.values()):
            thread.join()

    def _run(self, library: str, model: str) -> None:
        try:
            with patience(math.inf, self._closed.is_set):
                self._move(library, model)
        except RagError as error:
            self._change(library, state="failed", notice=error.notice)
        except Exception:  # the thread's edge: without it the person would wait for ever
            log.exception("the move of library %s failed", library)
            self._change(library, state="failed", notice=Notice("unexpected"))

    def _move(self, library: str, stored: str) -> None:
        move, model = self._libraries.move(library, stored, lambda loaded: partial(encoded, loaded))
        if not move.fill(lambda done, total: self._change(library, done=done, total=total), self._closed.is_set):
            self._change(library, state="stopped")
            return
        self._change(library, state="comparing")
        self._compare(move.target, model)
        if self._closed.is_set():
            self._change(library, state="stopped")
            return
        self._libraries.switch(move)
        self._change(library, state="done")

    def _compare(self, target: Library, model: EmbeddingModel) -> None:
        """Ask past questions of the new set, and count those that find a passage which was cited."""
        retriever = Retriever(target, model, self._models.sparse)
        asked = found = 0
        for answer in self._conversations.past_questions(target.name, _QUESTIONS):
            if self._closed.is_set():
                return
            cited = _still_there(answer["citations"], target)
            if cited:
                passages = retriever.search(answer.get("standalone") or answer["question"]).passages
                asked += 1
                found += any(_holds(passage, one) for passage in passages for one in cited)
                self._change(target.name, asked=asked, found=found)

    def _change(self, library: str, **values: Any) -> None:
        with self._lock:
            self._moves[library] = replace(self._moves[library], **values)


def encoded(model: EmbeddingModel, passages: Sequence[Passage]) -> list[Encoded]:
    """The vectors (d,) and learned terms of chunks that are stored; None for those that the model cannot read."""
    chunks = [Chunk(0, one.text, one.start, one.end, tuple(one.section), one.header) for one in passages]
    readable = [bool(one.text) and model.can_read(one.text) for one in passages]
    given = zip(passages, chunks, readable, strict=True)
    texts = [embedded_text(passage.title, chunk) for passage, chunk, is_readable in given if is_readable]
    vectors = iter(model.encode_passages(texts) if texts else ())
    head = lexical_of(model)
    learned = iter(head.encode(texts) if head else ())
    return [(next(vectors), next(learned, None)) if is_readable else (None, None) for is_readable in readable]


def _still_there(citations: Sequence[Mapping[str, Any]], library: Library) -> list[Mapping[str, Any]]:
    """The citations whose sentences still stand at their place in a page of the library."""
    ours = [one for one in citations if one.get("library", "") in ("", library.name)]
    texts = library.texts([one["url_hash"] for one in ours])
    return [one for one in ours if texts.get(one["url_hash"], "")[one["start"] : one["end"]] == one["quote"] != ""]


def _holds(passage: Passage, citation: Mapping[str, Any]) -> bool:
    """Whether some of the cited sentence is in the passage."""
    start, end = int(citation["start"]), int(citation["end"])
    return passage.url_hash == citation["url_hash"] and passage.start < end and start < passage.end
