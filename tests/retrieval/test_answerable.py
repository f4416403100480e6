from __future__ import annotations

import pytest

from rag.models.embedding import SparseEncoder
from rag.models.model_files import MINILM
from rag.retrieval.context import (
    CAVEAT_THRESHOLD,
    FEATURES,
    IMPROBABLE,
    REFUSAL_THRESHOLD,
    UNDECIDED,
    combine_odds,
    estimate_answerable,
    features_of,
    probability,
)
from rag.types import Passage

ENCODER = SparseEncoder()
LAMP = "The lamp was wound every four hours. A keeper who slept lost a week's pay. Oil came in cans of ten litres."
BELL = "In fog the bell rang twice a minute. In snow it rang once a minute. The rope was changed each spring."


def terms(text: str) -> frozenset[int]:
    return frozenset(ENCODER.encode_query(text).indices)


def passage(text: str, *, dense: float = 0.6, sparse: float = 6.0, rank: int = 1, title: str = "Lighthouse") -> Passage:
    return Passage(
        text[:5], "https://x.example/", title, title, "x.example", "en", ("Duties",), text, 0, len(text), 1.0,
        {"dense": rank, "sparse": rank, "fused": rank}, {"dense": dense, "sparse": sparse, "fused": 1.0},
    )  # fmt: skip


PASSAGES = [passage(LAMP), passage(BELL, dense=0.3, sparse=2.0, rank=2)]


def features(question: str, passages: list[Passage] = PASSAGES) -> dict[str, float]:
    return features_of(dict.fromkeys(terms(question), 3.0), passages, ENCODER)


def likely(question: str) -> float:
    return probability(features(question), MINILM, dense_voted=True)


def test_an_answered_question_scores_higher_than_an_unanswered_one() -> None:
    assert likely("How often was the lamp wound?") > CAVEAT_THRESHOLD
    assert likely("Which zeppelin crossed the Atlantic first?") < likely("How often was the lamp wound?")


def test_what_is_asked_is_what_no_title_says_and_stands_together() -> None:
    assert features("Lighthouse lamp wound")["asked"] == 1.0
    assert features("Lighthouse duties lamp wound")["asked"] == 1.0, "a heading counts with what stands below it"
    assert features("Lighthouse lamp zeppelin")["asked"] == pytest.approx(1 / 2)
    assert features("Lighthouse lamp rope")["asked"] == pytest.approx(1 / 2), "in two places"
    assert features("Lighthouse lamp zeppelin")["covered"] == pytest.approx(2 / 3)


WELLS = [passage("The keeper of the well was Ann. The water is salt.", title="Northwell"),
         passage("The keeper of the well was Bo. The rope is new.", title="Southwell"),
         passage("The water of the pond is green.", title="Eastpond")]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "asked", "covered"),
    [
        ("Northwell keeper", 1, 1),
        ("Northwell Southwell keeper", 1, 1),
        ("Northwell Southwell Eastpond keeper", 2 / 3, 1),
        ("Southwell water", 0, 1 / 2),
        ("Northwell Southwell water", 1 / 2, 1),
        ("Northwell Westpond keeper", 1 / 2, 2 / 3),
        ("keeper water", 1, 1),
    ],
)
def test_each_page_that_is_named_is_asked_and_no_other(question: str, asked: float, covered: float) -> None:
    """The number of named pages does not matter: a question about two is as likely to be answered."""
    found = features(question, WELLS)
    assert (found["asked"], found["covered"]) == (pytest.approx(asked), pytest.approx(covered))


def test_a_page_without_sentences_says_its_headings() -> None:
    assert features("Lighthouse duties", [passage("")])["asked"] == 1.0
    assert features("Lighthouse duties lamp", [passage("")])["asked"] == pytest.approx(1 / 2)
    assert features("Lighthouse")["asked"] == 1.0, "nothing is asked of the page"


def test_nothing_found_is_no_evidence() -> None:
    assert features("lamp wound", []) == dict.fromkeys(FEATURES, 0.0)
    assert probability(features("lamp", []), MINILM, dense_voted=True) < REFUSAL_THRESHOLD
    assert probability(features("lamp", []), MINILM, dense_voted=False) < REFUSAL_THRESHOLD


def test_a_model_that_was_not_calibrated_never_leads_to_a_refusal() -> None:
    unrelated = features("月球基地的茶叶价格")
    assert probability(unrelated, "BAAI/bge-m3", dense_voted=True) >= UNDECIDED
    assert probability(unrelated, MINILM, dense_voted=False) < REFUSAL_THRESHOLD


def _held(question: str, *texts: str) -> float:
    return estimate_answerable(list(map(passage, texts)), question, ENCODER, lambda terms: dict.fromkeys(terms, 3.0))


def test_passages_found_for_another_question_are_judged_by_their_text() -> None:
    """Their scores belong to the question that found them, and don't count."""
    assert _held("How often was the lamp wound?", BELL, LAMP) > 0.5 > _held("How often was the lamp wound?", BELL)
    assert _held("Which zeppelin crossed the Atlantic first?", BELL, LAMP) < 0.5
    found = _held("How often rang the bell in fog?", LAMP, BELL)
    assert found == _held("How often rang the bell in fog?", BELL, LAMP)
    assert _held("How often was the lamp wound?") < REFUSAL_THRESHOLD


def test_passages_in_another_language_tell_nothing_by_their_words() -> None:
    assert _held("灯多久上一次发条？", LAMP, BELL) == UNDECIDED


@pytest.mark.parametrize(
    ("read", "likely", "improbable"),
    [(1.0, 0.3, False), (0.05, 0.5, True), (0.05, 0.9, False), (0.3, 0.3, False), (0.2, 0.3, True), (0.0, 0.99, True)],
)
def test_what_was_read_and_what_was_found_count_together(read: float, likely: float, improbable: bool) -> None:
    assert (combine_odds(read, likely) < IMPROBABLE) is improbable
