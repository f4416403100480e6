"""The whole graph: which steps run, with which inputs, and how a question ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from inspect import Parameter, signature
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from rag.errors import ModelError, StoreError
from rag.graphs.answer import graph_of
from rag.graphs.modes import MODES, GraphMode
from rag.locales import say
from rag.reasoning import RESET
from rag.reasoning.questions import make_call
from rag.runs.runs import Runs
from rag.types import Notice
from tests.support.answering import (
    BRIDGE,
    VOLCANO,
    FakeRetriever,
    ScriptedReasoner,
    ask,
    make_run,
    nodes_of,
    passage,
)
from tests.support.quoting import make_quoter

QUESTION = "When did Mount Aso erupt?"
THIRD = "Quand le mont Aso est-il entré en éruption ?"
"""A question in a third language, for which a model chooses the searches."""
DOWN = ModelError("chat_failed")
QUOTER = make_quoter()


def test_fast_answers_with_citations_and_neither_grades_nor_rewrites(runs: Runs) -> None:
    reasoner = ScriptedReasoner(verdicts=[False])
    answer, _ = ask(runs, reasoner)
    assert answer.outcome == "answered"
    assert nodes_of(answer) == ["enter", "agent", "retrieve", "generate"]
    assert [name for name, _ in reasoner.asked] == ["answer"]
    assert [c.url for c in answer.citations] == ["https://example.org/1"]
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert answer.passages[0].ranks == {"fused": 1}


def test_deep_writes_from_the_passages_that_grading_let_through(runs: Runs) -> None:
    reasoner = ScriptedReasoner(verdicts=[[False, True]], answers=[["Eight lanes [1]."]])
    answer, _ = ask(runs, reasoner, mode="deep")
    assert answer.outcome == "answered"
    assert [p.id for p in answer.passages] == ["p2"]
    assert ("answer", ["p2"]) in reasoner.asked
    assert answer.citations[0].url == "https://example.org/2"
    grade = next(step for step in answer.steps if step.node == "grade")
    assert grade.detail["grades"] == [{"id": "p1", "relevant": False}, {"id": "p2", "relevant": True}]


def test_deep_rewrites_until_something_relevant_is_found(runs: Runs) -> None:
    retriever = FakeRetriever(by_query={"Aso eruption year": [passage(3, VOLCANO), passage(1, BRIDGE)]})
    reasoner = ScriptedReasoner(verdicts=[False, [True]], rewrites=["Aso eruption year"])
    answer, _ = ask(runs, reasoner, retriever, mode="deep")
    assert answer.outcome == "answered"
    assert retriever.queries == [QUESTION, "Aso eruption year"]
    assert reasoner.asked[-2:] == [("grade", ["p3"]), ("answer", ["p3"])]  # p1 was judged before
    assert nodes_of(answer).count("agent") == 2
    assert reasoner.count("decide") == 0


def test_deep_ends_after_three_rewrites_with_the_best_passages_and_a_caveat(runs: Runs) -> None:
    found = {f"{QUESTION} {n}": [passage(10 + n, VOLCANO, score=n / 2)] for n in (1, 2, 3)}
    retriever = FakeRetriever(by_query=found)
    reasoner = ScriptedReasoner(verdicts=[False])
    answer, _ = ask(runs, reasoner, retriever, mode="deep")
    assert answer.outcome == "caveat"
    assert answer.notice and answer.notice.code == "best_found"
    assert nodes_of(answer).count("rewrite") == 3
    assert retriever.queries == [QUESTION, *found]
    assert [p.id for p in answer.passages] == ["p13", "p1", "p12", "p2", "p11"]
    assert [asked for name, asked in reasoner.asked if name == "rewrite"] == [
        [QUESTION],
        [QUESTION, f"{QUESTION} 1"],
        [QUESTION, f"{QUESTION} 1", f"{QUESTION} 2"],
    ]


def test_a_rewrite_that_was_tried_ends_the_search(runs: Runs) -> None:
    reasoner = ScriptedReasoner(verdicts=[False], rewrites=[f"  {QUESTION.upper()} "])
    answer, _ = ask(runs, reasoner, mode="deep")
    assert nodes_of(answer) == ["enter", "agent", "retrieve", "grade", "rewrite", "generate"]
    assert answer.outcome == "caveat"
    assert answer.steps[4].detail["decision"] == "nothing_left_to_try"


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize("written", [[], ["  \n"], ["The passages do not mention this."], ["文中没有提到。"]])
def test_an_answer_that_says_nothing_is_not_in_pages(runs: Runs, mode: Any, written: list[str]) -> None:
    reasoner = ScriptedReasoner(verdicts=[False], answers=[written])
    answer, _ = ask(runs, reasoner, mode=mode)
    assert answer.outcome == "not_in_pages"
    assert answer.notice and answer.notice.code == "not_in_pages"
    assert answer.passages  # the nearest are shown
    assert answer.citations == ()


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_nothing_found_at_all_asks_for_no_answer(runs: Runs, mode: Any) -> None:
    reasoner = ScriptedReasoner()
    answer, _ = ask(runs, reasoner, FakeRetriever(default=[]), mode=mode)
    assert answer.outcome == "not_in_pages"
    assert answer.notice and answer.notice.code == "nothing_found"
    assert reasoner.count("answer") == 0
    assert reasoner.count("grade") == 0


def test_a_passage_removed_between_search_and_answer_is_left_out() -> None:
    """Passages are read without a run's cache, as in a graph restored from a saved state."""
    reasoner = ScriptedReasoner(answers=[["Eight lanes [1]."]])
    run = make_run(MODES["fast"], reasoner, FakeRetriever(), calls=2)
    read = run.cache.passages_of
    run.cache.passages_of = lambda ids: [one for one in read(ids) if one.id != "p1"]  # type: ignore[method-assign]
    given: Any = {"question": QUESTION, "messages": []}
    state = asyncio.run(graph_of("fast", None).ainvoke(given, context=run))
    assert [ref["id"] for ref in state["passages"]] == ["p2"]
    assert state["citations"][0]["url"] == "https://example.org/2"


def test_uncited_text_is_never_shown_as_simply_answered(runs: Runs) -> None:
    answer, _ = ask(runs, ScriptedReasoner(answers=[["Everybody was surprised."]]))
    assert answer.outcome == "caveat"
    assert answer.notice and answer.notice.code == "no_citations"


# --- deciding


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize("question", ["What did I ask first?", "我刚才问了什么？"])
def test_what_was_said_is_answered_without_searching(runs: Runs, mode: Any, question: str) -> None:
    retriever = FakeRetriever()
    reasoner = ScriptedReasoner(decisions=[AIMessage("You asked nothing yet.")])
    answer, events = ask(runs, reasoner, retriever, question=question, mode=mode)
    assert (answer.outcome, answer.citations, answer.passages) == ("conversation", (), ())
    assert answer.text == "You asked nothing yet."
    assert answer.steps[-1].detail["decision"] == "answered_without_searching"
    assert retriever.queries == []
    assert [e.data for e in events if e.kind == "token"] == ["You asked nothing yet."]


@pytest.mark.parametrize("question", [QUESTION, "东京塔有多高？", "bge-m3 dimension", "How do you make tea?"])
def test_a_real_question_is_looked_up_whatever_the_model_believes(runs: Runs, question: str) -> None:
    retriever = FakeRetriever()
    reasoner = ScriptedReasoner(decisions=[AIMessage("In 1066, I believe.")])
    answer, events = ask(runs, reasoner, retriever, question=question)
    assert retriever.queries == [question]
    assert "1066" not in answer.text
    assert not any("1066" in e.data for e in events if e.kind == "token")
    assert answer.steps[1].detail["decision"] == "search" and not reasoner.count("decide")


def test_the_agent_must_search_after_a_rewrite(runs: Runs) -> None:
    retriever = FakeRetriever()
    chatter = AIMessage("Hello!")
    reasoner = ScriptedReasoner(decisions=[make_call([QUESTION]), chatter], verdicts=[False])
    answer, _ = ask(runs, reasoner, retriever, mode="deep")
    assert len(retriever.queries) == 4
    assert answer.outcome == "caveat"


def _call(name: str, args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c1", "type": "tool_call"}])


def _broken(raw: str) -> AIMessage:
    call = {"name": "retrieve", "args": raw, "id": "c1", "error": None, "type": "invalid_tool_call"}
    return AIMessage("", invalid_tool_calls=[call])


MALFORMED = [
    _broken('{"query": "Mount A'),
    _broken("not json"),
    _call("retrieve", {}),
    _call("retrieve", {"query": 7}),
    _call("retrieve", {"query": "  "}),
    _call("google", {"q": "Aso"}),
    AIMessage('<tool_call>{"name": "retrieve", "arg'),
]


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize("message", MALFORMED)
def test_a_call_that_makes_no_sense_twice_leads_to_a_search_for_the_question(
    runs: Runs, mode: Any, message: AIMessage
) -> None:
    retriever = FakeRetriever()
    reasoner = ScriptedReasoner(decisions=[message])
    answer, _ = ask(runs, reasoner, retriever, mode=mode, question=THIRD)
    assert answer.outcome == "answered" and retriever.queries == [THIRD]
    assert mode == "fast" or reasoner.count("decide") == 2
    assert answer.steps[1].detail["decision"] == "search_malformed_call"


def test_deep_uses_the_repaired_call(runs: Runs) -> None:
    retriever = FakeRetriever()
    reasoner = ScriptedReasoner(decisions=[_broken("nonsense"), make_call(["Aso eruption"])])
    ask(runs, reasoner, retriever, mode="deep", question=THIRD)
    assert retriever.queries == ["Aso eruption"]
    complaint = reasoner.asked[1][1]
    assert complaint[0] == THIRD
    assert "one string named query" in complaint[1]


@pytest.mark.parametrize(
    "message",
    [
        _broken('{"query": "Aso eruption", "k": }'),
        _broken('{"query": "Aso eruption"'),
        _call("search_pages", {"query": "Aso eruption"}),
        AIMessage('<tool_call>{"name": "retrieve", "arguments": {"query": "Aso eruption"}}</tool_call>'),
    ],
)
def test_a_query_that_can_still_be_told_is_used(runs: Runs, message: AIMessage) -> None:
    retriever = FakeRetriever()
    ask(runs, ScriptedReasoner(decisions=[message]), retriever, question=THIRD)
    assert retriever.queries == ["Aso eruption"]


def test_several_queries_are_merged_by_rank(runs: Runs) -> None:
    a, b, c = passage(1), passage(2), passage(3)
    retriever = FakeRetriever(by_query={"one": [a, b], "two": [b, c]})
    reasoner = ScriptedReasoner(decisions=[make_call(["one", "two"])])
    answer, _ = ask(runs, reasoner, retriever, question=THIRD)
    assert [p.id for p in answer.passages] == ["p1", "p2", "p3"]
    assert sorted(retriever.queries) == ["one", "two"]
    retriever = FakeRetriever(by_query={"one": [a, c], "two": [b, a]})
    answer, _ = ask(runs, ScriptedReasoner(decisions=[make_call(["one", "two"])]), retriever, question=THIRD)
    assert [p.id for p in answer.passages] == ["p1", "p2", "p3"], "a repeated passage stays at its best rank"


# --- failures


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_model_that_fails_to_decide_is_not_asked_again(runs: Runs, mode: Any) -> None:
    reasoner = ScriptedReasoner(decisions=[DOWN])
    answer, _ = ask(runs, reasoner, mode=mode, question=THIRD)
    assert answer.outcome == "failed"
    assert answer.notice and answer.notice.code == "chat_failed"
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert [name for name, _ in reasoner.asked] == ["decide"]
    assert answer.text == ""


FAILURES: list[tuple[Any, dict[str, Any]]] = [
    ("deep", {"verdicts": [DOWN]}),
    ("deep", {"verdicts": [False], "rewrites": [DOWN]}),
    ("fast", {"answers": [[DOWN]]}),
    ("deep", {"answers": [[DOWN]]}),
    ("fast", {"answers": [["It erupted in 1811.[1] The cra", DOWN]]}),
]


@pytest.mark.parametrize(("mode", "script"), FAILURES)
def test_where_a_model_fails_the_passages_are_quoted(runs: Runs, mode: Any, script: dict[str, Any]) -> None:
    answer, events = ask(runs, ScriptedReasoner(**script), mode=mode, quoter=QUOTER)
    assert answer.outcome == "caveat"
    assert answer.notice and answer.notice.code == "quoted_model_failed"
    assert answer.notice.cause == "chat_failed"
    assert say(answer.notice, "en").startswith(say(DOWN.notice, "en"))
    assert "1953" in answer.text and "1811" not in answer.text
    assert answer.citations and answer.composed == "quoted"
    assert sum(event.kind == "reset" for event in events) == (len(script.get("answers", [[]])[0]) > 1)
    assert {p.id for p in answer.passages} == {"p1", "p2"}


@pytest.mark.parametrize(("mode", "script"), FAILURES)
def test_where_there_is_nothing_to_quote_the_passages_are_shown(runs: Runs, mode: Any, script: dict[str, Any]) -> None:
    question = "Who composed the anthem of Peru?"
    answer, _ = ask(runs, ScriptedReasoner(**script), mode=mode, question=question, quoter=QUOTER)
    assert answer.outcome == "failed"
    assert answer.notice and answer.notice.code == "chat_failed"
    assert {p.id for p in answer.passages} == {"p1", "p2"}


@pytest.mark.parametrize(("name", "missing"), [("Fuji", "Fuji"), ("Aso", "")])
def test_quotes_that_do_not_mention_the_subject_have_a_caveat(runs: Runs, name: str, missing: str) -> None:
    answer, _ = ask(runs, QUOTER, question=f"When did {name} erupt and how wide is the crater?", quoter=QUOTER)
    assert answer.text
    assert answer.outcome == ("caveat" if missing else "answered")
    assert answer.notice == (Notice("not_named", {"names": missing}) if missing else None)


def test_a_search_that_fails_is_one_sentence(runs: Runs) -> None:
    answer, _ = ask(runs, ScriptedReasoner(), FakeRetriever(error=StoreError("store_closed")))
    assert answer.outcome == "failed"
    assert answer.notice and say(answer.notice, "en") == "The database is closed."


def test_a_reset_discards_what_came_before(runs: Runs) -> None:
    answer, events = ask(runs, ScriptedReasoner(answers=[["thinking aloud", RESET, "It erupted in 1953.[1]"]]))
    assert answer.text == "It erupted in 1953.[1]"
    assert [e.kind for e in events if e.kind in ("token", "reset")] == ["token", "reset", "token"]


# --- questions


@pytest.mark.parametrize("question", ["", "   \n", "?!"])
def test_an_empty_question_is_one_sentence(runs: Runs, question: str) -> None:
    retriever = FakeRetriever()
    reasoner = ScriptedReasoner()
    answer, _ = ask(runs, reasoner, retriever, question=question)
    assert answer.outcome == "failed"
    assert answer.notice and answer.notice.code == "question_empty"
    assert not retriever.queries and not reasoner.asked


def test_a_question_of_ten_thousand_characters_is_one_sentence(runs: Runs) -> None:
    answer, _ = ask(runs, ScriptedReasoner(), question="tea " * 2500)
    assert answer.outcome == "failed"
    assert answer.notice and "9999" in say(answer.notice, "en") and "4000" in say(answer.notice, "zh")


@pytest.mark.parametrize(
    "question", ["Quand le mont Aso est-il entré en éruption ?", "阿蘇山はいつ噴火しましたか", "Когда?"]
)
def test_a_question_in_a_third_language_is_answered_and_says_so(runs: Runs, question: str) -> None:
    answer, _ = ask(runs, ScriptedReasoner(), question=question)
    assert answer.outcome == "answered"
    assert answer.notice and answer.notice.code == "question_language"
    answer, _ = ask(runs, ScriptedReasoner(answers=[[]]), question=question)
    assert answer.notice and answer.notice.code == "not_in_pages_language"


# --- conversations and state


def test_the_second_question_is_answered_as_the_second(runs: Runs) -> None:
    """In a saved conversation nothing but the text of question 1 remains."""
    second = "How many lanes does the bridge carry?"
    retriever = FakeRetriever(by_query={second: [passage(2, BRIDGE)]})
    reasoner = ScriptedReasoner(verdicts=[False, True], answers=[["In 1953.[1]"], ["Eight lanes.[1]"]])
    graph = graph_of("deep", InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}

    async def both() -> list[Any]:
        states = []
        for question in (QUESTION, second):
            given: Any = {"question": question}
            run = make_run(MODES["deep"], reasoner, retriever)
            states.append(await graph.ainvoke(given, thread, context=run))
        return states

    first_state, state = asyncio.run(both())
    assert first_state["outcome"] == "caveat" and first_state["loop_step"] == 3
    assert retriever.queries[-1] == second
    assert (state["question"], state["loop_step"], state["tried"]) == (second, 0, [second])
    assert [step["node"] for step in state["steps"]] == ["enter", "condense", "agent", "retrieve", "grade", "generate"]
    assert [ref["id"] for ref in state["found"]] == ["p2"]
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == [QUESTION, second]


def test_the_state_is_plain_and_small(runs: Runs) -> None:
    """A saved state must not have passage texts: those of thirty turns once took 65 MB."""
    long_text = "Aso. " * 2000
    retriever = FakeRetriever(default=[passage(n, long_text) for n in range(1, 11)])
    run = make_run(MODES["deep"], ScriptedReasoner(), retriever)
    given: Any = {"question": QUESTION, "messages": []}
    state: Any = asyncio.run(graph_of("deep", None).ainvoke(given, context=run))
    messages = json.dumps([m.model_dump() for m in state["messages"]])
    rest = json.dumps({name: value for name, value in state.items() if name != "messages"})
    assert "Aso. Aso." not in messages
    assert len(messages) + len(rest) < 8_000


def test_a_failed_turn_leaves_no_trace_and_a_long_one_is_clipped(runs: Runs) -> None:
    reasoner = ScriptedReasoner()
    ask(runs, reasoner, history=[("What is tea?", ""), ("And coffee?", "x" * 9_000)], question=THIRD)
    assert reasoner.asked[0] == ("decide", ["And coffee?", "x" * 2_000])


def test_every_mode_has_a_graph_that_is_built_once() -> None:
    for name, mode in MODES.items():
        assert mode.name == name
        assert graph_of(name, None) is graph_of(name, None)
    assert MODES["fast"].max_calls == 3
    assert {"grade", "rewrite"} & set(graph_of("fast", None).get_graph().nodes) == set()


@pytest.mark.parametrize(
    "mode", [mode for mode in MODES.values() if isinstance(mode, GraphMode)], ids=lambda mode: mode.name
)
def test_a_graph_without_a_saver_has_one_key_in_the_cache(mode: GraphMode) -> None:
    assert signature(mode.graph_module.graph_of).parameters["saver"].default is Parameter.empty


def test_nothing_heavy_is_imported_before_the_first_run() -> None:
    code = (
        "import sys, rag.runs.runs, rag.reasoning.chat, rag.graphs;"
        "print([m for m in ('langgraph', 'langchain_core', 'openai', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
