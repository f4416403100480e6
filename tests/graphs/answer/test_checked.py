"""Models that cite badly, and models that judge, through the whole loop over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag.runs.runs import Runs
from rag.types import Answer, RunMode
from tests.support.answering import BRIDGE, TEA, VOLCANO, FakeRetriever, ask, passage
from tests.support.chat_server import Call, ChatServer, Reply, Request
from tests.support.conversing import chat_reasoner

PASSAGES = [passage(1), passage(2, BRIDGE), passage(3, TEA)]
EN, ZH = "When did Mount Aso erupt?", "龙井茶产于哪里？"
YES, NO = "supported", "unsupported"
FAILS = Reply("No.", status=500)


class Model:
    """A model that searches, grades every passage as relevant, writes `text`, and judges statements by `opinion`."""

    def __init__(self, text: str, opinion: str | Reply = YES) -> None:
        self.text = text
        self.opinion = opinion
        self.judged: list[str] = []

    def __call__(self, request: Request) -> Reply:
        system = request.rules
        if "judge search results" in system or "检索结果的评分员" in system:
            return Reply('{"irrelevant": []}')
        if "check statements" in system or "核对陈述" in system:
            return self._judge(request)
        if request.tools:
            return Reply(tool_calls=[Call("retrieve", {"query": "all"})])
        return Reply(self.text)

    def _judge(self, request: Request) -> Reply:
        self.judged.append(request.last)
        if isinstance(self.opinion, Reply):
            return self.opinion
        return Reply(json.dumps({"verdicts": [{"number": n, "verdict": self.opinion} for n in range(1, 20)]}))


def run(runs: Runs, model: Model, question: str, mode: RunMode) -> Answer:
    with ChatServer(model) as server:
        reasoner = chat_reasoner(server.base_url)
        answer, _ = ask(runs, reasoner, FakeRetriever(default=PASSAGES), question=question, mode=mode)
    return answer


BAD: list[Any] = [
    ("wrong passage", EN, "Penguins swim in the cold sea near Antarctica. [2]"),
    ("wrong passage", ZH, "企鹅生活在寒冷的南极海边。[3]"),
    ("no such passage", EN, "The volcano is a popular place for weddings. [9]"),
    ("no such passage", ZH, "这座火山是举办婚礼的热门地点。[9]"),
    ("nothing cited", EN, "The bridge was painted green by volunteers."),
    ("nothing cited", ZH, "这种茶的价格每年都在上涨。"),
    ("an address", EN, "The bridge is closed on Sundays ([source](https://evil.example/x)) https://evil.example/y"),
    ("an address", ZH, "茶园周日不开放，见[来源](https://evil.example/x) https://evil.example/y。"),
    ("another number", EN, "Mount Aso erupted in 1963. [1]"),
    ("another number", ZH, "炒制需要20道手法。[3]"),
    ("a denial", EN, "The town of Aso does not lie inside it. [1]"),
    ("a denial", ZH, "龙井茶并不产于杭州。[3]"),
    ("a false quotation", EN, "The page says that “the crater of Mount Aso is the widest crater in the world”. [1]"),
]


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize(("kind", "question", "text"), BAD)
def test_without_a_judge_nothing_of_it_is_supported(
    runs: Runs, mode: RunMode, kind: str, question: str, text: str
) -> None:
    answer = run(runs, Model(text, FAILS), question, mode)
    assert answer.statements, kind
    assert all(statement.verdict != "supported" for statement in answer.statements)
    unsupported = [statement for statement in answer.statements if statement.verdict == "unsupported"]
    assert all(not statement.marks for statement in unsupported)
    assert "evil.example" not in answer.text
    assert "[9]" not in answer.text


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (EN, "In 1953 Mount Aso erupted. [3]", "It has snow in winter. [1]"),
        (ZH, "龙井茶是产于杭州的。[1]", "它适合冰镇。[3]"),
    ],
)
def test_a_wrong_number_is_repaired_and_the_rest_is_marked(runs: Runs, question: str, good: str, bad: str) -> None:
    answer = run(runs, Model(f"{good} {bad}", FAILS), question, "fast")
    assert [statement.verdict for statement in answer.statements] == ["supported", "unsupported"]
    first, second = answer.statements
    assert first.marks == (1,) and second.marks == ()
    assert answer.text[first.start : first.end] == good.rpartition(" ")[0] or good.startswith(
        answer.text[first.start : first.end]
    )
    assert answer.citations[0].quote in (VOLCANO.split(". ")[0] + ".", TEA.split("。")[0] + "。")


@pytest.mark.parametrize("text", ["阿苏火山于1953年喷发。[1]", "Mount Aso never erupted in 1953. [1]"])
def test_a_models_verdict_stands(runs: Runs, text: str) -> None:
    model = Model(text)
    answer = run(runs, model, EN, "deep")
    assert answer.model_calls == 3, "one is left for the check"
    assert [(one.verdict, one.by, one.marks) for one in answer.statements] == [("supported", "model", (1,))]
    assert len(model.judged) == 1 and "1953" in model.judged[0]
    rejected = run(runs, Model(text, NO), EN, "deep")
    assert [(one.verdict, one.by, one.marks) for one in rejected.statements] == [("unsupported", "model", ())]


def test_a_statement_beside_the_question_is_told(runs: Runs) -> None:
    aside = Reply(json.dumps({"verdicts": [{"number": 1, "verdict": "supported", "relevant": False}]}))
    answer = run(runs, Model("The town of Aso is inside it. [1]", aside), EN, "deep")
    assert [(one.verdict, one.relevant) for one in answer.statements] == [("supported", False)]


def test_what_stands_there_to_the_letter_is_not_asked_about(runs: Runs) -> None:
    model = Model("Mount Aso erupted in 1953. [1]", NO)
    answer = run(runs, model, EN, "deep")
    assert [one.reason for one in answer.statements] == ["verbatim"]
    assert model.judged == []


@pytest.mark.parametrize("opinion", [FAILS, Reply("I cannot say."), Reply(fault="garbled")])
def test_a_judge_that_fails_leaves_the_verdict_of_rules(runs: Runs, opinion: Reply) -> None:
    answer = run(runs, Model("In 1953 there was an eruption of Mount Aso. [1]", opinion), EN, "deep")
    assert answer.outcome == "answered"
    assert [(one.verdict, one.reason, one.by) for one in answer.statements] == [("supported", "words", "rules")]


def test_a_fast_answer_is_one_call_and_checked_by_rules(runs: Runs) -> None:
    model = Model("In 1953 there was an eruption of Mount Aso. [1]")
    answer = run(runs, model, EN, "fast")
    assert answer.model_calls == 1 and not model.judged
    assert [one.by for one in answer.statements] == ["rules"]
