from __future__ import annotations

import contextvars
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.errors import ModelError
from rag.locales import say
from rag.retrieval.strategies import Rerank, SearchRequest
from rag.tracing import Trace
from rag.types import Notice


@dataclass
class WordReranker:
    """A reranker that prefers texts with `word`, and scores only the first `reach`."""

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


def test_without_a_model_the_fused_score_decides_and_the_notes_say_so(engine: Any) -> None:
    found = Rerank().find(SearchRequest("harbour ferry"), engine())
    assert found.hits[0].passage.title == "Ferry" and found.diversify
    assert all(hit.passage.score == hit.passage.scores["fused"] for hit in found.hits)
    note = Notice(**found.notes["reranker"])
    assert say(note, "en") != say(note, "zh")


def test_nothing_found(engine: Any) -> None:
    assert Rerank().find(SearchRequest("龙舟"), engine()).hits == []


def test_reading_again_is_a_span_and_so_are_the_legs(engine: Any) -> None:
    trace = Trace()

    def search() -> None:
        trace.activate()
        Rerank().find(SearchRequest("harbour ferry"), engine(reranker=WordReranker("lanes")))

    contextvars.copy_context().run(search)
    assert [(span.kind, span.status) for span in trace.spans] == [("leg", "ok"), ("rerank", "ok")]
    legs, reread = trace.spans
    assert (reread.name, reread.attributes["of"]) == ("words", legs.attributes["hits"])
