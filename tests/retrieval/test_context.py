from __future__ import annotations

from dataclasses import replace

import pytest

from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source
from rag.models.embedding import SparseEncoder, unpack_sentences
from rag.retrieval import context as context_module
from rag.retrieval.context import Context, assemble, expand_hits, expand_to_parents
from rag.retrieval.retriever import Retriever
from rag.retrieval.strategies import STRATEGIES
from rag.store.qdrant.library import Library
from rag.types import Passage
from tests.support.hashed_model import HashedModel
from tests.support.storing import store_page

TEXT = (
    "The lamp was wound every four hours. The bell rang twice a minute.\n\nOil came in cans. "
    + "Rope lay in coils. " * 4
)
FILLER = "The keeper writes the hour, the wind and the state of the sea into the log. "
PAGE_TEXT = (
    "# The lighthouse\n\n"
    f"## The lamp\n\nThe lamp burns whale oil. {FILLER * 4}Whale oil came in casks of ten litres. {FILLER * 9}\n\n"
    f"## The fog bell\n\nThe bell weighs two tonnes. {FILLER * 12}"
)
URL = "https://pages.example/lighthouse"


def piece(name: str, start: int, end: int, *, page: str = "p", score: float = 1.0, text: str = TEXT) -> Passage:
    lead = text[:start][len(text[:start].rstrip()) :]
    return Passage(
        name, f"https://x.example/{page}", page, page, "x.example", "en", ("Top",), text[start:end], start, end,
        score, {"fused": 1}, {"fused": score}, lead,
    )  # fmt: skip


def assembled(chosen: list[Passage], question: str = "", budget: int = 4000) -> Context:
    sparse = SparseEncoder()
    return assemble(chosen, dict.fromkeys(sparse.encode_query(question).indices, 1.0), sparse, 20, budget)


FIRST, SECOND, THIRD = piece("a", 0, 36), piece("b", 37, 66), piece("c", 68, 85)


def test_neighbours_become_one_verbatim_passage_at_the_better_place() -> None:
    far = piece("z", 0, 36, page="q", text="Nothing here is like the other page at all, it says.")
    context = assembled([THIRD, far, SECOND])
    joined, other = context.passages
    assert joined.id == "c"
    assert joined.text == TEXT[37:85] == TEXT[joined.start : joined.end]
    assert other.id == "z"
    assert (context.fates, context.into) == ({"b": "merged"}, {"b": "c"})


def test_a_chain_of_neighbours() -> None:
    (joined,) = assembled([FIRST, SECOND, THIRD]).passages
    assert joined.text == TEXT[0:85]
    assert joined.lead == ""


def test_what_is_not_adjacent_stays_apart() -> None:
    assert {p.id for p in assembled([FIRST, THIRD]).passages} == {"a", "c"}


def test_the_same_text_on_two_pages_appears_once() -> None:
    twin = replace(piece("t", 0, 36, page="q"), text="The lamp was wound every four hours!")
    context = assembled([FIRST, twin])
    assert [p.id for p in context.passages] == ["a"]
    assert context.fates == {"t": "same_text"}


def test_texts_that_differ_in_a_number_are_not_the_same() -> None:
    long = "The yearly report of the harbour names the number of ships that called at the port: {} in all."
    one = replace(FIRST, text=long.format(1932))
    other = replace(piece("t", 0, 36, page="q"), text=long.format(1947))
    assert len(assembled([one, other]).passages) == 2


def test_a_passage_is_cut_to_what_is_asked_and_tells_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "SHORT", 0)
    (span,) = assembled([piece("a", 0, 66)], "How often does the bell ring?", budget=10).passages
    assert (span.text, span.start, span.end, span.lead) == ("The bell rang twice a minute.", 37, 66, " ")


def test_what_adds_nothing_says_so() -> None:
    other = replace(piece("z", 0, 36, page="q"), text="Nothing here is like the other page.")
    context = assembled([FIRST, other], "When was the lamp wound?", budget=10)
    assert [p.id for p in context.passages] == ["a"] and context.fates == {"z": "says_less"}


def test_parts_that_overlap_become_one() -> None:
    (joined,) = assembled([piece("a", 0, 66), piece("b", 37, 85)]).passages
    assert joined.text == TEXT[0:85] == TEXT[joined.start : joined.end]


@pytest.mark.parametrize("count", [0, 1])
def test_small_contexts(count: int) -> None:
    assert len(assembled([FIRST][:count]).passages) == count


def _ignore(stage: str) -> None:
    pass


def take_in(ingestor: Ingestor, chunker: str) -> str:
    source = Source("x", URL, "import", record={"url": URL, "title": "Lighthouse", "text": PAGE_TEXT})
    return store_page(ingestor.with_chunker(chunker), ingestor.read(source, _ignore), _ignore).url_hash


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
        assert passage.text == PAGE_TEXT[passage.start : passage.end]
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
    passages = expand_to_parents([hit.passage for hit in hits], small_library)
    assert [p.score for p in passages] == sorted((p.score for p in passages), reverse=True)
    assert passages[0].score == hits[0].passage.score
    assert passages[0].ranks == hits[0].passage.ranks


def test_a_chunk_comes_with_its_sentences_and_a_parent_without(small_library: Library, ingestor: Ingestor) -> None:
    encoder = SparseEncoder()
    for chunker, at in (("semantic", 1), ("parent", 0)):
        take_in(ingestor, chunker)
        hits = small_library.search(dense=None, sparse=encoder.encode_query("whale oil"), limit=9, prefetch=9)
        assert all(unpack_sentences(hit.sentences, hit.passage.text) for hit in hits)
        wide = expand_hits(hits, small_library)
        assert all(bool(hit.sentences) == bool(at) for hit in wide)


def test_a_parent_is_known_by_one_id_and_read_again_by_it(retriever: Retriever) -> None:
    one = retriever.search("The lamp burns what?", strategy="keyword").passages[0]
    other = retriever.search("casks of ten litres", strategy="keyword").passages[0]
    assert one.id == other.id
    (again,) = retriever.passages([one.id])
    assert (again.text, again.start, again.end) == (one.text, one.start, one.end)


def test_a_page_that_changed_in_between_shows_the_chunk_alone(retriever: Retriever, small_library: Library) -> None:
    (child, *_) = small_library.chunks(small_library.pages()[0].url_hash)
    stale = replace(child, text="What stood here before.")
    assert expand_to_parents([stale], small_library) == [stale]
