"""A follow-up in the loop: completed by a model, else searched for and quoted with the questions before it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rag.agent.chat import ChatReasoner
from rag.agent.conversing.condense import Exchange, questions_before, searched_with
from rag.agent.extractive import ExtractiveReasoner
from rag.agent.runs import Runs
from rag.errors import ModelError
from rag.models.sparse import SparseEncoder
from tests.agent.support import FakeRetriever, ScriptedReasoner, ask, passage

HISTORY = [("When did Mount Aso erupt?", "In 1953."), ("Thanks!", "You are welcome.")]
FOLLOW_UP, MEANT = "How wide is its crater?", "How wide is Mount Aso's crater?"


class Completing(ScriptedReasoner):
    """Completes what it is asked to, unless `reply` is an error."""

    reply: str | ModelError = MEANT

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        if isinstance(self.reply, ModelError):
            raise self.reply
        return self.reply


@pytest.fixture
def runs() -> Runs:
    return Runs()


def test_small_talk_is_no_question_before() -> None:
    told = [Exchange(*one) for one in HISTORY] + [Exchange("And?", "", "And when did Fuji erupt?")]
    assert questions_before(told) == ["When did Mount Aso erupt?", "And when did Fuji erupt?"]


def test_a_model_completes_what_is_searched_for_and_shown(runs: Runs) -> None:
    retriever = FakeRetriever()
    answer, _ = ask(runs, Completing(), retriever, question=FOLLOW_UP, history=HISTORY)
    assert (retriever.queries, retriever.followed) == ([MEANT], [[]])
    assert (answer.question, answer.standalone, searched_with(answer.steps)) == (FOLLOW_UP, MEANT, [])


def test_a_complete_question_stays_as_the_model_leaves_it(runs: Runs) -> None:
    reasoner, retriever = Completing(), FakeRetriever()
    reasoner.reply = FOLLOW_UP
    answer, _ = ask(runs, reasoner, retriever, question=FOLLOW_UP, history=HISTORY)
    assert (retriever.queries, answer.standalone) == ([FOLLOW_UP], "")


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_where_no_model_completes_it_the_search_takes_the_questions_before_in(runs: Runs, mode: str) -> None:
    reasoner = Completing(verdicts=[False])
    reasoner.reply = ModelError("chat_timeout")
    retriever = FakeRetriever()
    answer, _ = ask(runs, reasoner, retriever, question=FOLLOW_UP, history=HISTORY, mode=mode)  # type: ignore[arg-type]
    assert retriever.queries[0] == FOLLOW_UP
    assert retriever.followed == [["When did Mount Aso erupt?"]] * len(retriever.queries)
    assert (len(retriever.queries) > 1) == (mode == "deep"), "other words are searched for beside them too"
    assert (answer.standalone, searched_with(answer.steps)) == ("", ["When did Mount Aso erupt?"])


def test_quotes_are_chosen_by_the_questions_before_too(runs: Runs) -> None:
    sparse = SparseEncoder()
    reasoner = ExtractiveReasoner(sparse, lambda terms: dict.fromkeys(terms, 2.0))
    fuji = passage(1, "The crater of Mount Fuji is 780 metres wide. It is climbed in summer.")
    aso = passage(2, "The crater of Mount Aso is 24 kilometres wide. It is visited all year.", score=1.0)
    retriever = FakeRetriever(default=[fuji, aso])
    question = "How wide is the crater?"
    answer, _ = ask(runs, reasoner, retriever, question=question, history=[("When did Mount Aso erupt?", "In 1953.")])
    assert answer.text.startswith("The crater of Mount Aso is 24 kilometres wide.")
    alone, _ = ask(runs, reasoner, retriever, question=question)
    assert alone.text.startswith("The crater of Mount Fuji")


def test_passages_are_graded_beside_the_questions_before() -> None:
    sparse = SparseEncoder()
    reasoner = ExtractiveReasoner(sparse, lambda terms: dict.fromkeys(terms, 2.0))
    found = [passage(1, "A recipe for tea, with a wide pot."), passage(2, "Mount Aso erupted; a lake filled it.")]
    assert asyncio.run(reasoner.grade("How wide?", found)) == [True, False]
    assert asyncio.run(reasoner.following(["When did Mount Aso erupt?"]).grade("How wide?", found))[1]
    assert not hasattr(ChatReasoner, "following")
