"""Every strategy over a small library, with a model that cannot read Chinese."""

from __future__ import annotations

import pytest

from rag.ingest.pipeline import Ingestor
from rag.models.embedding import SparseEncoder
from rag.retrieval.context import CAVEAT_THRESHOLD
from rag.retrieval.langchain import ModelEmbeddings
from rag.retrieval.retriever import Retriever
from rag.retrieval.strategies import STRATEGIES
from rag.store.qdrant.library import Library
from tests.support.hashed_model import HashedModel
from tests.support.storing import store_texts

PAGES = {
    "Volcano": "Mount Aso erupted in 1953. Its crater is 24 kilometres wide.",
    "Bridge": "The harbour bridge was opened in 1932. It carries eight lanes of traffic.",
    "Tea": "Black tea is brewed with boiling water. Green tea needs cooler water.",
    "茶": "龙井茶产于杭州。清明前采摘的称为明前茶。炒制需要十道手法。",
    "桥": "这座大桥于1932年通车，桥上有八条车道。",
}


@pytest.fixture
def retriever(small_library: Library, ingestor: Ingestor, model: HashedModel) -> Retriever:
    store_texts(ingestor, PAGES)
    return Retriever(small_library, model, SparseEncoder())


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("When was the harbour bridge opened?", "Bridge"),
        ("How wide is the crater of Aso?", "Volcano"),
        ("龙井茶产于哪里？", "茶"),
    ],
)
def test_the_right_page_comes_first(retriever: Retriever, strategy: str, question: str, title: str) -> None:
    found = retriever.search(question, k=2, strategy=strategy)
    assert found.passages[0].title == title
    assert len(found.passages) <= 2


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize(
    ("question", "before", "title"),
    [
        ("How many lanes?", "When was the bridge opened?", "Bridge"),
        ("And what water?", "How is green tea brewed?", "Tea"),
        ("有几条车道？", "大桥什么时候通车？", "桥"),
    ],
)
def test_a_follow_up_is_found_with_the_question_before_it(
    retriever: Retriever, strategy: str, question: str, before: str, title: str
) -> None:
    found = retriever.search(question, k=2, strategy=strategy, earlier_questions=["Where is Aso?", before])
    assert found.passages[0].title == title and found.question == question
    assert found.answerable > CAVEAT_THRESHOLD


def test_a_leg_that_cannot_read_the_question_does_not_vote(retriever: Retriever) -> None:
    assert retriever.search("龙井茶产于哪里？").legs == ("sparse",)
    assert retriever.search("Where is the bridge?").legs == ("dense", "sparse")


def test_candidates_tell_ranks_scores_and_places(retriever: Retriever) -> None:
    found = retriever.search("When was the harbour bridge opened?", k=2, fetch_k=4)
    first = found.candidates[0].passage
    assert first.ranks["dense"] == first.ranks["sparse"] == first.ranks["fused"] == 1
    assert [c.place for c in found.candidates[:2]] == [1, 2]
    assert all(c.place is None for c in found.candidates[2:])
    assert set(found.ms) == {"search", "choose", "judge"}


def test_words_that_no_page_holds_find_nothing_by_keyword(retriever: Retriever) -> None:
    assert retriever.search("zeppelin", strategy="keyword").passages == ()


def test_the_classic_strategy_returns_whole_passages_in_langchains_order(
    retriever: Retriever, small_library: Library, model: HashedModel
) -> None:
    question = "When was the harbour bridge opened?"
    found = retriever.search(question, strategy="classic")
    store = small_library.vector_store(ModelEmbeddings(model))
    chosen = store.max_marginal_relevance_search(question, k=10, fetch_k=20, lambda_mult=0.7)
    assert [one.text for one in found.passages] == [document.page_content for document in chosen]
    assert found.legs == ("dense",)
