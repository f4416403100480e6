"""The conversation as messages: answered and unanswered questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph.message import add_messages

from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import Conversations, TurnRequest
from rag.errors import ModelError
from rag.graphs.answer import LoopState, earlier_messages, removals
from rag.graphs.common import shorten_answers
from rag.graphs.modes import MODES
from rag.reasoning.questions import Memory, exchanges_of, find_history, human_message, messages_of
from rag.runs.run import Question
from rag.runs.runs import Runs
from rag.store.sql.database import Database
from rag.types import Answer, Exchange, Passage
from tests.support.answering import BRIDGE, FakeRetriever, ScriptedReasoner, passage

FIRST, FOLLOW_UP = "How tall is the bridge in London?", "And in Paris?"


def test_a_question_without_an_answer_is_remembered() -> None:
    told = [Exchange("What is tea?", "A drink."), Exchange("Why?", "", "Why is tea a drink?"), Exchange("How?", "So.")]
    assert exchanges_of(messages_of(told)) == told


def test_what_tools_said_goes_and_what_was_asked_stays() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("What is tea?", id="1"),
        AIMessage("", id="2", tool_calls=[{"name": "retrieve", "args": {"query": "tea"}, "id": "call"}]),
        ToolMessage("…", id="3", tool_call_id="call"),
        HumanMessage("And coffee?", id="4"),
        AIMessage("A drink.", id="5"),
    ]
    assert [one.id for one in removals(messages)] == ["2", "3"]


def test_a_model_sees_questions_and_answers_in_turn() -> None:
    told = [Exchange("What is tea?", ""), Exchange("And coffee?", "A drink.")]
    state = LoopState(messages=[*messages_of(told), human_message("And milk?")])
    assert [one.text for one in earlier_messages(state, Memory())] == ["And coffee?", "A drink."]
    assert earlier_messages(state, Memory("window", window=0)) == []


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Any]:
    checkpoints, database = Checkpoints(tmp_path / "talk.sqlite3"), Database(tmp_path / "app.sqlite3")
    runs, retriever = Runs(MODES, saver=checkpoints.saver), FakeRetriever()
    kept = Conversations(database, runs, checkpoints)

    def asked(
        question: str,
        found: bool | list[Passage],
        answers: list[Any],
        within: str = "",
        forget: bool = False,
        kind: Any = "chat",
    ) -> tuple[str, Answer]:
        retriever.default = found if isinstance(found, list) else [passage(1)] * found
        if forget:
            checkpoints.delete(within)
        one = kept.ask(
            TurnRequest(
                *(Question(question, ("main",)), ScriptedReasoner(answers=answers, kind=kind), retriever),
                conversation_id=within,
                suggest=False,
            )
        )
        runs.wait(one.run_id, 60)
        answer = kept.turn(one.turn_id).answer
        assert answer is not None
        return one.conversation_id, answer

    yield asked
    runs.close()
    database.close()


@pytest.mark.parametrize("forget", [False, True], ids=["from its checkpoints", "from its turns"])
@pytest.mark.parametrize(
    ("found", "answers", "outcome"),
    [(False, [["x"]], "not_in_pages"), (True, [[ModelError("chat_timeout")]], "failed")],
    ids=lambda value: str(value)[:12],
)
def test_a_follow_up_points_back_to_what_was_not_answered(
    ask: Any, found: bool, answers: list[Any], outcome: str, forget: bool
) -> None:
    talk, first = ask(FIRST, found, answers)
    assert first.outcome == outcome
    _, second = ask(FOLLOW_UP, True, [["It is 324 metres tall [1]."]], talk, forget)
    assert (second.question, second.standalone, find_history(second.steps)) == (FOLLOW_UP, "", [FIRST])


def test_so_it_is_over_several_questions(ask: Any) -> None:
    talk, _ = ask(FIRST, False, [["x"]])
    ask(FOLLOW_UP, False, [["x"]], talk)
    _, third = ask("And in Rome?", False, [["x"]], talk)
    assert find_history(third.steps) == [FIRST, FOLLOW_UP]


def test_long_answers_are_shortened_without_a_model_but_questions_are_kept() -> None:
    long = "It is 324 metres tall. " + "It has been painted many times since. " * 300
    messages = messages_of([Exchange(f"Question {place}?", long) for place in range(4)])
    for place, message in enumerate(messages):
        message.id = str(place)
    changes = shorten_answers(messages, Memory())
    assert [(one.id, one.text) for one in changes] == [(place, "It is 324 metres tall.") for place in "13"]
    left = add_messages(messages, changes)
    assert [turn.question for turn in exchanges_of(left)] == [f"Question {place}?" for place in range(4)]
    assert shorten_answers(left, Memory()) == shorten_answers(messages, Memory("buffer")) == []


def test_a_long_answer_does_not_hide_the_first_question(ask: Any) -> None:
    long = "It is 324 metres tall [1]. " + "It has been painted many times since. " * 300
    talk, _ = ask(FIRST, True, [[long]])
    for question in (FOLLOW_UP, "And in Rome?"):
        ask(question, True, [[long]], talk)
    _, last = ask("And in Oslo?", True, [[long]], talk)
    assert find_history(last.steps) == [FIRST, FOLLOW_UP, "And in Rome?"]


@pytest.mark.parametrize("more", ["go on", "Where does this come from?", "还有更多吗"])
def test_a_follow_up_without_a_subject_repeats_the_previous_question_for_other_passages(ask: Any, more: str) -> None:
    talk, _ = ask(FIRST, True, [["It is tall [1]."]])
    ask(FOLLOW_UP, True, [["Mount Aso erupted in 1953. [1]\n\nIt is tall. [2]"]], talk)
    _, answer = ask(more, [passage(1), passage(2, BRIDGE)], [["It was opened in 1932 [1]."]], talk, kind="extractive")
    assert (answer.standalone, [one.id for one in answer.passages]) == (FOLLOW_UP, ["p2"])
    _, last = ask(more, [passage(1)], [["It erupted [1]."]], talk, kind="extractive")
    assert (last.standalone, [one.id for one in last.passages]) == (FOLLOW_UP, ["p1"])
    _, other = ask("And in Rome?", True, [["It erupted [1]."]], talk)
    assert (other.standalone, find_history(other.steps)) == ("", [FIRST, FOLLOW_UP, FOLLOW_UP, FOLLOW_UP])
