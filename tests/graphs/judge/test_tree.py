"""Many parallel branches, and equal questions: the tree as a graph, in isolation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from rag.graphs import common
from rag.graphs.judge import graph, tree
from rag.graphs.judge.tree import NodeRecord, find_answers, grow, next_levels
from rag.graphs.modes import MODES
from rag.reasoning.judge import Judgement
from rag.types import Passage
from tests.support.answering import FakeRetriever, ScriptedReasoner, make_run, passage

BRANCHES = 20


class Asking:
    """A judge for whom each passage of the question is incomplete in its own way, and any other one answers."""

    def __init__(self) -> None:
        self.quoter = self

    async def judge(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        if question == whole:
            return [Judgement(1, f"And what of passage {one.id}?") for one in passages]
        return [Judgement(2) for _ in passages]

    async def answer(self, parts: Any, passages: Sequence[Passage]) -> AsyncIterator[str]:
        yield f"{passages[0].text} [1]"

    def find_missing_names(self, question: str, passages: Sequence[Passage]) -> list[str]:
        return []


async def test_twenty_parallel_branches_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [passage(n, f"Passage number {n} tells of one thing.") for n in range(1, BRANCHES + 1)]
    for module, name, value in [
        *((tree, "MAX_WIDTH", BRANCHES), (tree, "MAX_NODES", BRANCHES + 1), (graph, "MAX_NODES", BRANCHES + 1)),
        *((graph, "MAX_JUDGED", BRANCHES), (graph, "MAX_PARALLEL", BRANCHES), (common, "SEARCHES_BY_RULES", 21)),
        *((graph, "RuleJudge", lambda _: Asking()), (graph, "require_quoter", lambda _: Asking())),
    ]:
        monkeypatch.setattr(module, name, value)
    for _ in range(10):
        retriever = FakeRetriever(default=found)
        run = make_run(MODES["judge"], ScriptedReasoner(kind="extractive"), retriever, calls=0)
        state = await graph.graph_of(None).ainvoke({"question": "What is there?"}, context=run)
        assert len(state["nodes"]) == len(retriever.queries) == 1 + BRANCHES
        assert {node["passage"] for node in state["nodes"][1:]} == {one.id for one in found}
        assert {node["status"] for node in state["nodes"]} == {"done"}
        assert len(find_answers(state["nodes"])["n1"]) == BRANCHES * (1 + BRANCHES)


def test_next_nodes_are_chosen_by_level_or_by_promise() -> None:
    def node(own: str, parent: str, depth: int, worth: float, status: Any = "open") -> NodeRecord:
        shape: NodeRecord = {"id": own, "parent": parent, "passage": "p", "question": own, "depth": depth}
        return {**shape, "worth": worth, "status": status, "judgements": []}

    nodes = [node("n1", "", 0, 1.0, "done"), node("n2", "n1", 1, 0.1), node("n3", "n1", 1, 0.2)]
    nodes += [node("n4", "n1", 1, 0.3, "done"), node("n5", "n4", 2, 0.9)]
    assert [one["id"] for one in next_levels(nodes, "breadth", 4)] == ["n3", "n2"]
    assert [one["id"] for one in next_levels(nodes, "best", 4)] == ["n5", "n3"]


def test_a_question_below_an_unlikely_one_is_less_likely_still() -> None:
    lacking: Any = {"passage": "p1", "score": 1, "missing": "When?", "worth": 0.8}
    root: NodeRecord = {"id": "n1", "parent": "", "passage": "", "question": "Who?", "depth": 0, "worth": 1.0}
    above: NodeRecord = {**root, "id": "n2", "parent": "n1", "question": "Where?", "depth": 1, "worth": 0.5}
    nodes: list[NodeRecord] = [{**root, "status": "open"}, {**above, "status": "done", "judgements": [lacking]}]
    child = grow(nodes, lambda question, others: -1)[-1]
    assert (child["parent"], child["question"], child["worth"]) == ("n2", "When?", 0.4)
