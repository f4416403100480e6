"""Small chunks are searched, their sections are handed on: exact, once each, and the same whoever found them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source
from rag.models.sparse import SparseEncoder
from rag.retrieval.parents import widened
from rag.retrieval.retriever import Retriever
from rag.retrieval.strategies import STRATEGIES
from rag.store.library import Library
from tests.support.hashed_model import HashedModel

FILLER = "The keeper writes the hour, the wind and the state of the sea into the log. "
TEXT = (
    "# The lighthouse\n\n"
    f"## The lamp\n\nThe lamp burns whale oil. {FILLER * 4}Whale oil came in casks of ten litres. {FILLER * 9}\n\n"
    f"## The fog bell\n\nThe bell weighs two tonnes. {FILLER * 12}"
)
URL = "https://pages.example/lighthouse"


def _ignore(stage: str) -> None:
    pass


def take_in(ingestor: Ingestor, chunker: str, text: str = TEXT) -> str:
    source = Source("x", URL, "import", record={"url": URL, "title": "Lighthouse", "text": text})
    return ingestor.with_chunker(chunker).store(ingestor.read(source, _ignore).page, _ignore)[1].url_hash


@pytest.fixture
def retriever(small_library: Library, ingestor: Ingestor, model: HashedModel) -> Retriever:
    take_in(ingestor, "parent")
    return Retriever(small_library, model, SparseEncoder())


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_sections_are_handed_on_once_each(retriever: Retriever, strategy: str) -> None:
    found = retriever.search("Does the keeper log how whale oil came in casks?", k=5, strategy=strategy)
    sections = [candidate.passage for candidate in found.candidates]
    assert len({passage.id for passage in sections}) == len(sections) == 2
    for passage in sections:
        assert passage.text == TEXT[passage.start : passage.end]
        assert passage.text.lstrip().startswith("#")
        assert passage.parent is None
    best = sections[0]
    assert "burns whale oil" in best.text
    assert "casks of ten litres" in best.text


def test_a_parent_ranks_as_its_best_child(retriever: Retriever, small_library: Library, model: HashedModel) -> None:
    question = "How was whale oil delivered, in casks?"
    hits = small_library.search(
        dense=model.encode_query(question), sparse=SparseEncoder().encode_query(question), limit=20, prefetch=60
    )
    assert len(hits) > len({hit.passage.parent for hit in hits}) > 1
    passages = widened([hit.passage for hit in hits], small_library)
    assert [p.score for p in passages] == sorted((p.score for p in passages), reverse=True)
    assert passages[0].score == hits[0].passage.score
    assert passages[0].ranks == hits[0].passage.ranks


def test_a_parent_is_known_by_one_id_and_read_again_by_it(retriever: Retriever) -> None:
    one = retriever.search("The lamp burns what?", strategy="keyword").passages[0]
    other = retriever.search("casks of ten litres", strategy="keyword").passages[0]
    assert one.id == other.id
    (again,) = retriever.passages([one.id])
    assert (again.text, again.start, again.end) == (one.text, one.start, one.end)


def test_a_page_that_changed_in_between_shows_the_chunk_alone(retriever: Retriever, small_library: Library) -> None:
    (child, *_) = small_library.chunks(small_library.pages()[0].url_hash)
    stale = replace(child, text="What stood here before.")
    assert widened([stale], small_library) == [stale]


def test_other_chunkers_are_left_alone(small_library: Library, ingestor: Ingestor) -> None:
    url_hash = take_in(ingestor, "recursive")
    chunks = small_library.chunks(url_hash)
    assert all(chunk.parent is None for chunk in chunks)
    assert widened(chunks, small_library) == chunks
