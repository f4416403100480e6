"""An app that answers by rule, for evaluation runs, and such a run in a process that can be killed.

`python -m tests.support.evaluating FOLDER CASES` is that process: it starts a run or resumes the existing one, asks a
question every 20 ms, and appends the number of questions so far to FOLDER/asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag.evaluation.cases import Case, Setting
from rag.evaluation.metrics import Judges
from rag.evaluation.runs import EvaluationRuns
from rag.runs.run import Question
from rag.store.sql.database import Database
from rag.types import Answer, Event, Page

SETTINGS = [Setting("fast"), Setting("deep")]


@dataclass
class RuleBasedApp:
    """A fake App that answers immediately with what `answer_for` returns, by default the question and "!"."""

    answer_for: Callable[[Question], Answer] = lambda asked: Answer(
        asked.text, asked.mode, "answered", f"{asked.text}!"
    )
    asked: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    before: Callable[[], object] = lambda: None

    def source_of(self, chat: Any) -> Any:
        return chat

    def current_chat(self, source: Any) -> Any:
        return source

    def ask_as(
        self, question: Question, history: Sequence[tuple[str, str]], model: str, chat: Any, person: str, answers: int
    ) -> str:
        self.before()
        self.asked.append((question.mode, question.text))
        run_id = str(len(self.asked))
        self.answers[run_id] = self.answer_for(question)
        return run_id

    def events(self, run_id: str, since: int = 0, wait: float = 0.0) -> list[Event]:
        answer = self.answers[run_id]
        return [Event(0, "token", answer.text), Event(1, "answer", answer)][since:]

    def cancel(self, run_id: str) -> None:
        return

    def warm(self, library: str) -> None:
        return

    def judges(self, library: str, chat: Any, judge: bool) -> Judges:
        return Judges()

    def generation(self, library: str) -> str:
        return f"state of {library}"

    def page(self, library: str, url_hash: str) -> Page | None:
        return None


def make_cases(count: int) -> list[Case]:
    return [Case(str(n), f"Question {n}?", "en" if n % 2 else "zh", (f"question {n}",)) for n in range(count)]


def main(folder: Path, count: int) -> None:
    database, asker = Database(folder / "app.sqlite3"), RuleBasedApp()
    runs = EvaluationRuns(database, asker)
    found = runs.runs("main")
    run_id = found[0].id if found else runs.create("main", make_cases(count), SETTINGS)

    def note() -> None:
        time.sleep(0.02)
        with (folder / "asked").open("a") as file:
            file.write(f"{len(asker.asked)}\n")

    asker.before = note
    runs.work(run_id)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
