from __future__ import annotations

import pytest

from rag.models.sparse import SparseEncoder
from rag.retrieval.answerable import DOUBT, FEATURES, REFUSE, UNDECIDED, features_of, held_by, probability
from rag.types import Passage

ENCODER = SparseEncoder()
LAMP = "The lamp was wound every four hours. A keeper who slept lost a week's pay. Oil came in cans of ten litres."
BELL = "In fog the bell rang twice a minute. In snow it rang once a minute. The rope was changed each spring."


def terms(text: str) -> frozenset[int]:
    return frozenset(ENCODER.encode_query(text).indices)


def passage(text: str, *, dense: float = 0.6, sparse: float = 6.0, rank: int = 1) -> Passage:
    return Passage(
        text[:5], "https://x.example/", "h", "Lighthouse", "x.example", "en", ("Duties",), text, 0, len(text), 1.0,
        {"dense": rank, "sparse": rank, "fused": rank}, {"dense": dense, "sparse": sparse, "fused": 1.0},
    )  # fmt: skip


PASSAGES = [passage(LAMP), passage(BELL, dense=0.3, sparse=2.0, rank=2)]


def features(question: str, passages: list[Passage] = PASSAGES) -> dict[str, float]:
    return features_of(dict.fromkeys(terms(question), 3.0), passages, ENCODER)


def likely(question: str) -> float:
    return probability(features(question), "builtin", dense_voted=True)


def test_a_question_that_a_sentence_answers_is_likelier_than_one_that_none_does() -> None:
    assert likely("How often was the lamp wound?") > DOUBT
    assert likely("Which zeppelin crossed the Atlantic first?") < likely("How often was the lamp wound?")


def test_evidence_in_two_places_counts_but_a_stray_word_does_not() -> None:
    both = features("keeper slept pay fog bell rang")
    stray = features("keeper slept pay spring")
    assert both["two_windows"] > both["window"] + 0.3
    assert stray["two_windows"] == stray["window"]


def test_terms_that_stand_alone_are_not_together() -> None:
    assert features("lamp wound")["together"] == 1.0
    assert features("lamp zeppelin")["together"] == 0.0


def test_scores_and_their_lead() -> None:
    found = features("lamp wound")
    assert found["dense"] == pytest.approx(0.6)
    assert found["gap"] == pytest.approx(4 / 6)


def test_nothing_found_is_no_evidence() -> None:
    assert features("lamp wound", []) == dict.fromkeys(FEATURES, 0.0)
    assert probability(features("lamp", []), "builtin", dense_voted=True) < REFUSE
    assert probability(features("lamp", []), "builtin", dense_voted=False) < REFUSE


def test_a_model_that_was_not_calibrated_never_leads_to_a_refusal() -> None:
    unrelated = features("月球基地的茶叶价格")
    assert probability(unrelated, "BAAI/bge-m3", dense_voted=True) >= UNDECIDED
    assert probability(unrelated, "builtin", dense_voted=False) < REFUSE


def _held(question: str, *texts: str) -> float:
    return held_by(list(map(passage, texts)), question, ENCODER, lambda terms: dict.fromkeys(terms, 3.0))


def test_passages_found_for_another_question_are_judged_by_what_they_say() -> None:
    """Their scores tell about the question that found them, and count for nothing."""
    assert _held("How often was the lamp wound?", BELL, LAMP) > 0.5 > _held("How often was the lamp wound?", BELL)
    assert _held("Which zeppelin crossed the Atlantic first?", BELL, LAMP) < 0.5
    found = _held("How often rang the bell in fog?", LAMP, BELL)
    assert found == _held("How often rang the bell in fog?", BELL, LAMP)
    assert _held("How often was the lamp wound?") < REFUSE


def test_passages_in_another_language_tell_nothing_by_their_words() -> None:
    assert _held("灯多久上一次发条？", LAMP, BELL) == UNDECIDED
