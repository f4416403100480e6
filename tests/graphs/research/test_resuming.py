"""A run whose process is killed resumes from its last step in another one: only unfinished steps run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.errors import RagError
from rag.runs.run import Question, RunOptions
from rag.types import Answer
from tests.support.answering import BRIDGE, VOLCANO, FakeRetriever, passage
from tests.support.chat_server import ChatServer
from tests.support.conversing import ConversingProcess
from tests.support.forked_process import run_and_kill
from tests.support.research_model import ResearchModel, step

FIRST, SECOND, THIRD = "When did Mount Aso erupt?", "When was the bridge opened?", "How wide is the crater?"
STEPS = (step(FIRST), step(SECOND), step(THIRD, needs=[1]))
FINISHED = ("enter", "plan", "dispatch", "step", "review", "write", "verify")


QUESTION = Question("What of Mount Aso and the bridge?", ("main",), "research", options=RunOptions())


def make_process(folder: Path, base_url: str) -> ConversingProcess:
    by_query = {FIRST: [passage(1)], SECOND: [passage(2, BRIDGE)], THIRD: [passage(1), passage(3, VOLCANO)]}
    return ConversingProcess(folder, base_url, FakeRetriever(by_query=by_query))


def _model() -> ResearchModel:
    going_on = {"action": "continue", "justification": "", "steps": []}
    report = "Mount Aso erupted in 1953 [1]. The bridge was opened in 1932 [2]."
    return ResearchModel(steps=STEPS, report=report, replies={"ChoiceReply": going_on})


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(_model()) as its_server:
        yield its_server


@pytest.fixture(scope="module")
def undisturbed(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    with closing(make_process(tmp_path_factory.mktemp("other"), server.base_url)) as process:
        run_id = process.conversations.ask(process.request(QUESTION)).run_id
        return _summary(process.runs.wait(run_id, 60))


def run_until(folder: Path, base_url: str, node: str, times: int) -> list[str]:
    """Ask, and return the turn's id and the searches as soon as `node` has finished `times` times."""
    process = make_process(folder, base_url)
    return [process.ask_until(QUESTION, node, times), *process.retriever.queries]


@pytest.mark.parametrize(("node", "times"), [(node, 1) for node in FINISHED[:-1]] + [("step", 2), ("dispatch", 2)])
def test_a_report_killed_at_any_step_ends_the_same(
    tmp_path: Path, server: ChatServer, undisturbed: tuple[Any, ...], node: str, times: int
) -> None:
    turn_id, *searched = run_and_kill(run_until, tmp_path, server.base_url, node, times)
    with closing(make_process(tmp_path, server.base_url)) as process:
        turn = process.wait_until_interrupted(turn_id)
        assert turn.can_resume
        asked = process.conversations.resume_turn(turn_id, process.request(QUESTION))
        answer = process.runs.wait(asked.run_id, 60)
        with pytest.raises(RagError):
            process.conversations.resume_turn(turn_id, process.request(QUESTION))
    assert _summary(answer) == undisturbed
    assert sorted({*searched, *process.retriever.queries}) == sorted([FIRST, SECOND, THIRD])
    assert answer.model_calls <= 16


def _summary(answer: Answer) -> tuple[Any, ...]:
    plan = [(one["sub_question"], one["status"]) for one in answer.trail["plan"]]
    return answer.outcome, answer.text, [one.quote for one in answer.citations], plan
