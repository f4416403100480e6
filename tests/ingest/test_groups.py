"""New pages that are taken in together end as they would one after the other, in fewer calls."""

from __future__ import annotations

import random

import pytest

from rag.errors import RagError
from rag.ingest.groups import Settling, apart
from rag.ingest.pipeline import Ingestor
from rag.ingest.source_reading import Read
from rag.ingest.sources import web_source
from rag.store.qdrant.library import open_library
from rag.types import IngestResult
from tests.ingest.jobs.conftest import records
from tests.ingest.test_duplicates import canonical, html
from tests.store.test_duplicates import english
from tests.support.page_server import PageServer


def quiet(stage: object) -> None:
    """Nobody looks on."""


def settled(ingestor: Ingestor, reads: list[Read], at_once: int) -> list[tuple[str, str, str]]:
    """What became of each page, where so many are handed in together."""
    rows: list[IngestResult | RagError] = []
    for at in range(0, len(reads), at_once):
        rows += ingestor.settle_all([Settling(read, quiet) for read in reads[at : at + at_once]])
    return [(row.url, row.status, row.reason) for row in rows if isinstance(row, IngestResult)]


@pytest.mark.parametrize("seed", range(4))
def test_together_ends_as_one_after_the_other(ingestor: Ingestor, page_server: PageServer, seed: int) -> None:
    main = page_server.url("/main")
    bodies = {
        "/main": html(english(1)),
        "/copy": html(english(1), "Copy"),
        "/named": html(english(1), head=canonical(main)),
        "/near": html(english(1).replace("the", "a", 1)),
        **{f"/{number}": html(english(number), f"Page {number}") for number in range(2, 9)},
    }
    reads = [ingestor.read(web_source(page_server.add(path, body)), quiet) for path, body in bodies.items()]
    reads += [ingestor.read(record, quiet) for record in records(5)]
    random.Random(seed).shuffle(reads)
    library = ingestor.library
    other = open_library(library.client, "other", library.embedding_model, library.dimension)
    beside = Ingestor(other, ingestor._model, ingestor._sparse, ingestor._fetcher, ingestor._parser, ingestor._chunker)
    assert settled(ingestor, reads, len(reads)) == settled(beside, reads, 1)
    known = [(page.url, page.aliases, page.chunks) for page in library.pages()]
    assert sorted(known) == sorted((page.url, page.aliases, page.chunks) for page in other.pages())
    assert library.chunk_count() == other.chunk_count()


def test_new_pages_share_their_calls(ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = [ingestor.read(record, quiet) for record in records(20)]
    client, calls = ingestor.library.client, []
    for name in ("retrieve", "scroll", "upsert", "batch_update_points", "set_payload", "delete", "query_batch_points"):
        real = getattr(client, name)
        monkeypatch.setattr(client, name, lambda *a, real=real, **k: (calls.append(1), real(*a, **k))[1])
    assert [status for _, status, _ in settled(ingestor, reads, 20)] == ["added"] * 20
    assert len(calls) <= 8


def test_one_page_that_cannot_be_stored_costs_no_other(ingestor: Ingestor) -> None:
    reads = [ingestor.prepare(ingestor.read(record, quiet), quiet) for record in records(3)]
    assert reads[1].prepared is not None
    reads[1].prepared.dense[0] = float("nan")
    found = ingestor.settle_all([Settling(read, quiet) for read in reads])
    assert [type(one) is IngestResult for one in found] == [True, False, True]
    assert ingestor.library.page_count() == 2


def test_what_may_repeat_another_waits_for_it(ingestor: Ingestor, page_server: PageServer) -> None:
    urls = [page_server.add(path, html(english(number))) for path, number in (("/a", 1), ("/b", 2), ("/c", 1))]
    reads = [Settling(ingestor.read(web_source(url), quiet), quiet) for url in urls]
    assert list(apart(reads)) == [[0, 1], [2]]
