"""Pages are split and encoded ahead of their turn, in a batch if they are ready together, and stored in order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.ingest.pipeline import ChunkEncoder, Ingestor
from rag.ingest.sources import LoadedPage, Source, web_source
from rag.models.embedding import SparseEncoder
from rag.store.values import NewChunks
from rag.types import Chunk, SparseVector
from tests.support.hashed_model import HashedModel
from tests.support.page_server import PageServer
from tests.support.storing import store_page
from tests.support.waiting import until

TEXT = "The harbour bridge was opened in 1932. It carries eight lanes of traffic over the bay. "


class SlowModel(HashedModel):
    """A model that blocks in its first call until released, and records the number of texts per call."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.calls: list[int] = []
        self.fails = False

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(len(texts))
        self.begun.release()
        assert self.go.wait(60)
        if self.fails:
            raise ModelError("embedding_not_finite", name=self.name)
        return super().encode_passages(texts)


def chunks_of(*texts: str) -> list[Chunk]:
    return [Chunk(number, text, 0, len(text)) for number, text in enumerate(texts)]


def encode(encoder: ChunkEncoder, *texts: str, reusable: Any = None) -> NewChunks:
    return encoder.encode(chunks_of(*texts), texts, [f"hash of {text}" for text in texts], reusable or {})


def record(number: int, text: str = TEXT * 4) -> Source:
    url = f"https://one.example/{number}"
    return Source(url, url, "import", record={"url": url, "title": f"Page {number}", "text": f"{text}{number}."})


def test_pages_that_are_ready_together_are_encoded_together() -> None:
    model = SlowModel()
    encoder = ChunkEncoder(model, SparseEncoder())
    pages = [[f"{number} {place}" for place in range(1 + number % 3)] for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(encode, encoder, *pages[0])  # alone, or all would be encoded together
        assert model.begun.acquire(timeout=60)
        rest = [threads.submit(encode, encoder, *page) for page in pages[1:]]
        until(lambda: (group := encoder._together._open) is not None and len(group.items) == 7)
        model.go.set()
        found = [future.result(60) for future in [first, *rest]]
    assert model.calls == [1, sum(map(len, pages[1:]))]
    for page, new in zip(pages, found, strict=True):
        assert np.array_equal(new.dense, np.stack([model.encode_query(text) for text in page]))


def test_a_failure_is_told_to_all_whom_it_concerns() -> None:
    model = SlowModel()
    model.fails = True
    model.go.set()
    encoder = ChunkEncoder(model, SparseEncoder())
    with pytest.raises(ModelError):
        encode(encoder, "one", "two")
    model.fails = False
    assert encode(encoder, "one").dense.shape == (1, model.dimension)


def test_what_is_known_or_cannot_be_read_is_not_encoded() -> None:
    model = HashedModel()
    kept = SparseVector([1], [1.0])
    vector = np.full(model.dimension, 0.5, dtype=np.float32)
    texts = ("known", "known, unread", "new", "检索系统")
    reusable = {"hash of known": (vector, kept), "hash of known, unread": (None, kept)}
    new = encode(ChunkEncoder(model, SparseEncoder()), *texts, reusable=reusable)
    assert model.encoded == ["new"]
    assert new.dense_ok == [True, False, True, False]
    assert np.array_equal(new.dense[0], vector)
    assert not new.dense[1].any() and not new.dense[3].any()
    assert new.sparse[:2] == [kept, kept]


def test_settling_a_prepared_page_encodes_nothing(ingestor: Ingestor, model: HashedModel) -> None:
    read = ingestor.prepare(ingestor.read(record(1)))
    encoded = len(model.encoded)
    stages: list[str] = []
    row = store_page(ingestor, read, stages.append)
    assert (row.status, stages) == ("added", ["storing"])
    assert 0 < encoded == len(model.encoded) == row.chunks


def test_what_was_prepared_for_another_title_is_made_anew(ingestor: Ingestor, model: HashedModel) -> None:
    read = ingestor.prepare(ingestor.read(record(1)))
    renamed = replace(read, page=replace(read.page, title="Another title"))
    assert store_page(ingestor, renamed).status == "added"
    assert any(text.startswith("Another title") for text in model.encoded)


@pytest.mark.parametrize("decision", ["", "skip"])
def test_what_would_not_be_stored_is_not_prepared(ingestor: Ingestor, model: HashedModel, decision: Any) -> None:
    if not decision:
        store_page(ingestor, ingestor.read(record(1)))
    model.encoded.clear()
    read: LoadedPage = ingestor.prepare(ingestor.read(record(1)), decision=decision)
    assert read.prepared is None
    assert model.encoded == []


def test_a_duplicate_is_not_encoded(ingestor: Ingestor, model: HashedModel, page_server: PageServer) -> None:
    body = f"<html><body><article><h1>Bridge</h1><p>{TEXT * 8}</p></article></body></html>"
    one, other = (page_server.add(path, body) for path in ("/one", "/other"))
    store_page(ingestor, ingestor.read(web_source(one)))
    model.encoded.clear()
    read = ingestor.read(web_source(other))
    assert ingestor.prepare(read).prepared is None
    kept = ingestor.prepare(read, decision="keep_both")
    assert kept.prepared is not None
    assert store_page(ingestor, kept, decision="keep_both").status == "added"
