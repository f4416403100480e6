from __future__ import annotations

from typing import Any

import pytest

from rag.errors import ModelError
from rag.retrieval.strategies import MAX_PHRASINGS, Hyde, MultiQuery, SearchRequest, fuse_phrasings, remove_duplicates
from tests.retrieval.strategies.conftest import ScriptedExpander

QUESTION = "Which crossing came first?"


def titles(found: Any) -> list[str]:
    return [hit.passage.title for hit in found.hits]


def test_the_passage_is_what_the_dense_leg_is_asked(engine: Any) -> None:
    expander = ScriptedExpander(
        hypothetical="The harbour bridge was opened in 1932 and carries eight lanes of traffic."
    )
    plain = Hyde().find(SearchRequest(QUESTION), engine())
    found = Hyde().find(SearchRequest(QUESTION), engine(expander=expander))
    scores = {hit.passage.title: hit.passage.scores["dense"] for hit in found.hits if "dense" in hit.passage.scores}
    assert titles(found)[0] == "Bridge"
    assert max(scores, key=lambda title: scores[title]) == "Bridge"
    assert scores["Bridge"] > max(hit.passage.scores.get("dense", 0.0) for hit in plain.hits)
    assert found.notes == {"expander": "scripted", "passage": expander.hypothetical}


def test_the_keyword_leg_is_asked_the_question_itself(engine: Any) -> None:
    expander = ScriptedExpander(hypothetical="A zeppelin with tea.")
    found = Hyde().find(SearchRequest("harbour ferry"), engine(expander=expander))
    keyword = {hit.passage.title for hit in found.hits if "sparse" in hit.passage.scores}
    assert keyword == {"Ferry", "Bridge"}


@pytest.mark.parametrize("strategy", [Hyde(), MultiQuery()], ids=lambda strategy: strategy.name)
def test_a_model_that_fails_leaves_the_plain_question(engine: Any, strategy: Any) -> None:
    expander = ScriptedExpander(error=ModelError("call_limit", limit=2))
    found = strategy.find(SearchRequest("harbour ferry"), engine(expander=expander))
    assert titles(found) == titles(strategy.find(SearchRequest("harbour ferry"), engine()))
    assert found.notes["fell_back"] == {"code": "call_limit", "params": {"limit": 2}}


@pytest.mark.parametrize("passage", ["", "龙井茶产于杭州的西湖。"])
def test_a_passage_that_is_missing_or_cannot_be_read_changes_nothing(engine: Any, passage: str) -> None:
    found = Hyde().find(SearchRequest("harbour ferry"), engine(expander=ScriptedExpander(hypothetical=passage)))
    assert titles(found) == titles(Hyde().find(SearchRequest("harbour ferry"), engine()))


def test_the_expander_sees_what_the_question_finds_by_itself(engine: Any) -> None:
    expander = ScriptedExpander()
    Hyde().find(SearchRequest("harbour ferry"), engine(expander=expander))
    assert expander.near[0] == "Ferry"


def test_every_part_finds_its_page_in_one_round_trip(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expander = ScriptedExpander(others=["boiling water for black tea", "eruption of Mount Aso"])
    made = engine(expander=expander)
    batches: list[int] = []
    plain = made.library.client.query_batch_points

    def counted(collection: str, requests: Any, **more: Any) -> Any:
        batches.append(len(requests))
        return plain(collection, requests, **more)

    monkeypatch.setattr(made.library.client, "query_batch_points", counted)
    found = MultiQuery().find(SearchRequest("harbour ferry", k=3, fetch_k=3), made)
    assert {hit.passage.title for hit in found.hits} == {"Ferry", "Tea", "Volcano"}
    assert batches == [2, 6]  # first the question's own results, then all phrasings at once
    assert found.notes["queries"] == ["harbour ferry", *expander.others]


def test_the_questions_own_words_count_most() -> None:
    fused = fuse_phrasings({"sparse": {"a": 4.0}, "sparse.2": {"b": 9.0}, "sparse.3": {"b": 3.0}})
    assert fused["a"] > fused["b"] > 0


def test_what_both_find_goes_before_what_one_finds() -> None:
    fused = fuse_phrasings({"sparse": {"a": 4.0, "b": 4.0}, "sparse.2": {"b": 1.0}})
    assert fused["b"] > fused["a"]


def test_a_leg_that_only_another_phrasing_has_counts(engine: Any) -> None:
    """The model can read the second phrasing, but not the question."""
    expander = ScriptedExpander(others=["boiling water for black tea"])
    found = MultiQuery().find(SearchRequest("红茶用什么水"), engine(expander=expander))
    assert found.hits[0].passage.title == "Tea"
    assert "dense.2" in found.hits[0].passage.ranks


def test_phrasings_that_say_the_same_are_dropped() -> None:
    given = ["When?", "when", "  ", "Which year was it?", "the year", "the date", "the day"]
    kept = remove_duplicates("WHEN", given)
    assert kept == ["Which year was it?", "the year", "the date"]
    assert len(kept) == MAX_PHRASINGS
