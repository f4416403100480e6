"""All metrics of an answered question, and figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.evaluation.cases import Case, Evidence
from rag.evaluation.metrics import METRICS, Judges, TimedAnswer, columns_of, scores
from rag.types import Answer, Citation, Statement, Usage
from tests.support.answering import BRIDGE, VOLCANO, passage

TEXT = "The bridge was opened in 1932.[1]"
CITED = Citation(1, "https://example.org/1", "hash1", "Bridge", BRIDGE[:30], 100, 130)
CASE = Case("q", "When was the bridge opened?", "en", ("1932",), (Evidence("u", BRIDGE[:30]),), answerable=True)
ONES = np.ones((1, 4))


def answered(**how: Any) -> Answer:
    given: dict[str, Any] = {
        "citations": (CITED,),
        "passages": (passage(1, BRIDGE), passage(2, VOLCANO)),
        "statements": (Statement(0, 30, "supported", (1,)),),
        "model_calls": 2,
        "seconds": 1.5,
        "answerable": 0.9,
        "usage": Usage(2, 100, 20),
    }
    return Answer(CASE.question, "fast", how.pop("outcome", "answered"), how.pop("text", TEXT), **{**given, **how})


def test_an_answer_that_is_right_in_all() -> None:
    found = scores(CASE, TimedAnswer(answered(), 0.4), Judges())
    whole = ("recall@4000", "all@4000", "hit@1", "MRR@10", "nDCG@10", "context_precision", "context_recall")
    whole += ("faithfulness", "citation_precision", "citation_recall", "contains", "refusal_right", "recall@5")
    assert {name: found[name] for name in whole} == dict.fromkeys(whole, 1.0)
    assert (found["precision@5"], found["exact_match"], found["token_f1"]) == (0.2, 0.0, 2 / 6)
    assert (found["calls"], found["tokens"], found["money"]) == (2.0, 120.0, None)
    assert (found["first_token"], found["seconds"], found["noise_sensitivity"]) == (0.4, 1.5, 0.0)
    assert (found["derived_faithfulness"], found["derived_relevance"], found["derived_completeness"]) == (5.0, 5.0, 5.0)
    assert found["answer_correctness"] is None, "1932 states nothing, and nothing encodes"
    assert set(METRICS) - set(found) == {
        *("refusal_precision", "refusal_recall", "answerable_auroc", "answer_relevancy"),
        *("judged_faithfulness", "judged_relevance", "judged_completeness"),
        *("question_answer_cosine", "mean_similarity", "max_similarity", "coverage"),
        *("first_token_p50", "first_token_p95", "seconds_p50", "seconds_p95"),
    }


def test_a_refusal_says_nothing_that_could_be_judged_and_answers_nothing() -> None:
    found = scores(CASE, TimedAnswer(answered(outcome="not_in_pages", text="", statements=(), citations=())), Judges())
    assert (found["contains"], found["token_f1"], found["refusal_right"], found["refused"]) == (0.0, 0.0, 0.0, 1.0)
    assert "faithfulness" not in found
    assert found["derived_faithfulness"] is None


def test_what_failed_is_no_refusal() -> None:
    found = scores(CASE, TimedAnswer(answered(outcome="failed", text="", statements=(), citations=())), Judges())
    assert (found["failed"], found["contains"]) == (1.0, 0.0)
    assert "refused" not in found


def test_cosines_by_hand() -> None:
    """Question (1, 0), answer (.6, .8), reference (0, 1), passages (1, 0) and (.6, .8)."""
    reference = "The bridge was opened in nineteen hundred and thirty-three, on a Friday."
    vectors = [[1, 0], [1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]]

    def encode(question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        assert (question, *texts) == (CASE.question, BRIDGE, VOLCANO, TEXT[:30], reference)
        return np.array(vectors, dtype=np.float32)

    case = Case("q", CASE.question, answers=(reference,))
    found = scores(case, TimedAnswer(answered()), Judges(encode=encode))
    assert found["question_answer_cosine"] == pytest.approx(0.6)
    assert (found["mean_similarity"], found["max_similarity"]) == (pytest.approx(0.8), 1.0)
    assert found["coverage"] == pytest.approx(0.4)
    factual = (found["answer_correctness"] - 0.25 * 0.8) / 0.75  # type: ignore[operator]
    assert factual == pytest.approx(0.0, abs=1e-6), "1932 is not nineteen hundred and thirty-three"
    assert "coverage" not in scores(case, TimedAnswer(answered()), Judges(encode=lambda *_: None))


def test_an_answer_of_citations_only_has_no_cosine_with_the_reference() -> None:
    case = Case(
        "q", CASE.question, answers=("The bridge was opened in nineteen hundred and thirty-three, on a Friday.",)
    )

    def encode(question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        assert texts == [BRIDGE, VOLCANO]
        return np.array([[1, 0], [1, 0], [0.6, 0.8]], dtype=np.float32)

    answer = answered(text="[1]", statements=())
    with_vectors, without = (scores(case, TimedAnswer(answer), Judges(encode=one)) for one in (encode, None))
    assert with_vectors["question_answer_cosine"] is None
    assert with_vectors["answer_correctness"] == without["answer_correctness"]
    assert (with_vectors["mean_similarity"], with_vectors["coverage"]) == (pytest.approx(0.8), pytest.approx(0.4))


def test_refusals_of_a_run_by_hand() -> None:
    """Four questions, one of each: refused rightly or wrongly, answered wrongly or rightly; 3 of 4 pairs in order."""
    rows = [
        {"refused": 1.0, "unanswerable": 1.0, "answerable": 0.1},
        {"refused": 1.0, "unanswerable": 0.0, "answerable": 0.2},
        {"refused": 0.0, "unanswerable": 1.0, "answerable": 0.5},
        {"refused": 0.0, "unanswerable": 0.0, "answerable": 0.9},
    ]
    columns = columns_of(rows)
    figures = {
        name: float(METRICS[name].compute(ONES, columns, METRICS[name].mask(columns))[0])
        for name in ("refusal_precision", "refusal_recall", "answerable_auroc")
    }
    assert figures == {"refusal_precision": 0.5, "refusal_recall": 0.5, "answerable_auroc": 0.75}


def test_what_was_not_judged_is_left_out_and_counted() -> None:
    columns = columns_of([{"token_f1": 1.0, "seconds": 1.0}, {"token_f1": None, "seconds": 9.0}, {"seconds": 2.0}, {}])
    f1, late = METRICS["token_f1"], METRICS["seconds_p95"]
    assert f1.mask(columns).tolist() == [True, False, False, False]
    assert f1.compute(ONES, columns, f1.mask(columns)).tolist() == [1.0]
    assert late.compute(ONES, columns, late.mask(columns)).tolist() == [9.0]
