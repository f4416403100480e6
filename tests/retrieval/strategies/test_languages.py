from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag.errors import ModelError
from rag.locales import say
from rag.models.embedding import SparseEncoder
from rag.retrieval.strategies import STRATEGIES, Engine, SearchRequest, merge_searches
from rag.store.qdrant.library import Library
from rag.store.values import Filters, Hit
from rag.types import Notice, Passage
from tests.retrieval.strategies.conftest import ScriptedExpander
from tests.support.hashed_model import HashedModel

QUESTION = "海港大桥是哪一年开通的？"


@pytest.mark.parametrize("strategy", ["mmr", "weighted", "hybrid", "auto", "rerank"])
def test_a_chinese_question_finds_an_english_page_by_one_translation(engine: Any, strategy: str) -> None:
    expander = ScriptedExpander(translated="When was the harbour bridge opened?")
    found = STRATEGIES[strategy].find(SearchRequest(QUESTION), engine(expander=expander))
    assert found.hits[0].passage.title == "Bridge"
    assert [asked for asked in expander.asked if asked[0] == "translation"] == [("translation", "en")]
    assert "dense" in found.legs
    note = Notice(**found.notes["translation"])
    assert expander.translated in say(note, "en")
    assert say(note, "zh") != say(note, "en")


def test_an_english_question_finds_a_chinese_page(engine: Any) -> None:
    expander = ScriptedExpander(translated="龙井茶产于哪里？")
    found = STRATEGIES["mmr"].find(SearchRequest("Where does Longjing come from?"), engine(expander=expander))
    assert found.hits[0].passage.title == "茶"


@pytest.mark.parametrize(
    ("question", "more", "uses_model"),
    [
        ("龙井茶产于哪里？", {}, True),
        ("When was the harbour bridge opened?", {}, True),
        (QUESTION, {}, False),
        (QUESTION, {"filters": Filters(languages=("zh",))}, True),
    ],
    ids=["found", "found in English", "no model", "no page in another language"],
)
def test_nothing_is_translated_in_vain(engine: Any, question: str, more: Any, uses_model: bool) -> None:
    expander = ScriptedExpander(translated="harbour", uses_model=uses_model)
    STRATEGIES["mmr"].find(SearchRequest(question, **more), engine(expander=expander))
    assert expander.asked == []


def test_a_multilingual_model_needs_no_translation(filled: Library) -> None:
    class Polyglot(HashedModel):
        def can_read(self, text: str) -> bool:
            return True

    expander = ScriptedExpander(translated="harbour")
    STRATEGIES["mmr"].find(SearchRequest(QUESTION), Engine(filled, Polyglot(), SparseEncoder(), expander))
    assert expander.asked == []


def test_a_model_that_fails_leaves_what_was_found(engine: Any) -> None:
    expander = ScriptedExpander(error=ModelError("chat_timeout"))
    found = STRATEGIES["mmr"].find(SearchRequest(QUESTION), engine(expander=expander))
    assert found.notes["fell_back"]["code"] == "chat_timeout"


def hit(name: str, score: float) -> Hit:
    return Hit(Passage(name, "", "", "", "", "", (), name, 0, 1, score=score))


def order(searches: Sequence[tuple[Sequence[Hit], float]]) -> list[tuple[str, float]]:
    return [(one.passage.id, round(one.passage.score, 3)) for one in merge_searches(searches)]


def test_each_search_weighs_by_what_it_covered_and_nothing_counts_twice() -> None:
    first, second = [hit("a", 9.0), hit("b", 4.5)], [hit("c", 0.5), hit("b", 0.4)]
    assert order([(first, 0.1), (second, 0.8)]) == [("c", 0.8), ("b", 0.64), ("a", 0.1)]
    assert order([([], 0.0), (second, 0.0)])[0][0] == "c"
