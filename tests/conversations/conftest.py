"""The services of one process over a data folder, and questions about two of the pages that it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import Conversations, TurnHandle, TurnRequest, TurnView
from rag.graphs.modes import MODES
from rag.runs.run import Mode, Question
from rag.runs.runs import Runs
from rag.store.sql.database import Database
from tests.support.answering import FakeRetriever, ScriptedReasoner

FIRST, SECOND = "When did Mount Aso erupt?", "How wide is its crater?"
WIDE = ["Its crater is 24 kilometres wide [1]."]


class Services:
    """The conversations of one process over a data folder."""

    def __init__(self, folder: Path, modes: Mapping[str, Mode] = MODES) -> None:
        self.folder = folder
        self.database = Database(folder / "app.sqlite3")
        self.checkpoints = Checkpoints(folder / "conversations.sqlite3")
        self.runs = Runs(modes, saver=self.checkpoints.saver)
        self.kept = Conversations(self.database, self.runs, self.checkpoints)

    def close(self) -> None:
        self.runs.close()
        self.kept.close()
        self.database.close()


class Talk(Services):
    """Conversations that a script answers, over passages that are always found."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.retriever = FakeRetriever()

    def begin(self, question: str, reasoner: Any = None, *, conversation_id: str = "", **more: Any) -> TurnHandle:
        how = {name: more.pop(name) for name in ("mode", "options", "scope") if name in more}
        given = {"suggest": False, **more, "conversation_id": conversation_id}
        asked = Question(question, (given.pop("library", "main"),), **how)
        asking = TurnRequest(asked, reasoner or ScriptedReasoner(), self.retriever, **given)
        return self.kept.ask(asking)

    def ask(self, question: str, reasoner: Any = None, **more: Any) -> tuple[TurnHandle, TurnView]:
        asked = self.begin(question, reasoner, **more)
        self.runs.wait(asked.run_id, 60)
        return asked, self.kept.turn(asked.turn_id, more.get("owner", ""))


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    one = Talk(tmp_path)
    yield one
    one.close()
