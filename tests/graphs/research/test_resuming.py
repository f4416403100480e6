"""A run whose process is killed resumes from its last step in another one: only unfinished steps run again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.config import load_settings
from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import Conversations, TurnRequest
from rag.errors import RagError
from rag.graphs.modes import MODES
from rag.models import chat as chat_models
from rag.reasoning.chat import ChatReasoner
from rag.runs.options import Question, RunOptions
from rag.runs.runs import Runs
from rag.store.sql.database import Database
from rag.types import Answer
from tests.support.answering import BRIDGE, VOLCANO, FakeRetriever, passage
from tests.support.chat_server import ChatServer
from tests.support.forked_process import run_and_kill
from tests.support.quoting import make_quoter
from tests.support.research_model import ResearchModel, step

QUOTER = make_quoter()
FIRST, SECOND, THIRD = "When did Mount Aso erupt?", "When was the bridge opened?", "How wide is the crater?"
STEPS = (step(FIRST), step(SECOND), step(THIRD, needs=[1]))
FINISHED = ("enter", "plan", "dispatch", "step", "review", "write", "verify")


class Process:
    """The services of one process over a data folder, with a chat server."""

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self.database = Database(folder / "app.sqlite3")
        checkpoints = Checkpoints(folder / "conversations.sqlite3")
        self.runs = Runs(MODES, saver=checkpoints.saver)
        self.kept = Conversations(self.database, self.runs, checkpoints)
        settings = load_settings(None, llm_base_url=server.base_url, llm_model="test")
        reasoner = ChatReasoner(chat_models.build_chat_model(settings))
        by_query = {FIRST: [passage(1)], SECOND: [passage(2, BRIDGE)], THIRD: [passage(1), passage(3, VOLCANO)]}
        self.retriever = FakeRetriever(by_query=by_query)
        question = Question("What of Mount Aso and the bridge?", ("main",), "research", options=RunOptions())
        self.asking = TurnRequest(question, reasoner, self.retriever, quoter=QUOTER, suggest=False)

    def close(self) -> None:
        self.runs.close()
        self.kept.close()
        self.database.close()


def _model() -> ResearchModel:
    going_on = {"action": "continue", "justification": "", "steps": []}
    report = "Mount Aso erupted in 1953 [1]. The bridge was opened in 1932 [2]."
    return ResearchModel(steps=STEPS, report=report, replies={"ChoiceReply": going_on})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(_model()) as its_server:
        yield its_server


def run_until(folder: Path, port: int, node: str, times: int) -> list[str]:
    """Ask, and return the turn's id and the searches as soon as `node` has finished `times` times."""
    with ChatServer([]) as unused:
        process = Process(folder, unused)
    settings = load_settings(None, llm_base_url=f"http://127.0.0.1:{port}/v1", llm_model="test")
    object.__setattr__(process.asking, "reasoner", ChatReasoner(chat_models.build_chat_model(settings)))
    asked = process.kept.ask(process.asking)
    since = finished = 0
    while finished < times:
        for event in process.runs.events(asked.run_id, since, 30):
            since = event.seq + 1
            finished += event.kind == "step" and event.data["node"] == node and event.data["state"] == "finished"
    return [asked.turn_id, *process.retriever.queries]


@pytest.mark.parametrize(("node", "times"), [(node, 1) for node in FINISHED[:-1]] + [("step", 2), ("dispatch", 2)])
def test_killed_at_any_step_it_comes_to_the_same_report(
    tmp_path: Path, server: ChatServer, node: str, times: int
) -> None:
    turn_id, *searched = run_and_kill(run_until, tmp_path, server.port, node, times)
    process = Process(tmp_path, server)
    try:
        turn = _cut_off(process, turn_id)
        assert turn.can_resume
        asked = process.kept.resume_turn(turn_id, process.asking)
        answer = process.runs.wait(asked.run_id, 60)
        with pytest.raises(RagError):
            process.kept.resume_turn(turn_id, process.asking)
    finally:
        process.close()
    assert _told(answer) == _told(_undisturbed(tmp_path / "other", server))
    assert sorted({*searched, *process.retriever.queries}) == sorted([FIRST, SECOND, THIRD])
    assert answer.model_calls <= 16


def _cut_off(process: Process, turn_id: str) -> Any:
    """Return the turn once its process is known to be dead."""
    until = time.monotonic() + 60
    while (turn := process.kept.turn(turn_id)).state == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    return turn


def _undisturbed(folder: Path, server: ChatServer) -> Answer:
    folder.mkdir()
    process = Process(folder, server)
    try:
        return process.runs.wait(process.kept.ask(process.asking).run_id, 60)
    finally:
        process.close()


def _told(answer: Answer) -> tuple[Any, ...]:
    plan = [(one["sub_question"], one["status"]) for one in answer.trail["plan"]]
    return answer.outcome, answer.text, [one.quote for one in answer.citations], plan
