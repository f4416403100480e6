from __future__ import annotations

from typing import Any

import pytest

from rag.errors import ModelError
from rag.retrieval.strategies import SearchRequest
from rag.retrieval.strategies.hyde import Hyde
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


def test_a_model_that_fails_leaves_the_plain_question(engine: Any) -> None:
    expander = ScriptedExpander(error=ModelError("call_limit", limit=2))
    found = Hyde().find(SearchRequest("harbour ferry"), engine(expander=expander))
    assert titles(found) == titles(Hyde().find(SearchRequest("harbour ferry"), engine()))
    assert found.notes["fell_back"] == {"code": "call_limit", "params": {"limit": 2}}


@pytest.mark.parametrize("passage", ["", "龙井茶产于杭州的西湖。"])
def test_a_passage_that_is_missing_or_cannot_be_read_changes_nothing(engine: Any, passage: str) -> None:
    found = Hyde().find(SearchRequest("harbour ferry"), engine(expander=ScriptedExpander(hypothetical=passage)))
    assert titles(found) == titles(Hyde().find(SearchRequest("harbour ferry"), engine()))


def test_the_expander_sees_what_the_question_finds_by_itself(engine: Any) -> None:
    expander = ScriptedExpander()
    Hyde().find(SearchRequest("harbour ferry"), engine(expander=expander))
    assert expander.near[0] == "Ferry"
