"""Judge mode end to end: judging, follow-up questions, answers from the tree, limits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rag.errors import StoreError
from rag.runs.run import Hooks, Question, RunOptions
from rag.runs.runs import Runs
from rag.store.sql.conversation_table import Change
from rag.types import Answer
from tests.support.answering import FakeRetriever, passage
from tests.support.chat_server import ChatServer, Reply
from tests.support.conversing import QUOTER, chat_reasoner, run_over_http
from tests.support.judge_model import BORN, FILM, FOUNDED, OTHER, PAGES, WHOLE, JudgeModel, by_table


@pytest.fixture
def retriever() -> FakeRetriever:
    return FakeRetriever(by_query=dict(PAGES), default=[passage(5, OTHER)])


def judge(
    runs: Runs,
    model: JudgeModel | None,
    retriever: Any,
    *,
    question: str = WHOLE,
    changes: Sequence[Change] = (),
    **options: Any,
) -> Answer:
    asked = Question(question, mode="judge", options=RunOptions(**options))
    hooks = Hooks(load_changes=lambda: list(changes))
    return run_over_http(runs, model, retriever, asked, hooks=hooks)[0]


def nodes_of(answer: Answer) -> dict[str, dict[str, Any]]:
    """Return the last row of each node, by its question."""
    return {row["question"]: row for row in answer.trail["tree"]}


def stop_of(answer: Answer) -> str:
    return str(answer.trail["stop"]["code"])


def test_what_a_passage_lacks_is_asked_for_until_it_is_answered(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(), retriever)
    assert (answer.outcome, answer.notice) == ("answered", None)
    assert retriever.queries == [WHOLE, BORN, FOUNDED]
    assert {one.url for one in answer.citations} == {f"https://example.org/{n}" for n in (1, 2, 3)}
    assert [one.verdict for one in answer.statements] == ["supported"] * 2
    assert [one.id for one in answer.passages][:3] == ["p1", "p2", "p3"]
    tree = nodes_of(answer)
    assert [(row["depth"], row["parent"], row["answered"]) for row in tree.values()] == [
        (0, "", True),
        (1, "n1", True),
        (2, "n2", True),
    ]
    assert tree[WHOLE]["answer"].endswith("Ostrava Moor was founded in 1342.")
    assert stop_of(answer) == "judge_complete"
    assert answer.model_calls == 3 + 2


def test_a_passage_that_answers_ends_the_level(runs: Runs, retriever: FakeRetriever) -> None:
    def answers(_: str, __: str, text: str) -> Any:
        return (2, "", "") if text == FILM else (1, "Where does the harbour lie?", "")

    answer = judge(runs, JudgeModel(answers, answer="It was directed by Ilse Brandt [1]."), retriever)
    assert retriever.queries == [WHOLE] and answer.outcome == "answered"


def test_what_is_beside_the_point_is_not_in_the_pages(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(lambda *_: (0, "", "")), retriever)
    assert (answer.outcome, answer.text, stop_of(answer)) == ("not_in_pages", "", "judge_all_asked")


def test_each_passage_may_be_judged_by_a_call_of_its_own(runs: Runs, retriever: FakeRetriever) -> None:
    model = JudgeModel()
    answer = judge(runs, model, retriever, judge_each=True)
    assert model.asked.count("JudgeReply") == 2 + 2 + 1
    assert answer.outcome == "answered" and nodes_of(answer)[WHOLE]["calls"] == 2


def test_without_a_model_names_lead_on_and_quotes_answer(runs: Runs, retriever: FakeRetriever) -> None:
    retriever.default = [passage(2, PAGES[BORN][0].text, title="Ilse Brandt")]
    answer = judge(runs, None, retriever, question="Where was the director of Grey Harbour born?")
    assert answer.model_calls == 0 and answer.citations
    retriever.by_query["Where was the director of Grey Harbour born?"] = PAGES[WHOLE]
    answer = judge(runs, None, retriever, question="Where was the director of Grey Harbour born?")
    assert "Ilse Brandt" in retriever.queries[-1]
    assert "https://example.org/2" in {row["url"] for row in answer.trail["tree"]}


def test_a_verdict_without_its_quote_in_the_passage_keeps_no_quote(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(lambda *_: (2, "", "Nobody wrote this.")), retriever)
    assert {row["quote"] for row in answer.trail["tree"]} == {""}


def test_questions_of_ancestors_are_refused_and_duplicates_are_linked(runs: Runs, retriever: FakeRetriever) -> None:
    first, second = "Who directed Grey Harbour?", "Where does Vale lie?"

    def each_other(question: str, _: str, text: str) -> Any:
        """Return verdicts of two passages that ask for each other."""
        back = {WHOLE: (1, first if text == FILM else second, ""), first: (1, second, ""), second: (1, first, "")}
        return back.get(question, (0, "", ""))

    answer = judge(runs, JudgeModel(each_other), retriever)
    assert sorted(retriever.queries) == sorted([WHOLE, first, second])
    assert [(row["question"], row["status"], row["same_as"]) for row in answer.trail["tree"][-2:]] == [
        (second, "linked", "n3"),
        (first, "linked", "n2"),
    ]
    answer = judge(runs, JudgeModel(lambda *_: (1, WHOLE.upper(), "")), retriever)
    assert {row["status"] for row in answer.trail["tree"] if row["parent"]} == {"refused"}


def _always_new() -> JudgeModel:
    numbers = itertools.count()
    return JudgeModel(lambda *_: (1, f"And what of number {next(numbers)}?", ""))


ADVERSARIES: Mapping[str, Any] = {
    "always something new": _always_new,
    "always the same": lambda: JudgeModel(lambda *_: (1, "What else?", "")),
    "broken JSON": lambda: JudgeModel(reply=Reply('{"passages": [{"num')),
    "another form": lambda: JudgeModel(reply=Reply('{"verdict": "yes"}')),
    "scores beyond": lambda: JudgeModel(lambda *_: (9, "", "")),
    "refused": lambda: JudgeModel(reply=Reply("no", status=400)),
    "empty": lambda: JudgeModel(reply=Reply("")),
}


@pytest.mark.parametrize("kind", ADVERSARIES)
def test_no_model_passes_a_limit_and_the_tree_is_whole(runs: Runs, retriever: FakeRetriever, kind: str) -> None:
    answer = judge(runs, ADVERSARIES[kind](), retriever)
    rows = answer.trail["tree"]
    assert answer.model_calls <= 24 and len(retriever.queries) <= 12
    assert max(row["depth"] for row in rows) <= 3
    known = {row["node"] for row in rows}
    assert {row["parent"] for row in rows} - {""} <= known and {row["same_as"] for row in rows} - {""} <= known
    assert {row["status"] for row in rows} <= {"done", "linked", "refused", "cut"}
    children = [row["node"] for row in rows if row["parent"] == "n1"]
    assert len(set(children)) <= 3 and answer.outcome in ("caveat", "answered")


def test_a_slow_model_is_left_in_time(runs: Runs, retriever: FakeRetriever) -> None:
    slow = JudgeModel(reply=Reply("{}", fault="hang"))
    answer = judge(runs, slow, retriever, seconds=4.0)
    assert answer.seconds < 8 and answer.trail["tree"][0]["by"] == "rules" and answer.text


def test_calls_that_are_used_up_leave_those_for_the_answer(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(), retriever, calls=4)
    assert (answer.outcome, stop_of(answer)) == ("caveat", "judge_budget_calls")
    assert answer.text and answer.model_calls <= 4
    assert nodes_of(answer)[BORN]["missing"] == "" and FOUNDED not in nodes_of(answer)
    assert FOUNDED in {row["missing"] for row in answer.trail["tree"]}


def test_a_branch_that_fails_costs_the_others_nothing(runs: Runs, retriever: FakeRetriever) -> None:
    search = retriever.search

    def breaks(question: str, before: Any = (), **how: Any) -> Any:
        if question == "Where does Vale lie?":
            raise StoreError("store_unreachable", url="http://db")
        return search(question, before, **how)

    def judged(question: str, whole: str, text: str) -> Any:
        return (
            (1, "Where does Vale lie?", "") if (question, text) == (WHOLE, OTHER) else by_table(question, whole, text)
        )

    retriever.search = breaks  # type: ignore[method-assign]
    answer = judge(runs, JudgeModel(judged), retriever)
    assert answer.outcome == "answered"
    assert nodes_of(answer)["Where does Vale lie?"]["status"] == "failed"


def test_a_person_ends_the_search(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(), retriever, changes=[Change("finish")])
    assert (stop_of(answer), retriever.queries) == ("judge_stopped_by_person", [])
    assert nodes_of(answer)[WHOLE]["status"] == "cut"


def test_twenty_branches_side_by_side_lose_nothing(runs: Runs, retriever: FakeRetriever) -> None:
    asked = Question(WHOLE, mode="judge")
    with ChatServer(JudgeModel()) as server:
        reasoner = chat_reasoner(server.base_url)
        ids = [runs.start(asked, reasoner=reasoner, retriever=retriever, quoter=QUOTER) for _ in range(20)]
        answers = [runs.wait(one, 120) for one in ids]
    told = [[(row["node"], row["passage"], row["score"]) for row in one.trail["tree"]] for one in answers]
    assert len(told) == 20 and all(one == told[0] for one in told) and len(told[0]) == 5


def test_the_most_promising_levels_may_come_first(runs: Runs, retriever: FakeRetriever) -> None:
    answer = judge(runs, JudgeModel(), retriever, tree_order="best")
    assert answer.outcome == "answered" and retriever.queries == [WHOLE, BORN, FOUNDED]
