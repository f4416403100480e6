"""A tree survives its process, and a user can continue from any node: the original stays next to the new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.graphs.judge.tree import NodeRecord, branch
from rag.runs.run import Question, RunOptions
from rag.types import Answer
from tests.support.answering import FakeRetriever, passage
from tests.support.chat_server import ChatServer
from tests.support.conversing import ConversingProcess
from tests.support.forked_process import run_and_kill
from tests.support.judge_model import BORN, FOUNDED, OTHER, PAGES, WHOLE, JudgeModel


class Process(ConversingProcess):
    def __init__(self, folder: Path, base_url: str) -> None:
        super().__init__(folder, base_url, FakeRetriever(by_query=dict(PAGES), default=[passage(5, OTHER)]))

    def ask(self, mode: str = "judge", conversation: str = "", **options: Any) -> tuple[str, Answer]:
        asked = self.conversations.ask(self.request(question(mode, **options), conversation))
        return asked.conversation_id, self.runs.wait(asked.run_id, 60)


def question(mode: str = "judge", **options: Any) -> Question:
    return Question(WHOLE, ("main",), mode, options=RunOptions(**options))


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(JudgeModel()) as its_server:
        yield its_server


@pytest.fixture(scope="module")
def undisturbed(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    with closing(Process(tmp_path_factory.mktemp("other"), server.base_url)) as process:
        return process.ask()[1]


@pytest.fixture
def process(tmp_path: Path, server: ChatServer) -> Iterator[Process]:
    with closing(Process(tmp_path, server.base_url)) as made:
        yield made


def tree_of(answer: Answer) -> list[tuple[Any, ...]]:
    fields = ("node", "parent", "question", "status", "passage", "score", "missing", "by")
    return [tuple(row[field] for field in fields) for row in answer.trail["tree"]]


def run_until(folder: Path, base_url: str, node: str, times: int) -> list[str]:
    return [Process(folder, base_url).ask_until(question(), node, times)]


STEPS = [("enter", 1), *((node, times) for node in ("pick", "search", "judge", "close") for times in (1, 3))]


@pytest.mark.parametrize(("node", "times"), STEPS)
def test_a_tree_killed_at_any_step_ends_the_same(
    tmp_path: Path, server: ChatServer, undisturbed: Answer, node: str, times: int
) -> None:
    (turn_id,) = run_and_kill(run_until, tmp_path, server.base_url, node, times)
    with closing(Process(tmp_path, server.base_url)) as process:
        process.wait_until_interrupted(turn_id)
        asked = process.conversations.resume_turn(turn_id, process.request(question()))
        answer = process.runs.wait(asked.run_id, 60)
    assert tree_of(answer) == tree_of(undisturbed) and answer.text == undisturbed.text
    assert answer.outcome == "answered" and answer.model_calls <= 24


def branch_of(answer: Answer, node: str, **change: Any) -> Mapping[str, Any]:
    return {"checkpoint": answer.trail["checkpoint"], "node": node, **change}


def test_an_overruled_verdict_starts_a_branch_and_keeps_the_original(
    tmp_path: Path, server: ChatServer, process: Process
) -> None:
    conversation, first = process.ask()
    process.retriever.by_query["Where did Ilse Brandt die?"] = [passage(6, "Ilse Brandt died in Vale in 1990.")]
    verdicts = {"p2": {"score": 1, "missing": "Where did Ilse Brandt die?"}}
    _, second = process.ask(conversation=conversation, branch=branch_of(first, "n2", verdicts=verdicts))
    assert [row["question"] for row in second.trail["tree"] if row["passage"] == "p2"] == [BORN]
    assert [row["by"] for row in second.trail["tree"] if row["passage"] == "p2"] == ["person"]
    assert second.trail["tree"][-1]["question"] == "Where did Ilse Brandt die?"
    assert FOUNDED not in {row["question"] for row in second.trail["tree"]}
    assert len(process.retriever.queries) == 4
    verdicts = {"p2": {"score": 2}}
    _, third = process.ask(conversation=conversation, branch=branch_of(first, "n2", verdicts=verdicts))
    assert {row["node"]: row["answered"] for row in third.trail["tree"]} == {"n1": True, "n2": True}
    process.ask("fast", conversation)
    with closing(Process(tmp_path, server.base_url)) as again:
        turns = again.conversations.turns(conversation)
        kept = [tree_of(turn.answer) for turn in turns[:3] if turn.answer]
        assert kept == [tree_of(one) for one in (first, second, third)]
        _, fourth = again.ask(conversation=conversation, branch=branch_of(first, "n3"))
    assert tree_of(fourth) == tree_of(first)


def test_a_missing_tree_fails_with_a_message(process: Process) -> None:
    conversation, first = process.ask()
    gone = {**branch_of(first, "n1"), "checkpoint": "1f000000-0000-6000-8000-000000000000"}
    _, answer = process.ask(conversation=conversation, branch=gone)
    assert answer.outcome == "failed" and answer.notice and answer.notice.code == "tree_unknown"


def test_an_edited_question_and_excluded_passages_change_the_subtree(process: Process) -> None:
    conversation, first = process.ask()
    _, asked = process.ask(conversation=conversation, branch=branch_of(first, "n2", question=FOUNDED))
    assert [(row["node"], row["question"]) for row in asked.trail["tree"]] == [
        ("n1", WHOLE),
        ("n1", WHOLE),
        ("n2", FOUNDED),
    ]
    _, without = process.ask(conversation=conversation, branch=branch_of(first, "n1", without=["p1"]))
    assert [row["passage"] for row in without.trail["tree"]] == ["p4"]


def test_interrupted_and_linked_nodes_are_asked_again() -> None:
    def node(own: str, parent: str, status: Any, same_as: str = "") -> NodeRecord:
        shape: NodeRecord = {"id": own, "parent": parent, "passage": "p", "question": own, "depth": 1, "worth": 1.0}
        return {**shape, "status": status, "same_as": same_as, "judgements": []}

    nodes = [node("n1", "", "done"), node("n2", "n1", "done"), node("n3", "n2", "done"), node("n4", "n1", "cut")]
    nodes.append(node("n5", "n1", "linked", "n3"))
    kept = branch(nodes, {"node": "n2"})
    assert [(one["id"], one["status"]) for one in kept] == [
        ("n1", "done"),
        ("n2", "done"),
        ("n4", "open"),
        ("n5", "open"),
    ]
