"""Calls are counted where they are made, and the limit applies to every reasoner."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from rag.reasoning.chat import ChatReasoner
from rag.runs.runs import Runs
from tests.support.answering import ask, nodes_of
from tests.support.fake_model import QueueModel


def _search(query: str = "Aso eruption") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "retrieve", "args": {"query": query}, "id": "1"}])


def _beside(*numbers: int) -> str:
    return f'{{"irrelevant": {list(numbers)}}}'


def test_fast_makes_one_call(runs: Runs) -> None:
    model = QueueModel(replies=[["It erupted in 1953.[1]"]])
    answer, _ = ask(runs, ChatReasoner(model))
    assert (answer.outcome, answer.model_calls, len(model.requests)) == ("answered", 1, 1)
    assert answer.reasoner == "queue-model"


def test_what_was_said_takes_one_call(runs: Runs) -> None:
    answer, _ = ask(runs, ChatReasoner(QueueModel(replies=["Nothing."])), question="What did I ask?")
    assert (answer.text, answer.model_calls) == ("Nothing.", 1)


def test_fast_repairs_no_call_with_the_call_of_the_answer(runs: Runs) -> None:
    model = QueueModel(replies=[AIMessage("<tool_call>{"), ["It erupted in 1953.[1]"]])
    answer, _ = ask(runs, ChatReasoner(model), question="Quand le mont Aso est-il entré en éruption ?")
    assert (answer.outcome, answer.model_calls) == ("answered", 2)


def test_deep_counts_every_call(runs: Runs) -> None:
    replies = [_beside(1), ["Eight lanes.[1]"]]
    answer, _ = ask(runs, ChatReasoner(QueueModel(replies=replies)), mode="deep")
    assert (answer.outcome, answer.model_calls) == ("answered", 3)
    assert [p.id for p in answer.passages] == ["p2"]


def test_deep_never_passes_its_limit_and_keeps_a_call_for_the_answer(runs: Runs) -> None:
    """Every grading reply is garbled, so each costs a repair too."""

    class Garbled(QueueModel):
        def _next(self, messages, options):  # type: ignore[no-untyped-def]
            self.requests.append((messages, options))
            if "You answer a question" in messages[1].text:
                return ["It erupted in 1953.[1]"]
            return "other words " + str(len(self.requests)) if "search queries" in messages[0].text else _search()

    model = Garbled()
    answer, _ = ask(runs, ChatReasoner(model), mode="deep")
    assert answer.model_calls == len(model.requests) <= 12
    assert answer.steps[-1].node in ("generate", "grade")
    assert answer.passages


def test_deep_spends_its_last_call_on_the_answer(runs: Runs) -> None:
    rounds = [_beside(1, 2), "other words 1", "other words 2", "other words 3"]
    model = QueueModel(replies=[*rounds, ["It erupted in 1953.[1]"]])
    answer, _ = ask(runs, ChatReasoner(model), mode="deep")
    assert answer.outcome == "caveat"
    assert answer.model_calls == 6  # later searches found nothing new to grade; one checks the statement
    assert nodes_of(answer).count("rewrite") == 3
