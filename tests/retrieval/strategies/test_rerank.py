from __future__ import annotations

import contextvars
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rag.errors import ModelError
from rag.messages import say
from rag.retrieval.strategies import SearchRequest
from rag.retrieval.strategies.closeness import PAIRS, SENTENCE, Closeness
from rag.retrieval.strategies.rerank import Rerank
from rag.tracing import Trace
from rag.types import Notice


@dataclass
class WordReranker:
    """Likes texts that hold `word`; reaches the first `reach`."""

    word: str
    reach: int = 99
    name: str = "words"
    texts: list[str] = field(default_factory=list)

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        self.texts = list(texts)
        return [(0.9 if self.word in text else 0.2) if i < self.reach else None for i, text in enumerate(texts)]


def test_the_cross_encoder_has_the_last_word(engine: Any) -> None:
    reranker = WordReranker("eight lanes")
    found = Rerank().find(SearchRequest("harbour ferry"), engine(reranker=reranker))
    first = found.hits[0].passage
    assert first.title == "Bridge"
    assert (first.score, first.scores["rerank"], first.ranks["rerank"]) == (0.9, 0.9, 1)
    assert first.ranks["fused"] > 1
    assert reranker.texts[0].startswith("Ferry\n")
    assert not found.diversify


def test_candidates_out_of_time_stand_behind_in_their_order(engine: Any) -> None:
    request = SearchRequest("harbour ferry tea water crater")
    order = [hit.passage.title for hit in Rerank().find(request, engine(reranker=WordReranker("", 99))).hits]
    found = Rerank().find(request, engine(reranker=WordReranker("nowhere", 2)))
    assert [hit.passage.title for hit in found.hits] == order
    scores = [hit.passage.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores[1:])) == len(scores) - 1
    params = found.notes["reranker"]["params"]
    assert (params["reached"], params["of"]) == (2, len(order))


def test_a_reranker_that_fails_leaves_closeness_and_is_told(engine: Any) -> None:
    class Broken(WordReranker):
        def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
            raise ModelError("reranker_no_folder", name="/nowhere")

    found = Rerank().find(SearchRequest("harbour ferry"), engine(reranker=Broken("")))
    assert found.notes["fell_back"] == {"code": "reranker_no_folder", "params": {"name": "/nowhere"}}
    plain = Rerank().find(SearchRequest("harbour ferry"), engine())
    assert [hit.passage for hit in found.hits] == [hit.passage for hit in plain.hits]


def test_without_weights_closeness_orders_and_says_so(engine: Any) -> None:
    found = Rerank().find(SearchRequest("harbour ferry"), engine())
    first = found.hits[0].passage
    assert first.title == "Ferry"
    assert first.scores["rerank"] == first.score > 1.0
    assert found.diversify
    note = Notice(**found.notes["reranker"])
    assert say(note, "en") != say(note, "zh")


def test_nothing_found(engine: Any) -> None:
    assert Rerank().find(SearchRequest("龙舟"), engine()).hits == []


def closeness(engine: Any, question: str) -> Closeness:
    made = engine()
    return Closeness(question, made.library, made.sparse)


def test_one_sentence_with_all_terms_is_closer_than_several_that_share_them(engine: Any) -> None:
    close = closeness(engine, "When was the harbour bridge opened?")
    together = close.score("The harbour bridge was opened in 1932. It is grey.")
    apart = close.score("There is a harbour. It has a bridge. A shop was opened.")
    assert together > apart > 0
    assert together == pytest.approx(SENTENCE + PAIRS)


def test_words_in_their_order_are_closer_than_the_same_words_scattered(engine: Any) -> None:
    close = closeness(engine, "green tea water")
    assert (
        close.score("green tea water")
        > close.score("water, tea, green")
        > close.score("green a b c d tea e f g h water")
    )


def test_chinese_sentences_are_compared_by_their_terms(engine: Any) -> None:
    close = closeness(engine, "龙井茶产于哪里？")
    assert close.score("龙井茶产于杭州。") > close.score("普洱茶很香。清明前采摘。")
    assert close.score("The bridge was opened.") == 0.0


def test_reading_again_is_a_span_and_so_are_the_legs(engine: Any) -> None:
    trace = Trace()

    def search() -> None:
        trace.activate()
        Rerank().find(SearchRequest("harbour ferry"), engine(reranker=WordReranker("lanes")))

    contextvars.copy_context().run(search)
    assert [(span.kind, span.status) for span in trace.spans] == [("leg", "ok"), ("rerank", "ok")]
    legs, reread = trace.spans
    assert (reread.name, reread.attributes["of"]) == ("words", legs.attributes["hits"])
