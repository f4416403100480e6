"""Evaluation as the screens and the command line know it: sets, runs, and what comes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import cycle, islice
from typing import Any, Final, Literal, get_args

from rag.conversations.feedback import Feedback
from rag.errors import RagError
from rag.evaluation import comparison
from rag.evaluation.cases import Answered, Case, Format, write_cases
from rag.evaluation.comparison import Compared, Figure, Pair
from rag.evaluation.judge import ENOUGH, Agreement, Label, agreement, labels_of
from rag.evaluation.metrics import BY_JUDGE, METRICS, Timed, Tools, scores
from rag.evaluation.runs import App, EvaluationRuns, RowView
from rag.evaluation.sets import Sets
from rag.evaluation.settings import Setting
from rag.evaluation.support import passage_of
from rag.evaluation.testset import Written, of_feedback, of_pages, of_written, opening
from rag.prompts import requests
from rag.runs.serialization import from_json
from rag.store.sql.conversation_table import ConversationTable
from rag.store.sql.database import Database
from rag.types import Answer, CheckedBy, Page, Verdict
from rag.web.url_key import url_hash

log = logging.getLogger(__name__)

Which = Literal["off", "sample", "all"]
MAIN: Final = ("recall@4000", "contains", "citation_precision", "refusal_right", "failed", "seconds")
_ONE_IN: Final = 10
_BINS: Final = 10
_PAGES: Final = 200  # that are read to make a set


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
    """Sets, runs and labels of those who share an app without sign-in; `of` is one person's, for sets are made of what
    they asked and thought.

    Safe to share between threads. `sets` keeps questions, `runs` asks them; `ids` confine to some questions.
    """

    def __init__(self, database: Database, app: App, feedback: Feedback, shown: Which = "off") -> None:
        """`shown` says which answers are scored after they were shown."""
        self._owner: str | None = ""
        self._database = database
        self.sets = Sets(database)
        self.runs = EvaluationRuns(database, app)
        self._labels = database.labels
        self._turns = database.conversations
        self._shown = ShownAnswers(database.conversations, shown)
        self._app = app
        self._feedback = feedback

    def of(self, owner: str | None) -> Evaluation:
        """The same for one person; None is everybody's, for the operator's command line."""
        theirs = copy(self)
        theirs._owner, theirs.sets, theirs.runs = owner, Sets(self._database, owner), self.runs.of(owner)
        return theirs

    def start(self) -> None:
        """Go on with what an earlier process left unfinished."""
        self.runs.begin()

    def close(self) -> None:
        self.runs.close()
        self._shown.close()

    # Sets

    def gather_feedback(self, library: str, set_id: str) -> int:
        """Take what the owner of a set thought of answers into it; returns how many came in.

        What was neither corrected nor confirmed is a draft: it has no answer to be held against.
        """
        owner, known = self.sets.set_of(set_id).owner, self.sets.ids(set_id)
        rows = self._feedback.questions(library, self._app.page, owner)
        found = [case for case in of_feedback(rows) if case.id not in known]
        self.sets.put(set_id, found)
        return len(found)

    def make(self, set_id: str, most: int = 50) -> int:
        """Add drafts made of the library's pages without a model; returns how many."""
        pages, known = list(self._pages(set_id)), self.sets.ids(set_id)
        found = [case for case in of_pages(pages, most + len(known)) if case.id not in known][:most]
        self.sets.put(set_id, found)
        return len(found)

    def write(self, set_id: str, most: int = 50, *, chat: Any = None, person: str = "") -> Iterator[Case]:
        """Add drafts that the chat model writes, each as it comes: it may be asked three times as often as `most`.

        Raises RagError: "evaluation_needs_model", "evaluation_share_spent"; ModelError.
        """
        pages = list(self._pages(set_id))
        fill, made = self._app.fill(chat, person), 0
        for number, page in enumerate(islice(cycle(pages), 3 * most)):
            prompt = requests.page_question(self._app.texts, passage_of(opening(page, number), page.title))
            written = fill(Written, prompt)
            if isinstance(written, Written) and (case := of_written(written, page)):
                self.sets.put(set_id, [case])
                yield case
                made += 1
            if made == most:
                return

    def _pages(self, set_id: str) -> Iterator[Page]:
        """Pages with their texts, at most as many as are read for a set, spread over the library."""
        library = self.sets.set_of(set_id).library
        known = self._app.pages(library)
        step = max(1, len(known) // _PAGES)
        found = (self._app.page(library, page.url_hash) for page in known[::step][:_PAGES])
        return (page for page in found if page is not None)

    def anchor(self, set_id: str) -> int:
        """`Sets.anchor` over the set's library."""
        library = self.sets.set_of(set_id).library

        @lru_cache(_PAGES)
        def text_of(url: str) -> str | None:
            page = self._app.page(library, url_hash(url))
            return page.text if page else None

        return self.sets.anchor(set_id, text_of)

    # Runs

    def evaluate(
        self, set_id: str, settings: Sequence[Setting], *, person: str = "", chat: Any = None, judge: bool = False
    ) -> str:
        """Begin a run over the approved cases of a set, its evidence looked for anew; returns its id.

        `person` and `chat` are those of `EvaluationRuns.create`.
        """
        self.anchor(set_id)
        kept, cases = self.sets.set_of(set_id), self.sets.cases(set_id, approved=True)
        how: dict[str, Any] = {"name": kept.name, "set_id": set_id, "person": person, "chat": chat, "judge": judge}
        run_id = self.runs.create(kept.library, cases, settings, **how)
        self.runs.begin()
        return run_id

    def side_by_side(
        self, library: str, case: Case, settings: Sequence[Setting], *, person: str = "", chat: Any = None
    ) -> list[RowView]:
        """One question under each of the settings, here and now; kept as a run of its own.

        Raises RagError where it came to a stop.
        """
        run_id = self.runs.create(library, [case], settings, name=case.question, person=person, chat=chat)
        rows: list[RowView] = []
        self.runs.work(run_id, rows.append)
        if not rows and (notice := self.runs.run(run_id).notice):
            raise RagError(notice.code, **notice.params)
        return rows

    def export(self, run_id: str, setting: str, form: Format = "ragas") -> str:
        """The questions of a run with what was answered, as a file."""
        rows = self.runs.rows(run_id, setting)
        answered = {row.case_id: Answered(row.answer.text, [one.text for one in row.answer.passages]) for row in rows}
        return write_cases(self.runs.cases(run_id), form, answered)

    # What comes of them

    def withheld(self, sides: Sequence[Side]) -> frozenset[str]:
        """The metrics that stay out of figures: a chat model judged them, and labels have not shown that it agrees with
        people."""
        judged = [run.library for side in sides if (run := self.runs.run(side.run_id)).judge]
        shown = self.agreement(judged[0]).get("model") if judged else None
        return BY_JUDGE if judged and not (shown and shown.enough) else frozenset()

    def figures(self, side: Side, ids: Sequence[str] | None = None) -> list[Figure]:
        """Every metric of a run that could be judged, with its 95 % interval; without what is withheld."""
        withheld = self.withheld([side])
        return [one for one in comparison.figures(self._scores(side), ids) if one.metric.name not in withheld]

    def main_figures(self, run_id: str) -> dict[str, dict[str, float]]:
        """The means of `MAIN` by setting, of what could be judged and is not withheld."""
        withheld = self.withheld([Side(run_id)])
        return self.runs.means(run_id, [name for name in MAIN if name not in withheld])

    def compare(
        self, sides: Sequence[Side], ids: Sequence[str] | None = None, names: Sequence[str] = ()
    ) -> list[list[Compared]]:
        """Each further of two to four sides beside the first, without what is withheld. Raises
        RagError("compare_sides")."""
        if not 2 <= len(sides) <= comparison.MOST:
            raise RagError("compare_sides", most=comparison.MOST)
        withheld = self.withheld(sides)
        names = [name for name in names or METRICS if name not in withheld]
        return comparison.compare(list(map(self._scores, sides)), ids, names)

    def by_difference(self, sides: Sequence[Side], metric: str, ids: Sequence[str] | None = None) -> list[Pair]:
        """The questions by how much the last side differs from the first."""
        return comparison.by_difference(list(map(self._scores, sides)), metric, ids)

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

    # Answers that people were shown

    def score_shown(self, library: str, turn_id: str, answer: Answer) -> None:
        """Score an answer in the background, where the settings say so."""
        self._shown.score(turn_id, answer, lambda: self._app.tools(library, None, False))

    def over_time(self, library: str) -> list[tuple[str, dict[str, float]]]:
        """When answers that were scored were asked for (ISO 8601), and their scores, oldest first."""
        return self._turns.scored(library, self._owner)

    # The judge

    def queue(self, side: Side, most: int = ENOUGH) -> int:
        """Put statements of a run's answers before people, those that a model judged first; returns how many wait."""
        run = self.runs.run(side.run_id)
        questions = {case.id: case.question for case in self.runs.cases(run.id)}
        found = labels_of(self.runs.rows(run.id, side.setting or run.settings[0].name), questions)
        chosen = sorted(found, key=lambda one: (one.by == "rules", one.id))[:most]
        items = [(one.id, one.judged, {**asdict(one), "label": ""}) for one in chosen]
        self._labels.add(run.library, self._owner or "", items)
        return len(self.labels(run.library))

    def labels(self, library: str, *, labelled: bool = False) -> list[Label]:
        """What waits for a person's verdict, or has it."""
        return [from_json(Label, row) for row in self._labels.items(library, labelled=labelled, owner=self._owner)]

    def label(self, label_id: str, verdict: Verdict | Literal[""]) -> None:
        """Note a person's verdict; "" takes it back."""
        self._labels.label(label_id, verdict, self._owner)

    def agreement(self, library: str) -> dict[CheckedBy, Agreement]:
        """How well each of those that judged agrees with people, where people labelled any of it."""
        labels = self.labels(library, labelled=True)
        found = {by: agreement([one for one in labels if one.by == by]) for by in get_args(CheckedBy)}
        return {by: one for by, one in found.items() if one}

    def _scores(self, side: Side) -> comparison.Scores:
        return self.runs.scores(side.run_id, side.setting)


class ShownAnswers:
    """Scores answers one after another, in a thread of its own, and keeps the scores with their turns."""

    def __init__(self, table: ConversationTable, which: Which) -> None:
        self._table = table
        self._which = which
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scores")

    def score(self, turn_id: str, answer: Answer, tools: Callable[[], Tools]) -> None:
        """Returns at once; of a `sample` one answer in ten is scored, by the turn's id."""
        if self._which == "all" or (self._which == "sample" and int(turn_id, 16) % _ONE_IN == 0):
            self._thread.submit(self._score, turn_id, answer, tools)

    def close(self) -> None:
        """Leave what waits unscored."""
        self._thread.shutdown(cancel_futures=True)

    def _score(self, turn_id: str, answer: Answer, tools: Callable[[], Tools]) -> None:
        try:
            found = scores(Case(turn_id, answer.question), Timed(answer), tools())
            named = {name: value for name, value in found.items() if name in METRICS and value is not None}
            self._table.add_extra(turn_id, {"scores": named})
        except RagError as error:
            log.warning("an answer could not be scored: %s", error)
        except Exception:  # the thread's edge: the answer was shown, and is sound
            log.exception("an answer could not be scored")
