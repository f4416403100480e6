"""A run's usage is counted, and never exceeds its budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGenerationChunk

from rag.errors import ModelError
from rag.locales import say
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import Question, RunOptions
from rag.runs.runs import Runs
from rag.text import estimate_tokens
from rag.tracing import CallBudget, Meter, Prices, sum_usages
from rag.types import Answer, RunMode, Usage
from tests.support.answering import FakeRetriever, ScriptedReasoner, ask, nodes_of
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.conversing import chat_reasoner
from tests.support.fake_model import QueueModel
from tests.support.quoting import make_quoter
from tests.support.waiting import until_event

QUESTION = "When did Mount Aso erupt?"
QUOTER = make_quoter()


def _ask(runs: Runs, reasoner: object, mode: RunMode = "fast", **options: object) -> Answer:
    chosen = RunOptions(**options)  # type: ignore[arg-type]
    run_id = runs.start(
        Question(QUESTION, mode=mode, options=chosen),
        reasoner=reasoner,  # type: ignore[arg-type]
        retriever=FakeRetriever(),
        quoter=QUOTER,
    )
    return runs.wait(run_id, 20)


def test_estimates_are_of_the_right_size() -> None:
    assert 9 <= estimate_tokens("The bridge was opened in 1932 for traffic.") <= 13
    assert 8 <= estimate_tokens("龙井茶产于杭州，清明前采摘。") <= 13
    assert estimate_tokens("") == 0


def test_tokens_of_the_server_are_counted_with_their_price(runs: Runs) -> None:
    with ChatServer(rules) as server:
        answer = _ask(runs, chat_reasoner(server.base_url), "deep", prices=Prices(2.0, 8.0))
    usage = answer.usage
    assert usage.calls == answer.model_calls == 2 and not usage.estimated
    assert usage.tokens_in > 100 and usage.tokens_out > 0
    assert usage.money == pytest.approx((2 * usage.tokens_in + 8 * usage.tokens_out) / 1e6)
    assert sum(step.detail.get("tokens", 0) for step in answer.steps) == usage.tokens_in + usage.tokens_out
    assert {step.node for step in answer.steps if step.detail.get("tokens")} == {"grade", "generate"}


def test_what_a_server_does_not_count_is_estimated_and_marked(runs: Runs) -> None:
    answer = _ask(runs, ChatReasoner(QueueModel(replies=[["It erupted in 1953.[1]"]])))
    assert answer.usage.calls == 1 and answer.usage.estimated
    assert answer.usage.tokens_in > 100 and answer.usage.tokens_out >= 6
    assert answer.usage.money is None


def test_a_stopped_call_is_counted_too(runs: Runs) -> None:
    class Slow(QueueModel):
        async def _astream(self, *given: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
            async for chunk in super()._astream(*given, **options):
                yield chunk
            await asyncio.sleep(30)

    model = Slow(replies=[["It erupted ", "in 1953."]], reason="")
    run_id = runs.start(Question(QUESTION), reasoner=ChatReasoner(model), retriever=FakeRetriever())
    until_event(runs, run_id, "token")
    runs.cancel(run_id)
    answer = runs.wait(run_id, 60)
    assert answer.usage.calls == 1 and answer.usage.estimated


def test_the_last_call_of_a_budget_is_the_answers(runs: Runs) -> None:
    """With one call, deep mode answers from its results without grading them."""
    with ChatServer(rules) as server:
        answer = _ask(runs, chat_reasoner(server.base_url), "deep", calls=1)
    assert answer.model_calls == 1 and answer.text
    assert answer.outcome == "caveat" and answer.notice is not None and answer.notice.code == "budget_best"


def test_a_budget_that_leaves_no_call_for_the_answer_quotes(runs: Runs) -> None:
    model = QueueModel(replies=['{"irrelevant": [2]}', ["never"]])
    answer = _ask(runs, ChatReasoner(model), "deep", tokens=100)
    assert answer.outcome == "caveat" and answer.notice is not None
    assert answer.notice.code == "quoted_token_limit" and "100 tokens" in say(answer.notice, "en")
    assert answer.citations and answer.citations[0].quote == "Mount Aso erupted in 1953."
    assert len(model.requests) == 1 and answer.composed == "quoted"


def test_a_token_budget_ends_the_search_for_something_better(runs: Runs) -> None:
    no = '{"irrelevant": [1, 2]}'
    model = QueueModel(replies=[no, *["other words", no] * 3, ["It erupted in 1953.[1]"]])
    answer = _ask(runs, ChatReasoner(model), "deep", tokens=700)
    assert nodes_of(answer).count("rewrite") < 3
    assert answer.usage.tokens_in + answer.usage.tokens_out < 1_400
    assert answer.outcome == "caveat" and answer.passages


def test_a_time_budget_keeps_what_was_written_and_says_why(runs: Runs) -> None:
    slow = ScriptedReasoner(answers=[["Mount Aso erupted in 1953 [1]. ", 30.0]])
    answer = _ask(runs, slow, seconds=1.5)
    assert answer.text.startswith("Mount Aso erupted in 1953") and answer.outcome == "caveat"
    assert not answer.statements, "what was cut off was not checked as a whole"
    assert answer.notice is not None and "1.5 seconds" in say(answer.notice, "en")


def test_a_time_budget_without_a_text_quotes(runs: Runs) -> None:
    answer = _ask(runs, ScriptedReasoner(answers=[[30.0]]), seconds=1.5)
    assert answer.notice is not None and answer.notice.code == "quoted_budget_seconds"
    assert answer.citations and answer.outcome == "caveat"
    assert answer.statements


def test_a_budget_counts_ends_and_reserves() -> None:
    budget = CallBudget(2)
    with pytest.raises(ZeroDivisionError), budget.reserve(1):
        raise ZeroDivisionError
    assert budget.remaining == 2, "a call reserved by a step that failed is free again"
    with budget.reserve(1):
        budget.spend()
        with pytest.raises(ModelError):
            budget.spend()
    assert (budget.used, budget.remaining) == (1, 1)
    budget.spend()
    with pytest.raises(ModelError) as caught:
        budget.spend()
    assert caught.value.code == "call_limit"
    assert budget.used == 2


def test_a_token_budget_refuses_and_reserves() -> None:
    meter = Meter()
    budget = CallBudget(5, tokens=1_000, meter=meter)
    budget.spend()
    meter.add(700, 60)
    with budget.reserve(1), pytest.raises(ModelError) as caught:
        budget.spend()
    assert caught.value.code == "token_limit"
    assert budget.remaining == 4
    meter.add(300, 0)
    assert budget.remaining == 0


def test_sums() -> None:
    total = sum_usages([Usage(1, 10, 2, False, 0.5), Usage(2, 5, 1, True, None)])
    assert total == Usage(3, 15, 3, True, 0.5)
    assert sum_usages([]) == Usage()


def test_one_count_that_was_estimated_makes_the_sum_an_estimate() -> None:
    meter = Meter()
    meter.add(10, 5, estimated=True)
    meter.add(10, 5)
    assert (meter.usage().tokens_in, meter.usage().estimated) == (20, True)


def test_a_repair_of_a_call_leaves_the_call_of_the_answer(runs: Runs) -> None:
    model = QueueModel(replies=[AIMessage("<tool_call>{"), ["It erupted in 1953.[1]"]])
    answer, _ = ask(runs, ChatReasoner(model), question="Quand le mont Aso est-il entré en éruption ?")
    assert (answer.outcome, answer.model_calls) == ("answered", 2)


def test_deep_never_passes_its_limit_and_keeps_a_call_for_the_answer(runs: Runs) -> None:
    """Every grading reply is garbled, so each costs a repair too."""

    class Garbled(QueueModel):
        def _next(self, messages, options):  # type: ignore[no-untyped-def]
            self.requests.append((messages, options))
            if "You answer a question" in messages[1].text:
                return ["It erupted in 1953.[1]"]
            if "search queries" in messages[0].text:
                return f"other words {len(self.requests)}"
            call = {"name": "retrieve", "args": {"query": "Aso eruption"}, "id": "1"}
            return AIMessage("", tool_calls=[call])

    model = Garbled()
    answer, _ = ask(runs, ChatReasoner(model), mode="deep")
    assert answer.model_calls == len(model.requests) <= 12
    assert answer.steps[-1].node in ("generate", "grade")
    assert answer.passages
