"""Conversations of one process over a data folder, whose runs survive when it is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.config import load_settings
from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import Conversations, TurnRequest, TurnView
from rag.graphs.modes import MODES
from rag.models import chat as chat_models
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import Question
from rag.runs.runs import Runs
from rag.store.sql.database import Database
from rag.types import Answer
from tests.support.answering import FakeRetriever
from tests.support.chat_server import ChatServer
from tests.support.quoting import make_quoter
from tests.support.waiting import until

QUOTER = make_quoter()


def chat_reasoner(base_url: str) -> ChatReasoner:
    return ChatReasoner(chat_models.build_chat_model(load_settings(None, llm_base_url=base_url, llm_model="test")))


def run_over_http(runs: Runs, model: Any, retriever: Any, question: Question, **how: Any) -> tuple[Answer, list[Any]]:
    """Run the question to its end, over a chat server that replies like `model`, or without a model if that is None.

    Returns the answer and the server's requests.
    """
    with ChatServer([] if model is None else model) as server:
        reasoner = QUOTER if model is None else chat_reasoner(server.base_url)
        run_id = runs.start(question, reasoner=reasoner, retriever=retriever, quoter=QUOTER, **how)
        return runs.wait(run_id, 120), server.requests


class ConversingProcess:
    """The services of one process over a data folder, with the chat server at `base_url`."""

    def __init__(self, folder: Path, base_url: str, retriever: FakeRetriever) -> None:
        self.database = Database(folder / "app.sqlite3")
        checkpoints = Checkpoints(folder / "conversations.sqlite3")
        self.runs = Runs(MODES, saver=checkpoints.saver)
        self.conversations = Conversations(self.database, self.runs, checkpoints)
        self.reasoner = chat_reasoner(base_url)
        self.retriever = retriever

    def request(self, question: Question, conversation: str = "") -> TurnRequest:
        made = TurnRequest(question, self.reasoner, self.retriever, quoter=QUOTER, suggest=False)
        return replace(made, conversation_id=conversation)

    def ask_until(self, question: Question, node: str, times: int) -> str:
        """Ask, and return the turn's id as soon as `node` has finished `times` times."""
        asked = self.conversations.ask(self.request(question))
        since = finished = 0
        while finished < times:
            for event in self.runs.events(asked.run_id, since, 30):
                since = event.seq + 1
                finished += event.kind == "step" and event.data["node"] == node and event.data["state"] == "finished"
        return asked.turn_id

    def wait_until_interrupted(self, turn_id: str) -> TurnView:
        """Return the turn once its process is known to be dead."""
        turn: TurnView = until(lambda: (one := self.conversations.turn(turn_id)).state != "running" and one)
        return turn

    def close(self) -> None:
        self.runs.close()
        self.conversations.close()
        self.database.close()
