"""Evaluation as the screens and the command line know it: sets, runs, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rag.conversations.feedback import Feedback
from rag.errors import RagError
from rag.evaluation import comparison
from rag.evaluation.cases import Answered, Case, Format, write_cases
from rag.evaluation.comparison import Compared, Figure, Pair
from rag.evaluation.making import of_feedback
from rag.evaluation.runs import Asker, EvaluationRuns, RowView
from rag.evaluation.sets import Sets
from rag.evaluation.settings import Setting
from rag.store.database import Database
from rag.types import Page
from rag.web.url_key import url_hash

_BINS: Final = 10


class App(Asker, Protocol):
    def page(self, library: str, url_hash: str) -> Page | None: ...


@dataclass(frozen=True, slots=True)
class Side:
    """A run under one of its settings, by default its first."""

    run_id: str
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions whose `answerable` lay between two values, and the share of them that the pages do answer."""

    low: float
    high: float
    n: int
    answerable: float


class Evaluation:
    """Safe to share between threads. `sets` keeps questions, `runs` asks them.

    Languages and tags confine to the questions that have one of each that is given.
    """

    def __init__(self, database: Database, app: App, feedback: Feedback) -> None:
        self.sets = Sets(database)
        self.runs = EvaluationRuns(database, app)
        self._app = app
        self._feedback = feedback

    def start(self) -> None:
        """Go on with what an earlier process left unfinished."""
        self.runs.begin()

    def close(self) -> None:
        self.runs.close()

    # Sets

    def gather_feedback(self, library: str, set_id: str) -> int:
        """Take what people thought of answers into a set, once each; returns how many came in.

        What nobody corrected or confirmed is a draft: it has no answer to be held against.
        """
        known = {case.id for case in self.sets.cases(set_id)}
        rows = self._feedback.questions(library, lambda one: self._app.page(library, one))
        found = [case for case in of_feedback(rows) if case.id not in known]
        self.sets.put(set_id, found)
        return len(found)

    def anchor(self, set_id: str) -> int:
        """`Sets.anchor` over the set's library."""
        library = self.sets.set_of(set_id).library

        def text_of(url: str) -> str | None:
            page = self._app.page(library, url_hash(url))
            return page.text if page else None

        return self.sets.anchor(set_id, text_of)

    # Runs

    def evaluate(
        self, set_id: str, settings: Sequence[Setting], *, owner: str = "", chat: Any = None, judge: bool = False
    ) -> str:
        """Begin a run over the approved cases of a set, its evidence looked for anew; returns its id."""
        self.anchor(set_id)
        kept, cases = self.sets.set_of(set_id), self.sets.cases(set_id, approved=True)
        how: dict[str, Any] = {"name": kept.name, "set_id": set_id, "owner": owner, "chat": chat, "judge": judge}
        run_id = self.runs.create(kept.library, cases, settings, **how)
        self.runs.begin()
        return run_id

    def side_by_side(
        self, library: str, case: Case, settings: Sequence[Setting], *, owner: str = "", chat: Any = None
    ) -> list[RowView]:
        """One question under each of the settings, here and now; kept as a run of its own."""
        run_id = self.runs.create(library, [case], settings, name=case.question, owner=owner, chat=chat)
        rows: list[RowView] = []
        self.runs.work(run_id, rows.append)
        return rows

    def export(self, run_id: str, setting: str, form: Format = "ragas") -> str:
        """The questions of a run with what was answered, as a file."""
        rows = self.runs.rows(run_id, setting)
        answered = {row.case_id: Answered(row.answer.text, [one.text for one in row.answer.passages]) for row in rows}
        return write_cases(self.runs.cases(run_id), form, answered)

    # What comes of them

    def figures(self, side: Side, languages: Sequence[str] = (), tags: Sequence[str] = ()) -> list[Figure]:
        """Every metric of a run that could be judged, with its 95 % interval."""
        return comparison.figures(self._scores(side), self._chosen(side, languages, tags))

    def compare(
        self, sides: Sequence[Side], languages: Sequence[str] = (), tags: Sequence[str] = (), names: Sequence[str] = ()
    ) -> list[list[Compared]]:
        """Each further of two to four sides beside the first. Raises RagError("compare_sides")."""
        scores = self._sides(sides)
        return comparison.compare(scores, self._chosen(sides[0], languages, tags), names)

    def by_difference(
        self, sides: Sequence[Side], metric: str, languages: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> list[Pair]:
        """The questions by how much the last side differs from the first."""
        return comparison.by_difference(self._sides(sides), metric, self._chosen(sides[0], languages, tags))

    def calibration(self, side: Side) -> list[Bin]:
        """How often the pages do answer, by how likely the search held it that they do."""
        rows = [row for row in self._scores(side).values() if row.get("unanswerable") is not None]
        pairs = [(float(row["answerable"] or 0), 1 - float(row["unanswerable"] or 0)) for row in rows]
        bins = []
        for at in range(_BINS):
            own = [held for likely, held in pairs if min(_BINS - 1, int(likely * _BINS)) == at]
            if own:
                bins.append(Bin(at / _BINS, (at + 1) / _BINS, len(own), sum(own) / len(own)))
        return bins

    def _sides(self, sides: Sequence[Side]) -> list[comparison.Scores]:
        if not 2 <= len(sides) <= comparison.MOST:
            raise RagError("compare_sides", most=comparison.MOST)
        return [self._scores(side) for side in sides]

    def _scores(self, side: Side) -> comparison.Scores:
        return self.runs.scores(side.run_id, side.setting)

    def _chosen(self, side: Side, languages: Sequence[str], tags: Sequence[str]) -> list[str]:
        return comparison.chosen(self.runs.cases(side.run_id), languages, tags)
