"""Recent exchanges in full, older ones summarised, and questions about the conversation answered from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from rag.checking.verifier import Claim
from rag.errors import ModelError
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import CompositionPlan
from rag.reasoning.questions import (
    HISTORY_TOKENS,
    Memory,
    answer_from_conversation,
    count_overflowing,
    find_earlier_questions,
    find_history,
    is_valid_standalone,
    questions_before,
    summary_by_rules,
)
from rag.runs.runs import Runs
from rag.text import estimate_tokens
from rag.types import Exchange, Passage
from tests.support.answering import FakeRetriever, ScriptedReasoner, ask, nodes_of, passage
from tests.support.fake_model import QueueModel
from tests.support.quoting import make_quoter

TALK = [
    Exchange("When did Mount Aso erupt?", "It erupted in 1953. [1] Its crater is wide."),
    Exchange("How wide is it?", "24 kilometres. [1]", "How wide is Mount Aso?"),
]
LONG = [
    Exchange(f"What is known about eruption {n}?", f"Eruption {n} was loud. " + "It went on. " * 200) for n in range(8)
]
HISTORY = [("When did Mount Aso erupt?", "In 1953."), ("What did I ask?", "When did Mount Aso erupt?")]
FOLLOW_UP, MEANT = "How wide is its crater?", "How wide is Mount Aso's crater?"


@pytest.mark.parametrize(
    ("standalone", "question", "counts"),
    [
        ("How wide is the crater of Mount Aso?", "How wide is it?", True),
        ("What about the crater of Mount Aso?", "And the crater?", True),
        ("The crater of Mount Aso is 24 kilometres wide.", "How wide is it?", False),
        ("Mount Aso's width: 24 km", "How wide is it?", False),
        ("What is the best season for a holiday on a Greek island?", "How wide is it?", False),
        ("阿苏山的火山口有多宽？", "How wide is it?", False),
        ("阿苏山的火山口有多宽？", "火山口有多宽？", True),
        ("阿苏山火山口宽24公里。", "火山口有多宽？", False),
    ],
)
def test_a_completed_follow_up_is_a_question_about_the_same(standalone: str, question: str, counts: bool) -> None:
    chinese = [Exchange("阿苏山在哪里？", "阿苏山在日本九州。")]
    assert is_valid_standalone(standalone, question, [*TALK, *chinese]) is counts


def test_an_answer_instead_of_a_completed_question_is_not_searched(runs: Runs) -> None:
    model = QueueModel(replies=["It is 24 kilometres wide.", ["Its crater is 24 kilometres wide. [1]"]])
    retriever = FakeRetriever()
    ask(runs, ChatReasoner(model), retriever, question=FOLLOW_UP, history=[HISTORY[0]])
    assert FOLLOW_UP in retriever.queries and not any("24" in query for query in retriever.queries)


def test_recent_exchanges_stay_and_at_least_two() -> None:
    assert count_overflowing(TALK) == 0
    surplus = count_overflowing(LONG)
    assert 0 < surplus <= len(LONG) - 2
    kept = sum(estimate_tokens(one.answer) for one in LONG[surplus:])
    assert kept <= HISTORY_TOKENS
    assert count_overflowing(LONG, 10) == len(LONG) - 2


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
        ("我们刚才聊了哪些问题？", ["您问过", "- How wide is it?"]),
    ],
)
def test_questions_about_the_conversation(question: str, parts: list[str]) -> None:
    reply = answer_from_conversation(question, TALK)
    assert all(part in reply for part in parts), reply
    assert "[1]" not in reply


def test_other_questions_are_no_recall() -> None:
    assert answer_from_conversation("When was the first bridge built?", TALK) == ""
    assert answer_from_conversation("夜市第一个摊位卖什么？", TALK) == ""
    assert "just started" in answer_from_conversation("What did I ask first?", [])


def test_what_was_said_needs_no_search_and_is_labelled_so(runs: Runs) -> None:
    retriever = FakeRetriever()
    model = QueueModel(replies=["You asked when Mount Aso erupted."])
    history = [(one.question, one.answer) for one in TALK]
    answer, _ = ask(runs, ChatReasoner(model), retriever, question="What did I ask first?", history=history)
    assert (answer.outcome, answer.text) == ("conversation", "You asked when Mount Aso erupted.")
    assert retriever.queries == [] and answer.model_calls == 1


def test_a_long_conversation_keeps_its_questions_without_a_model(runs: Runs) -> None:
    reasoner = ScriptedReasoner()
    history = [(one.question, one.answer) for one in LONG]
    answer, _ = ask(runs, reasoner, question="Quand le pont est-il ouvert ? Où est le pont ?", history=history)
    assert nodes_of(answer)[:3] == ["enter", "condense", "agent"]
    (_, said) = reasoner.asked[0]
    assert said[:-1:2] == [one.question for one in LONG] and said[1] == "Eruption 0 was loud."
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


class Completing(ScriptedReasoner, ChatReasoner):
    """A reasoner that completes questions with `reply`, unless that is an error."""

    reply: str | ModelError = MEANT

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        if isinstance(self.reply, ModelError):
            raise self.reply
        return self.reply

    async def fitting_tokens(self, tokens: int) -> int:
        return tokens

    def compose(self, question: str, passages: Sequence[Passage], plan: CompositionPlan) -> AsyncIterator[str]:
        return self.answer(question, passages)

    async def verify(self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = "") -> list[None]:
        return [None] * len(claims)


def test_what_asks_about_the_conversation_is_no_question_before() -> None:
    told = [Exchange(*one) for one in HISTORY] + [Exchange("And?", "", "And when did Fuji erupt?")]
    assert questions_before(told) == ["When did Mount Aso erupt?", "And when did Fuji erupt?"]


def test_a_model_completes_what_is_searched_for_and_shown(runs: Runs) -> None:
    retriever = FakeRetriever()
    answer, _ = ask(runs, Completing(), retriever, question=FOLLOW_UP, history=HISTORY)
    assert (retriever.queries, retriever.histories) == ([MEANT], [[]])
    assert (answer.question, answer.standalone, find_history(answer.steps)) == (FOLLOW_UP, MEANT, [])


def test_a_complete_question_stays_as_the_model_leaves_it(runs: Runs) -> None:
    reasoner, retriever = Completing(), FakeRetriever()
    reasoner.reply = FOLLOW_UP
    answer, _ = ask(runs, reasoner, retriever, question=FOLLOW_UP, history=HISTORY)
    assert (retriever.queries, answer.standalone) == ([FOLLOW_UP], "")


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_follow_up_without_a_model_is_searched_with_earlier_questions(runs: Runs, mode: str) -> None:
    reasoner = Completing(verdicts=[False])
    reasoner.reply = ModelError("chat_timeout")
    retriever = FakeRetriever()
    answer, _ = ask(runs, reasoner, retriever, question=FOLLOW_UP, history=HISTORY, mode=mode)  # type: ignore[arg-type]
    assert retriever.queries[0] == FOLLOW_UP
    assert retriever.histories == [["When did Mount Aso erupt?"]] * len(retriever.queries)
    assert (len(retriever.queries) > 1) == (mode == "deep"), "other words are searched for beside them too"
    assert (answer.standalone, find_history(answer.steps)) == ("", ["When did Mount Aso erupt?"])


def test_quotes_are_chosen_by_the_question_alone(runs: Runs) -> None:
    """The search has used the earlier words; they would mislead the choice of quotes."""
    reasoner = make_quoter(weight=2.0)
    text = "When did Mount Aso erupt? Mount Aso erupted in 1953. Its crater is 24 kilometres wide."
    retriever = FakeRetriever(default=[passage(1, text)])
    history = [("When did Mount Aso erupt?", "In 1953.")]
    answer, _ = ask(runs, reasoner, retriever, question="And how wide is its crater?", history=history)
    assert answer.text.startswith("Its crater is 24 kilometres wide.")
    assert retriever.histories == [["When did Mount Aso erupt?"]]


@pytest.mark.parametrize(
    ("question", "text", "is_follow_up"),
    [
        ("And how wide is its crater?", "Its crater is 24 kilometres wide.", True),
        ("水壶多少钱？", "水壶卖 60 元，水壶一年保修。", False),
        ("谁写了红楼梦？", "", False),
    ],
)
def test_only_an_answer_with_words_of_earlier_questions_is_to_a_follow_up(
    runs: Runs, question: str, text: str, is_follow_up: bool
) -> None:
    earlier = "When did Mount Aso erupt?"
    title = "Mount Aso" if is_follow_up else "水壶"
    found = [passage(1, f"{text} {'It did erupt in 1953.' * is_follow_up}", title=title)] if text else []
    answer, _ = ask(
        runs, make_quoter(weight=2.0), FakeRetriever(default=found), question=question, history=[(earlier, "In 1953.")]
    )
    assert bool(answer.text) == bool(text) and find_history(answer.steps) == [earlier]
    assert find_earlier_questions(answer.steps) == ([earlier] if is_follow_up else [])


def test_each_kind_of_memory_shows_what_its_name_says() -> None:
    recent, buffer, summary = Memory(), Memory("buffer", tokens=100_000), Memory("summary")
    window = Memory("window", window=3)
    summarised = [one.count_summarised(LONG) for one in (recent, buffer, window, summary)]
    assert summarised == [count_overflowing(LONG), 0, 0, len(LONG)]
    assert buffer.select_exchanges(LONG) == LONG and window.select_exchanges(LONG) == LONG[-3:]
    assert window.select_exchanges(TALK) == TALK and window.select_exchanges([]) == []
    assert [one.question for one in recent.select_exchanges(LONG)] == [one.question for one in LONG[-4:]]
    assert all(len(one.answer) <= 600 for one in recent.select_exchanges(LONG))
    assert len(Memory("buffer", tokens=HISTORY_TOKENS).select_exchanges(LONG)) == len(LONG) - count_overflowing(LONG)
