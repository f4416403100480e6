"""The effect of the estimated answerability on the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from rag.retrieval.context import CAVEAT_THRESHOLD, REFUSAL_THRESHOLD
from rag.runs.runs import Runs
from rag.types import Answer, Retrieval, RunMode
from tests.support.answering import BRIDGE, FakeRetriever, ScriptedReasoner, ask, passage
from tests.support.quoting import make_quoter

UNLIKELY, DOUBTFUL, LIKELY = REFUSAL_THRESHOLD / 2, (REFUSAL_THRESHOLD + CAVEAT_THRESHOLD) / 2, 0.9


@dataclass
class Judging(FakeRetriever):
    answerable: float = LIKELY

    def search(self, question: str, before: Sequence[str] = ()) -> Retrieval:  # type: ignore[override]
        found = tuple(super().search(question, before).passages)
        return Retrieval(question, "mmr", found, (), ("dense",), answerable=self.answerable)


def run(runs: Runs, answerable: float, mode: RunMode = "fast", *, relevant: bool = True) -> Answer:
    reasoner = ScriptedReasoner(verdicts=[relevant], answers=[["It erupted in 1953. [1]"]])
    answer, _ = ask(runs, reasoner, Judging(answerable=answerable), mode=mode)
    return answer


def test_fast_mode_without_a_model_refuses_unlikely_questions(runs: Runs) -> None:
    answer, _ = ask(runs, ScriptedReasoner(kind="extractive"), Judging(answerable=UNLIKELY))
    assert (answer.outcome, answer.text) == ("not_in_pages", "")
    assert answer.passages
    assert answer.answerable == UNLIKELY


def test_a_refusal_in_a_conversation_shows_first_what_has_the_words_of_the_last_question(runs: Runs) -> None:
    earlier = [("When was the bridge opened?", "In 1932 [1].")]
    for history, first in (([], "p2"), (earlier, "p1")):
        retriever = Judging([passage(2, BRIDGE), passage(1)], answerable=UNLIKELY)
        reasoner = ScriptedReasoner(kind="extractive")
        answer, _ = ask(runs, reasoner, retriever, history=history, quoter=make_quoter())
        assert (answer.outcome, answer.passages[0].id) == ("not_in_pages", first)


def test_what_a_model_says_of_passages_counts_for_more_than_how_likely_they_answer(runs: Runs) -> None:
    answer = run(runs, UNLIKELY)
    assert (answer.outcome, answer.notice and answer.notice.code) == ("caveat", "in_doubt")
    declined, _ = ask(runs, ScriptedReasoner(answers=[[]]), Judging(answerable=UNLIKELY))
    assert (declined.outcome, declined.text) == ("not_in_pages", "")


@pytest.mark.parametrize(("answerable", "outcome"), [(DOUBTFUL, "caveat"), (LIKELY, "answered")])
def test_fast_answers_what_is_doubtful_with_a_caveat(runs: Runs, answerable: float, outcome: str) -> None:
    answer = run(runs, answerable)
    assert answer.outcome == outcome
    assert answer.text
    assert outcome == "answered" or (answer.notice and answer.notice.code == "in_doubt")


@pytest.mark.parametrize(("relevant", "outcome"), [(True, "caveat"), (False, "not_in_pages")])
def test_deep_overrules_a_refusal_only_with_evidence(runs: Runs, relevant: bool, outcome: str) -> None:
    answer = run(runs, UNLIKELY, "deep", relevant=relevant)
    assert (answer.outcome, bool(answer.citations)) == (outcome, relevant)
    assert answer.searches[0].question == "When did Mount Aso erupt?"
