"""Runs: every question of a set under every setting, one after another, in a job that survives restarts.

Each answer is committed immediately with its scores, so that a resumed run skips finished questions. A run asks like a
user (`App.ask_as`), but stores no conversations.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from rag import __version__
from rag.errors import RagError, StoreUnavailableError
from rag.evaluation.cases import Case, Setting, case_of, row_of, version_of
from rag.evaluation.judge import Fill
from rag.evaluation.metrics import Judges, TimedAnswer, scores
from rag.process import Process
from rag.runs.run import Question, from_json, notice_of, record, to_json
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import RunState, StoredRow, StoredRun
from rag.store.values import UNAVAILABLE_CODES, with_unlimited_wait
from rag.types import Answer, Event, Notice, Page

if TYPE_CHECKING:
    from rag.prompts.texts import PromptTexts

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 60.0  # seconds between checks for runs of dead processes
_RETRY_SECONDS: Final = 1.0  # seconds between retries while a user has too many answers in progress
_HEARTBEAT_SECONDS: Final = 5.0  # seconds between heartbeats while a run waits for an answer
_OPEN_STATES: Final[tuple[RunState, ...]] = ("running", "paused")


class EvaluatedApp(Protocol):
    """The interface to the app that evaluation needs, implemented in a higher layer: `rag.app.evaluating`."""

    def source_of(self, chat: Any) -> Any:
        """Return a reference to a connected chat model: its owner, without its key."""
        ...

    def current_chat(self, source: Any) -> Any:
        """Return the model now connected by the owner in `source`; None means the model of the settings.

        Raises RagError("evaluation_no_model") if it is no longer connected.
        """
        ...

    def ask_as(
        self, question: Question, history: Sequence[tuple[str, str]], model: str, chat: Any, person: str, answers: int
    ) -> str:
        """Start an answer by this model of the service in the settings, or by the connected one (`chat`).

        It counts as one of the `person`'s answers in progress and, with the service in the settings, as `answers` of
        their daily share. Raises RagError: "too_many_answers", "evaluation_share_spent".
        """
        ...

    def events(self, run_id: str, since: int = 0, wait: float = 0.0) -> list[Event]: ...

    def cancel(self, run_id: str) -> None: ...

    def warm(self, library: str) -> None:
        """Load models and data for which the first question would otherwise wait."""
        ...

    def judges(self, library: str, chat: Any, judge: bool) -> Judges:
        """Return the judges of answers, including the chat model if `judge`. Loads the embedding model."""
        ...

    def generation(self, library: str) -> str:
        """Return a hash that identifies the current state of the library."""
        ...

    def pages(self, library: str) -> list[Page]:
        """Return all pages, without their texts."""
        ...

    def page(self, library: str, url_hash: str) -> Page | None: ...

    def fill(self, chat: Any, person: str = "") -> Fill:
        """Return a function that makes a chat model fill a form; each call counts as an answer, as in `ask_as`.

        Raises RagError: "evaluation_needs_model", "evaluation_share_spent".
        """
        ...

    @property
    def texts(self) -> PromptTexts: ...


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as displayed. `set_version` identifies its questions' wording, `generations` the libraries' states."""

    id: str
    library: str
    name: str
    set_id: str
    set_version: str
    created_at: str
    state: RunState
    settings: tuple[Setting, ...]
    done: int
    total: int
    notice: Notice | None = None
    code: str = ""
    judge: bool = False
    generations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowView:
    """The result of a question: the answer with the texts of its passages, scores, and time to first token."""

    setting: str
    case_id: str
    answer: Answer
    scores: dict[str, float | None]
    first_token: float | None


class EvaluationRuns:
    """Runs of one user; owner "" stands for all users of an app without sign-in, None for every owner.

    Safe to share between threads and processes. Raises RagError("evaluation_unknown") for a run that does not exist or
    is another owner's.
    """

    def __init__(self, database: Database, app: EvaluatedApp) -> None:
        self._table = database.evaluations
        self._owner: str | None = ""
        self._app = app
        self._process = Process()
        self._chats: dict[str, Any] = {}
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._start_lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="evaluations", daemon=True)

    def of(self, owner: str | None) -> EvaluationRuns:
        scoped = copy(self)
        scoped._owner = owner
        return scoped

    # Requests

    def create(
        self,
        library: str,
        cases: Sequence[Case],
        settings: Sequence[Setting],
        *,
        name: str = "",
        set_id: str = "",
        person: str = "",
        chat: Any = None,
        judge: bool = False,
    ) -> str:
        """Store a run, which `begin` or `work` starts; return its id. Raises RagError("evaluation_empty").

        `chat` is a chat model connected in a browser: only its owner is stored, in memory, and the model is looked up
        for each question. If it is disconnected, or after a restart, the run pauses. `person` is the user whose share
        the answers count against, if any. With `judge` the chat model checks statements against their passages,
        otherwise a local model or rules do.
        """
        settings = list({setting.name: setting for setting in settings}.values())
        if not cases or not settings:
            raise RagError("evaluation_empty")
        libraries = list(dict.fromkeys(setting.library or library for setting in settings))
        data = {
            "settings": [asdict(setting) for setting in settings],
            "set_version": version_of(cases),
            "generations": [self._app.generation(name) for name in libraries],
            "code": __version__,
            "connected": chat is not None,
            "person": person,
            "judge": judge,
        }
        total = len(cases) * len(settings)
        rows = list(map(row_of, cases))
        run_id = self._table.create(library, self._owner or "", name, set_id, rows, total, data)
        self._store_chat(run_id, chat)
        return run_id

    def begin(self) -> None:
        """Work on running runs in a background thread; also called on startup."""
        with self._start_lock:
            if self._thread.ident is None and not self._closed.is_set() and self._table.running():
                self._thread.start()
        self._wake.set()

    def runs(self, library: str) -> list[RunView]:
        """Return the runs of the library, newest first."""
        return [_view(run) for run in self._table.runs(library, self._owner)]

    def run(self, run_id: str) -> RunView:
        return _view(self._find(run_id))

    def cases(self, run_id: str) -> list[Case]:
        """Return a run's questions as they were when it was created."""
        return [case_of(row) for row in self._table.cases(self._find(run_id).id)]

    def scores(self, run_id: str, setting: str = "") -> dict[str, dict[str, float | None]]:
        """Return the scores of one setting, by default the first, by question."""
        run = self.run(run_id)
        setting = setting or run.settings[0].name
        return {key: dict(values) for key, values in self._table.scores(run_id).get(setting, {}).items()}

    def means(self, run_id: str, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the means of these scores by setting, in the run's order."""
        means = self._table.means(self._find(run_id).id, names)
        return {setting.name: means.get(setting.name, {}) for setting in self.run(run_id).settings}

    def row(self, run_id: str, setting: str, case_id: str) -> RowView | None:
        row = self._table.row(self._find(run_id).id, setting, case_id)
        return _row_view(row) if row else None

    def rows(self, run_id: str, setting: str) -> list[RowView]:
        return [_row_view(row) for row in self._table.rows(self._find(run_id).id, setting)]

    def pause(self, run_id: str) -> None:
        """Stop after the current question, and forget the connected model."""
        self._table.set_state(self._find(run_id).id, "paused", ["running"])
        self._chats.pop(run_id, None)

    def resume(self, run_id: str, chat: Any = None, *, begin: bool = True) -> None:
        """Resume a run with the chat model connected now (`chat`); without one, a run that needs it pauses again.

        Without `begin`, the caller must call `work`.
        """
        if self._find(run_id).state == "paused":
            self._store_chat(run_id, chat)
        data = {"notice": None} | ({"connected": True} if chat is not None else {})
        if self._table.set_state(run_id, "running", ["paused"], data) and begin:
            self.begin()

    def cancel(self, run_id: str) -> None:
        """End a run; its rows remain."""
        self._table.set_state(self._find(run_id).id, "cancelled", _OPEN_STATES)
        self._chats.pop(run_id, None)

    def delete(self, run_id: str) -> None:
        self._table.delete(self._find(run_id).id)
        self._chats.pop(run_id, None)

    def close(self) -> None:
        """Stop; a question that is not answered within seconds is cancelled, and asked again at the next start."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_HEARTBEAT_SECONDS)

    # Work

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            for run in self._table.running():
                try:
                    with_unlimited_wait(partial(self.of(None).work, run.id), self._closed.is_set)()
                except Exception:  # a broken run must not stop the thread, and with it the other runs
                    log.exception("an evaluation broke off")
                    self._table.set_state(run.id, "paused", ["running"], {"notice": record(Notice("evaluation_broke"))})
            self._wake.wait(_POLL_SECONDS)

    def work(self, run_id: str, on_row: Callable[[RowView], object] = lambda row: None) -> None:
        """Ask the remaining questions of a run in this thread; do nothing if another process works on it."""
        run = self._find(run_id)
        if self._process.may_be_alive(run.process, run.seen_at):
            return
        if not self._table.claim(run_id, self._process.name, run.process):
            return
        try:
            for library in {setting.library or run.library for setting in _settings(run)}:
                self._app.warm(library)
            for setting, case in self._iter_remaining(run):
                if self._closed.is_set() or self._table.send_heartbeat(run_id) != "running":
                    return
                if (row := self._ask(run, setting, case)) and self._table.add_row(run_id, row):
                    on_row(_row_view(row))
        except StoreUnavailableError:
            return  # the program ends; the next start resumes the run
        except RagError as error:
            self._chats.pop(run_id, None)
            self._table.set_state(run_id, "paused", ["running"], {"notice": record(error.notice)})
            return
        self._chats.pop(run_id, None)
        self._table.set_state(run_id, "done", ["running"])

    def _iter_remaining(self, run: StoredRun) -> Iterator[tuple[Setting, Case]]:
        """Yield pairs without a row, case by case, so that an unfinished run can be compared. Settings take turns in
        being the first to ask, because the others find warm caches, such as the question's vector."""
        rows, settings = self._table.scores(run.id), _settings(run)
        for number, case in enumerate(self.cases(run.id)):
            offset = number % len(settings)
            turns = (*settings[offset:], *settings[:offset])
            yield from ((setting, case) for setting in turns if case.id not in rows.get(setting.name, {}))

    def _ask(self, run: StoredRun, setting: Setting, case: Case) -> StoredRow | None:
        """Ask one question and return its row; None if the run was stopped meanwhile. Raises RagError."""
        source, judge = self._chats.get(run.id), run.data["judge"]
        if source is None and run.data["connected"]:
            raise RagError("evaluation_no_model")
        library = setting.library or run.library
        question = setting.question(case, run.library)
        chat = self._app.current_chat(source)
        while not self._closed.is_set():
            pause = _HEARTBEAT_SECONDS
            try:
                person = run.data.get("person", "")
                answer_id = self._app.ask_as(question, case.history, setting.model, chat, person, 1 + judge)
            except RagError as error:
                if error.code != "too_many_answers":
                    raise
                pause = _RETRY_SECONDS
            else:
                if (timed_answer := self._time_answer(run.id, answer_id)) is None:
                    return None
                self._app.current_chat(source)  # raises if disconnected meanwhile: then the answer does not count
                answer = timed_answer.answer
                # an unavailable database says nothing about the answer
                if answer.notice is None or answer.notice.code not in UNAVAILABLE_CODES:
                    values = scores(case, timed_answer, self._app.judges(library, chat, judge))
                    texts = [asdict(passage) for passage in answer.passages]
                    data = {"answer": {**to_json(answer), "passages": texts}, "first_token": timed_answer.first_token}
                    return StoredRow(setting.name, case.id, values, data)
            self._closed.wait(pause)
            if self._table.send_heartbeat(run.id) != "running":
                return None
        return None

    def _time_answer(self, run_id: str, answer_id: str) -> TimedAnswer | None:
        start, seen, first = time.monotonic(), 0, None
        while not self._closed.is_set():
            events = self._app.events(answer_id, seen, _HEARTBEAT_SECONDS)
            seen += len(events)
            for event in events:
                first = first or (time.monotonic() - start if event.kind == "token" and not event.path else None)
                if event.kind == "waiting":  # no user can reply, so the answer so far counts
                    self._app.cancel(answer_id)
                if event.kind == "answer":
                    return TimedAnswer(event.data, first)
            if self._table.send_heartbeat(run_id) is None:
                break
        self._app.cancel(answer_id)
        return None

    def _store_chat(self, run_id: str, chat: Any) -> None:
        """Remember which connected model a run asks, replacing any other."""
        self._chats.pop(run_id, None)
        if chat is not None:
            self._chats[run_id] = self._app.source_of(chat)

    def _find(self, run_id: str) -> StoredRun:
        run = self._table.run(run_id, self._owner)
        if run is None:
            raise RagError("evaluation_unknown")
        return run


def _settings(run: StoredRun) -> list[Setting]:
    return [from_json(Setting, row) for row in run.data["settings"]]


def _view(run: StoredRun) -> RunView:
    same = ("id", "library", "name", "set_id", "created_at", "state", "done", "total")
    return RunView(
        **{name: getattr(run, name) for name in same},
        **{name: run.data[name] for name in ("set_version", "code", "judge", "generations")},
        settings=tuple(_settings(run)),
        notice=notice_of(run.data.get("notice")),
    )


def _row_view(row: StoredRow) -> RowView:
    return RowView(
        row.setting, row.case_id, from_json(Answer, row.data["answer"]), dict(row.scores), row.data["first_token"]
    )
