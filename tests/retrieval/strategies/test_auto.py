from __future__ import annotations

from typing import Any

import pytest

from rag.errors import ModelError
from rag.locales import say
from rag.retrieval.strategies import Auto, Need, SearchRequest, decide_by_rules
from rag.types import Notice
from tests.retrieval.strategies.conftest import ScriptedExpander


@pytest.mark.parametrize(
    ("question", "need"),
    [
        ("What does error E1042 mean?", "exact"),
        ("What changed in version 4.2.1?", "exact"),
        ('Which law says "cruel and unusual"?', "exact"),
        ("Which TLS does it use?", "exact"),
        ("What did the chairman of Morgan Stanley say?", "exact"),
        ("“明前茶”是什么？", "exact"),
        ("GPT4 有几层？", "exact"),
        ("Why is the sky blue?", "concept"),
        ("How do plants turn light into sugar?", "concept"),
        ("What is the difference between tea and coffee?", "concept"),
        ("为什么天空是蓝色的？", "concept"),
        ("绿茶和红茶有什么区别？", "concept"),
        ("Who built the bridge and when was it opened?", "facets"),
        ("Where is it made? What does it cost?", "facets"),
        ("龙井茶产于哪里，炒制需要几道手法？", "facets"),
        ("两座桥分别有多长？", "facets"),
        ("Who built the bridge?", ""),
        ("What is the price of bread and butter?", ""),
        ("How many lanes are there?", ""),
        ("龙井茶产于哪里？", ""),
    ],
)
def test_rules(question: str, need: Need) -> None:
    found, why = decide_by_rules(question)
    assert found == need
    assert say(Notice(**why), "en") != say(Notice(**why), "zh")


def test_keywords_weigh_more_for_a_code_and_meaning_for_an_idea(engine: Any) -> None:
    """If two legs find different pages, the one with the greater weight is ahead."""

    def share(question: str) -> float:
        found = Auto().find(SearchRequest(question), engine())
        hit = next(hit.passage for hit in found.hits if "sparse" not in hit.passage.scores)
        tops = max(h.passage.scores.get("dense", 0.0) for h in found.hits)
        return hit.scores["fused"] / (hit.scores["dense"] / tops)

    assert share("harbour ferry E1042") < 0.75 < share("why does the harbour ferry leave")


def test_facets_are_searched_one_by_one(engine: Any) -> None:
    expander = ScriptedExpander(others=["ferry cars", "eruption of Mount Aso"])
    found = Auto().find(SearchRequest("Which cars does it take and when did Aso erupt?"), engine(expander=expander))
    assert found.notes["why"]["code"] == "auto_facets"
    assert found.notes["queries"][1:] == expander.others
    assert ("need", "Which cars does it take and when did Aso erupt?") not in expander.asked


def test_the_model_is_asked_only_where_rules_do_not_tell(engine: Any) -> None:
    expander = ScriptedExpander(needed="concept")
    found = Auto().find(SearchRequest("the harbour ferry"), engine(expander=expander))
    assert found.notes["why"] == {"code": "auto_concept_model", "params": {"model": "scripted"}}
    Auto().find(SearchRequest("What does error E1042 mean?"), engine(expander=expander))
    assert [method for method, _ in expander.asked] == ["need"]


def test_a_model_that_fails_leaves_the_default(engine: Any) -> None:
    expander = ScriptedExpander(error=ModelError("call_limit", limit=2))
    found = Auto().find(SearchRequest("the harbour ferry"), engine(expander=expander))
    assert found.hits[0].passage.title == "Ferry"
    assert found.notes["why"]["code"] == "auto_plain"
    assert found.notes["fell_back"]["code"] == "call_limit"


@pytest.mark.parametrize("need", ["exact", "concept", "facets"])
def test_every_reason_has_a_sentence(need: str) -> None:
    for code in (f"auto_{need}", f"auto_{need}_model"):
        said = Notice(code, {"words": "w", "word": "w", "parts": 2, "model": "m"})
        assert say(said, "en") != say(said, "zh")
