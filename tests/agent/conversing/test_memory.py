"""Recent exchanges whole, older ones summed up, and questions about the conversation answered from it."""

from __future__ import annotations

import pytest

from rag.agent.chat import ChatReasoner
from rag.agent.conversing.condense import Exchange
from rag.agent.conversing.memory import HISTORY_TOKENS, overflowing, recalled, summary_by_rules
from rag.agent.runs import Runs
from rag.agent.usage import estimate_tokens
from tests.agent.fake_model import QueueModel
from tests.agent.support import FakeRetriever, ScriptedReasoner, ask, nodes_of

TALK = [
    Exchange("When did Mount Aso erupt?", "It erupted in 1953. [1] Its crater is wide."),
    Exchange("How wide is it?", "24 kilometres. [1]", "How wide is Mount Aso?"),
]
LONG = [
    Exchange(f"What is known about eruption {n}?", f"Eruption {n} was loud. " + "It went on. " * 200) for n in range(8)
]


def test_recent_exchanges_stay_and_at_least_two() -> None:
    assert overflowing(TALK) == 0
    surplus = overflowing(LONG)
    assert 0 < surplus <= len(LONG) - 2
    kept = sum(estimate_tokens(one.answer) for one in LONG[surplus:])
    assert kept <= HISTORY_TOKENS
    assert overflowing(LONG, 10) == len(LONG) - 2


def test_a_summary_by_rules_keeps_within_its_tokens() -> None:
    lines = summary_by_rules("Before — that.", LONG, 1_000).splitlines()
    assert lines[0] == "Before — that." and lines[1] == "What is known about eruption 0? — Eruption 0 was loud."
    short = summary_by_rules("", LONG, 60)
    assert estimate_tokens(short) <= 60 and "eruption 7" in short and "eruption 0" not in short


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What did I ask first?", ["first question", "When did Mount Aso erupt?"]),
        ("What was my last question?", ["last question", "How wide is it?"]),
        ("What did you say in your first answer?", ["It erupted in 1953."]),
        ("Can you repeat your last answer?", ["24 kilometres."]),
        ("What have we talked about so far?", ["- When did Mount Aso erupt?", "- How wide is it?"]),
        ("我刚才问了什么？", ["上一个问题", "How wide is it?"]),
        ("我第一个问题是什么？", ["第一个问题", "When did Mount Aso erupt?"]),
        ("我们刚才聊了哪些问题？", ["谈过", "- How wide is it?"]),
    ],
)
def test_questions_about_the_conversation(question: str, parts: list[str]) -> None:
    reply = recalled(question, TALK)
    assert all(part in reply for part in parts), reply
    assert "[1]" not in reply


def test_other_questions_are_no_recall() -> None:
    assert recalled("When was the first bridge built?", TALK) == ""
    assert recalled("夜市第一个摊位卖什么？", TALK) == ""
    assert "beginning" in recalled("What did I ask first?", [])


def test_what_was_said_needs_no_search_and_is_labelled_so(runs: Runs) -> None:
    retriever = FakeRetriever()
    model = QueueModel(replies=["You asked when Mount Aso erupted."])
    answer, _ = ask(
        runs,
        ChatReasoner(model),
        retriever,
        question="What did I ask first?",
        history=[(e.question, e.answer) for e in TALK],
    )
    assert (answer.outcome, answer.text) == ("conversation", "You asked when Mount Aso erupted.")
    assert retriever.queries == [] and answer.model_calls == 1


def test_a_long_conversation_is_summed_up_once_and_the_model_sees_the_summary(runs: Runs) -> None:
    reasoner = ScriptedReasoner()
    history = [(one.question, one.answer) for one in LONG]
    answer, _ = ask(runs, reasoner, question="When was the bridge opened?", history=history)
    assert nodes_of(answer)[:3] == ["enter", "condense", "agent"]
    (_, said) = reasoner.asked[0]
    assert "Eruption 0 was loud." in said[1] and said[2] == LONG[overflowing(LONG)].question
    assert sum(map(estimate_tokens, said)) < 2 * HISTORY_TOKENS


def test_a_chat_model_sums_up_in_one_call(runs: Runs) -> None:
    from langchain_core.messages import AIMessage

    search = AIMessage("", tool_calls=[{"name": "retrieve", "args": {"query": "bridge"}, "id": "1"}])
    model = QueueModel(replies=["They spoke of eruptions.", search, ["The bridge was opened in 1932. [2]"]])
    history = [(one.question, one.answer) for one in LONG]
    answer, _ = ask(runs, ChatReasoner(model), question="When was the bridge opened?", history=history)
    assert answer.model_calls == 3 and answer.outcome == "answered"
    assert "running summary" in model.requests[0][0][0].text
    assert any("They spoke of eruptions." in message.text for message in model.requests[1][0])
