"""A stored answer is restored unchanged, except for passage texts and searches."""

from __future__ import annotations

import json
from dataclasses import replace

from rag.runs.run import answer_from_json, compress_searches, decompress_searches, to_json
from rag.types import Answer, Candidate, Citation, Notice, Retrieval, Statement, Step, Usage
from tests.support.answering import passage

ANSWER = Answer(
    question="When?",
    mode="deep",
    outcome="caveat",
    text="In 1953. [1]",
    citations=(Citation(1, "https://example.org/1", "h", "Aso", "In 1953.", 3, 11, ("Top", "History")),),
    passages=(passage(1),),
    steps=(Step("grade", 1.5, {"decision": "graded", "grades": [{"id": "p1", "relevant": True}], "tokens": 7}),),
    model_calls=3,
    notice=Notice("budget_best", {"searches": 2}),
    searches=(Retrieval("When?", "mmr", (passage(1),), (), ("dense",)),),
    statements=(Statement(0, 8, "supported", (1,)),),
    standalone="When did it erupt?",
    usage=Usage(3, 100, 20, True, 0.5),
)


def test_there_and_back() -> None:
    data = json.loads(json.dumps(to_json(ANSWER)))
    back = answer_from_json(data)
    light = replace(passage(1), text="", section=("Top", "Part 1"))
    assert back == replace(ANSWER, searches=(), passages=(light,))


def test_no_passage_text_is_stored_and_quotes_are() -> None:
    stored = json.dumps(to_json(ANSWER))
    assert "crater" not in stored and "In 1953." in stored


def test_older_and_newer_records_are_read() -> None:
    assert answer_from_json({"question": "q", "mode": "fast", "outcome": "answered", "text": "t"}).usage == Usage()
    assert answer_from_json({**to_json(ANSWER), "from_the_future": 1}).question == "When?"


def test_searches_keep_their_candidates_and_the_openings_of_texts() -> None:
    long = replace(passage(2, "word " * 400), ranks={"dense": 1}, scores={"dense": 0.5}, parent=(0, 9))
    candidates = (Candidate(long, 1, None, 0.25, "merged", "p1"), Candidate(passage(1), None, "p2"))
    search = Retrieval("When?", "auto", (long,), candidates, ("dense",), {"search": 1.5}, {"why": Notice("x")}, 0.7)
    (back,) = decompress_searches(compress_searches([search]))
    short = replace(long, text=long.text[:300], section=("Top", "Part 2"))
    assert back.candidates[0] == replace(candidates[0], passage=short)
    assert back.candidates[1].passage.text == passage(1).text
    assert back == replace(search, passages=(), candidates=back.candidates, notes={"why": {"code": "x", "params": {}}})
    assert len(compress_searches([search])) < 1000
    assert (compress_searches([]), decompress_searches(b"")) == (b"", ())
