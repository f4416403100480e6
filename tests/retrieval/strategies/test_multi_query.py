from __future__ import annotations

from typing import Any

import pytest

from rag.errors import ModelError
from rag.retrieval.strategies import SearchRequest
from rag.retrieval.strategies.multi_query import MAX_PHRASINGS, MultiQuery, fuse_phrasings, remove_duplicates
from tests.retrieval.strategies.conftest import ScriptedExpander


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
    assert batches == [2, 6]  # a look at what the question finds, then all phrasings at once
    assert found.notes["queries"] == ["harbour ferry", *expander.others]


def test_ranks_tell_which_phrasing_found_a_passage(engine: Any) -> None:
    expander = ScriptedExpander(others=["boiling water for black tea"])
    found = MultiQuery().find(SearchRequest("harbour ferry"), engine(expander=expander))
    tea = next(hit.passage for hit in found.hits if hit.passage.title == "Tea")
    assert tea.ranks["sparse.2"] == 1
    assert "sparse" not in tea.ranks
    assert set(found.legs) == {"dense", "sparse"}


def test_the_questions_own_words_count_most() -> None:
    fused = fuse_phrasings({"sparse": {"a": 4.0}, "sparse.2": {"b": 9.0}, "sparse.3": {"b": 3.0}})
    assert fused["a"] > fused["b"] > 0


def test_what_both_find_goes_before_what_one_finds() -> None:
    fused = fuse_phrasings({"sparse": {"a": 4.0, "b": 4.0}, "sparse.2": {"b": 1.0}})
    assert fused["b"] > fused["a"]


def test_a_leg_that_only_another_phrasing_has_counts(engine: Any) -> None:
    """The model reads the second phrasing, not the question."""
    expander = ScriptedExpander(others=["boiling water for black tea"])
    found = MultiQuery().find(SearchRequest("红茶用什么水"), engine(expander=expander))
    assert found.hits[0].passage.title == "Tea"
    assert "dense.2" in found.hits[0].passage.ranks


def test_phrasings_that_say_the_same_are_dropped() -> None:
    given = ["When?", "when", "  ", "Which year was it?", "the year", "the date", "the day"]
    kept = remove_duplicates("WHEN", given)
    assert kept == ["Which year was it?", "the year", "the date"]
    assert len(kept) == MAX_PHRASINGS


def test_a_model_that_fails_leaves_the_plain_question(engine: Any) -> None:
    expander = ScriptedExpander(error=ModelError("chat_timeout"))
    found = MultiQuery().find(SearchRequest("harbour ferry"), engine(expander=expander))
    assert found.hits[0].passage.title == "Ferry"
    assert found.notes["fell_back"]["code"] == "chat_timeout"
