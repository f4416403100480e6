"""The evaluation service for the UI and the command line: sets, runs and their results."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import cycle, islice
from typing import Any, Final, Literal, get_args

from rag.conversations.feedback import Feedback
from rag.errors import RagError
from rag.evaluation import comparison
from rag.evaluation.agreement import MIN_LABELS, Agreement, Label, agreement, labels_of
from rag.evaluation.cases import Case, Format, RagasAnswer, Setting, write_cases
from rag.evaluation.comparison import CaseDifference, Figure, MetricDifference
from rag.evaluation.metrics import JUDGE_METRICS, METRICS, TimedAnswer, scores
from rag.evaluation.runs import EvaluatedApp, EvaluationRuns, RowView
from rag.evaluation.sets import Sets, Written, case_from_reply, cases_from_feedback, draft_cases, page_part
from rag.evaluation.support import passage_of
from rag.prompts import requests
from rag.runs.run import from_json
from rag.store.sql.database import Database
from rag.types import Answer, CheckedBy, Page, Verdict
from rag.web.urls import url_hash

log = logging.getLogger(__name__)

Sampling = Literal["off", "sample", "all"]
MAIN_METRICS: Final = ("recall@4000", "contains", "citation_precision", "refusal_right", "failed", "seconds")
_SAMPLE_EVERY: Final = 10
_BINS: Final = 10
_PAGES: Final = 200  # read to make a set


@dataclass(frozen=True, slots=True)
class Side:
    """A run under one of its settings, by default its first."""

    run_id: str
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """The `n` questions predicted answerable with a probability of `low` to `high`, and the share that really are."""

    low: float
    high: float
    n: int
    answerable: float


class Evaluation:
    """Sets, runs and labels of an app without sign-in; `of` returns one user's, because sets contain users' questions.

    Safe to share between threads. `sets` stores questions, `runs` asks them; `ids` limit results to some questions.
    """

    def __init__(self, database: Database, app: EvaluatedApp, feedback: Feedback, sampling: Sampling = "off") -> None:
        """Create the service; `sampling` selects which displayed answers are scored."""
        self._owner: str | None = ""
        self._database = database
        self.sets = Sets(database)
        self.runs = EvaluationRuns(database, app)
        self._labels = database.labels
        self._turns = database.conversations
        self._sampling = sampling
        self._scorer = ThreadPoolExecutor(1, thread_name_prefix="scores")  # scores displayed answers in turn
        self._app = app
        self._feedback = feedback

    def of(self, owner: str | None) -> Evaluation:
        """Return this service for one user; None means all users, for the operator's command line."""
        scoped = copy(self)
        scoped._owner, scoped.sets, scoped.runs = owner, Sets(self._database, owner), self.runs.of(owner)
        return scoped

    def start(self) -> None:
        """Resume unfinished runs of earlier processes."""
        self.runs.begin()

    def close(self) -> None:
        """Stop, without scoring queued answers."""
        self.runs.close()
        self._scorer.shutdown(cancel_futures=True)

    # Sets

    def gather_feedback(self, library: str, set_id: str) -> int:
        """Add cases made from the feedback of the set's owner; return how many.

        Feedback without a correction or confirmation becomes a draft: it has no answer to compare with.
        """
        owner, existing = self.sets.get_set(set_id).owner, self.sets.ids(set_id)
        rows = self._feedback.questions(library, self._app.page, owner)
        cases = [case for case in cases_from_feedback(rows) if case.id not in existing]
        self.sets.put(set_id, cases)
        return len(cases)

    def add_page_drafts(self, set_id: str, limit: int = 50) -> int:
        """Add up to `limit` drafts made from the library's pages without a model; return how many."""
        pages, existing = list(self._pages(set_id)), self.sets.ids(set_id)
        cases = [case for case in draft_cases(pages, limit + len(existing)) if case.id not in existing][:limit]
        self.sets.put(set_id, cases)
        return len(cases)

    def write_drafts(self, set_id: str, limit: int = 50, *, chat: Any = None, person: str = "") -> Iterator[Case]:
        """Add up to `limit` drafts written by the chat model, with up to three times as many requests; yield each.

        Raises RagError: "evaluation_needs_model", "evaluation_share_spent"; ModelError.
        """
        pages = list(self._pages(set_id))
        fill, count = self._app.fill(chat, person), 0
        for number, page in enumerate(islice(cycle(pages), 3 * limit)):
            prompt = requests.page_question(self._app.texts, passage_of(page_part(page, number), page.title))
            reply = fill(Written, prompt)
            if isinstance(reply, Written) and (case := case_from_reply(reply, page)):
                self.sets.put(set_id, [case])
                yield case
                count += 1
            if count == limit:
                return

    def _pages(self, set_id: str) -> Iterator[Page]:
        """Return up to _PAGES pages with their texts, spread over the library."""
        library = self.sets.get_set(set_id).library
        pages = self._app.pages(library)
        step = max(1, len(pages) // _PAGES)
        loaded = (self._app.page(library, page.url_hash) for page in pages[::step][:_PAGES])
        return (page for page in loaded if page is not None)

    def anchor(self, set_id: str) -> int:
        """Call `Sets.anchor` with the pages of the set's library."""
        library = self.sets.get_set(set_id).library

        @lru_cache(_PAGES)
        def text_of(url: str) -> str | None:
            page = self._app.page(library, url_hash(url))
            return page.text if page else None

        return self.sets.anchor(set_id, text_of)

    # Runs

    def evaluate(
        self, set_id: str, settings: Sequence[Setting], *, person: str = "", chat: Any = None, judge: bool = False
    ) -> str:
        """Anchor a set's evidence, start a run over its approved cases, and return the run's id.

        `person`, `chat` and `judge` are as in `EvaluationRuns.create`.
        """
        self.anchor(set_id)
        view, cases = self.sets.get_set(set_id), self.sets.cases(set_id, approved=True)
        options: dict[str, Any] = {"name": view.name, "set_id": set_id, "person": person, "chat": chat, "judge": judge}
        run_id = self.runs.create(view.library, cases, settings, **options)
        self.runs.begin()
        return run_id

    def side_by_side(
        self, library: str, case: Case, settings: Sequence[Setting], *, person: str = "", chat: Any = None
    ) -> list[RowView]:
        """Ask one question under each setting in this thread, and store the results as a run.

        Raises RagError if the run stopped without results.
        """
        run_id = self.runs.create(library, [case], settings, name=case.question, person=person, chat=chat)
        rows: list[RowView] = []
        self.runs.work(run_id, rows.append)
        if not rows and (notice := self.runs.run(run_id).notice):
            raise RagError(notice.code, **notice.params)
        return rows

    def export(self, run_id: str, setting: str, form: Format = "ragas") -> str:
        """Return the questions of a run with their answers, as a file."""
        rows = self.runs.rows(run_id, setting)
        answers = {row.case_id: RagasAnswer(row.answer.text, [p.text for p in row.answer.passages]) for row in rows}
        return write_cases(self.runs.cases(run_id), form, answers)

    # Results

    def withheld_metrics(self, sides: Sequence[Side]) -> frozenset[str]:
        """Return the metrics to omit: those that depend on a chat model whose agreement with people is not shown."""
        libraries = [run.library for side in sides if (run := self.runs.run(side.run_id)).judge]
        model = self.agreement(libraries[0]).get("model") if libraries else None
        return JUDGE_METRICS if libraries and not (model and model.is_sufficient) else frozenset()

    def figures(self, side: Side, ids: Sequence[str] | None = None) -> list[Figure]:
        """Return the metrics of a run that could be judged and are not withheld, with 95 % intervals."""
        omitted = self.withheld_metrics([side])
        return [figure for figure in comparison.figures(self._scores(side), ids) if figure.metric.name not in omitted]

    def main_figures(self, run_id: str) -> dict[str, dict[str, float]]:
        """Return the means of `MAIN_METRICS` by setting, without withheld ones and those that were not judged."""
        omitted = self.withheld_metrics([Side(run_id)])
        return self.runs.means(run_id, [name for name in MAIN_METRICS if name not in omitted])

    def compare(
        self, sides: Sequence[Side], ids: Sequence[str] | None = None, names: Sequence[str] = ()
    ) -> list[list[MetricDifference]]:
        """Compare the first of two to four sides with each of the others, without withheld metrics. Raises
        RagError("compare_sides") for another number of sides."""
        if not 2 <= len(sides) <= comparison.MAX_SIDES:
            raise RagError("compare_sides", most=comparison.MAX_SIDES)
        omitted = self.withheld_metrics(sides)
        names = [name for name in names or METRICS if name not in omitted]
        return comparison.compare(list(map(self._scores, sides)), ids, names)

    def rank_by_difference(
        self, sides: Sequence[Side], metric: str, ids: Sequence[str] | None = None
    ) -> list[CaseDifference]:
        """Return the questions by the change from the first to the last side, largest first."""
        return comparison.rank_by_difference(list(map(self._scores, sides)), metric, ids)

    def calibration(self, side: Side) -> list[Bin]:
        """Return how often the pages answer a question, by the predicted probability."""
        rows = [row for row in self._scores(side).values() if row.get("unanswerable") is not None]
        pairs = [(float(row["answerable"] or 0), 1 - float(row["unanswerable"] or 0)) for row in rows]
        bins = []
        for index in range(_BINS):
            answered = [truth for probability, truth in pairs if min(_BINS - 1, int(probability * _BINS)) == index]
            if answered:
                bins.append(Bin(index / _BINS, (index + 1) / _BINS, len(answered), sum(answered) / len(answered)))
        return bins

    # Displayed answers

    def score_displayed(self, library: str, turn_id: str, answer: Answer) -> None:
        """Score a displayed answer in the background; with sampling "sample", one in ten, by the turn's id."""
        if self._sampling == "all" or (self._sampling == "sample" and int(turn_id, 16) % _SAMPLE_EVERY == 0):
            self._scorer.submit(self._score, library, turn_id, answer)

    def _score(self, library: str, turn_id: str, answer: Answer) -> None:
        try:
            judges = self._app.judges(library, None, False)
            values = scores(Case(turn_id, answer.question), TimedAnswer(answer), judges)
            metrics = {name: value for name, value in values.items() if name in METRICS and value is not None}
            self._turns.add_extra(turn_id, {"scores": metrics})
        except RagError as error:
            log.warning("an answer could not be scored: %s", error)
        except Exception:  # the answer is displayed already; a failed score must not affect it
            log.exception("an answer could not be scored")

    def scores_over_time(self, library: str) -> list[tuple[str, dict[str, float]]]:
        """Return the time of the question (ISO 8601) and the scores of scored answers, oldest first."""
        return self._turns.scored_answers(library, self._owner)

    # The judge

    def queue_labels(self, side: Side, limit: int = MIN_LABELS) -> int:
        """Queue up to `limit` statements of a run for labelling, model-judged first; return the length of the queue."""
        run = self.runs.run(side.run_id)
        questions = {case.id: case.question for case in self.runs.cases(run.id)}
        candidates = labels_of(self.runs.rows(run.id, side.setting or run.settings[0].name), questions)
        batch = sorted(candidates, key=lambda label: (label.by == "rules", label.id))[:limit]
        items = [(label.id, label.judged, {**asdict(label), "label": ""}) for label in batch]
        self._labels.add(run.library, self._owner or "", items)
        return len(self.labels(run.library))

    def labels(self, library: str, *, labelled: bool = False) -> list[Label]:
        """Return the statements that wait for a human label, or with `labelled` those that have one."""
        return [from_json(Label, row) for row in self._labels.items(library, labelled=labelled, owner=self._owner)]

    def label(self, label_id: str, verdict: Verdict | Literal[""]) -> None:
        """Store a human label; "" removes it."""
        self._labels.label(label_id, verdict, self._owner)

    def agreement(self, library: str) -> dict[CheckedBy, Agreement]:
        """Return the agreement with human labels of each judge that has any."""
        labels = self.labels(library, labelled=True)
        results = {by: agreement([label for label in labels if label.by == by]) for by in get_args(CheckedBy)}
        return {by: result for by, result in results.items() if result}

    def _scores(self, side: Side) -> comparison.Scores:
        return self.runs.scores(side.run_id, side.setting)
