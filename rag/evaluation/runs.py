"""Runs: every question of a set under every setting, one after another, in a job that survives its process.

Each answer is committed with its scores as it comes, so that whoever goes on with a run skips what is there. A run
asks as people do (`App.ask`), and keeps no conversations.
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
from rag.errors import RagError, StoreAwayError
from rag.evaluation.cases import Case, case_of, row_of, version_of
from rag.evaluation.metrics import Timed, Tools, scores
from rag.evaluation.settings import Setting
from rag.process import Process
from rag.runs.options import Question
from rag.runs.serialization import from_json, to_json
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import KeptRow, KeptRun, RunState
from rag.store.values import AWAY, patiently
from rag.types import Answer, Event, Notice, Page

if TYPE_CHECKING:
    from rag.evaluation.judge import Fill
    from rag.prompts.texts import PromptTexts

log = logging.getLogger(__name__)

_LOOK_AGAIN: Final = 60.0  # seconds after which runs of processes that died are looked for
_SHARE_AGAIN: Final = 1.0  # seconds after which a person with too many answers under way may have fewer
_LOOK: Final = 5.0  # seconds after which a run that waits for an answer says that it is alive
_OPEN: Final[tuple[RunState, ...]] = ("running", "paused")


class App(Protocol):
    """The part of the app that evaluation uses, which is above it: `rag.app.evaluating`."""

    def source_of(self, chat: Any) -> Any:
        """What is kept of a connected chat model: whose it is, and no key."""
        ...

    def connected(self, source: Any) -> Any:
        """The chat model that is connected there now; None for that of the settings.

        Raises RagError("evaluation_no_model") where it is not connected any more.
        """
        ...

    def ask_as(
        self, question: Question, history: Sequence[tuple[str, str]], model: str, chat: Any, person: str, answers: int
    ) -> str:
        """Begin to answer with this model of the service in the settings, or with what was connected (`chat`).

        It is one of the `person`'s answers under way, and with the settings' service as many `answers` of their day.
        Raises RagError: "too_many_answers", "evaluation_share_spent".
        """
        ...

    def events(self, run_id: str, since: int = 0, wait: float = 0.0) -> list[Event]: ...

    def cancel(self, run_id: str) -> None: ...

    def warm(self, library: str) -> None:
        """Load what the first question would wait for."""
        ...

    def tools(self, library: str, chat: Any, judge: bool) -> Tools:
        """What judges the answers, the chat model where `judge` is true. Loads the embedding model."""
        ...

    def generation(self, library: str) -> str:
        """What tells this state of the library from every other."""
        ...

    def pages(self, library: str) -> list[Page]:
        """All of them, without their texts."""
        ...

    def page(self, library: str, url_hash: str) -> Page | None: ...

    def fill(self, chat: Any, person: str = "") -> Fill:
        """What fills a form with a chat model; each is one of the `person`'s answers, as in `ask_as`.

        Raises RagError: "evaluation_needs_model", "evaluation_share_spent".
        """
        ...

    @property
    def texts(self) -> PromptTexts: ...


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as it is shown. `set_version` tells the wording of its questions, `generations` the libraries' states."""

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
    """What one question came to: its answer with passages (texts too) and steps, scores, seconds to the first piece."""

    setting: str
    case_id: str
    answer: Answer
    scores: dict[str, float | None]
    first_token: float | None


class EvaluationRuns:
    """Of one person, or of all who share an app without sign-in (an empty `owner`); None is everybody's.

    Safe to share between threads and processes. Raises RagError("evaluation_unknown") for what is not there or
    somebody else's.
    """

    def __init__(self, database: Database, asker: App, owner: str | None = "") -> None:
        self._table = database.evaluations
        self._owner = owner
        self._asker = asker
        self._process = Process()
        self._chats: dict[str, Any] = {}
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="evaluations", daemon=True)

    def of(self, owner: str | None) -> EvaluationRuns:
        """The same for another person."""
        theirs = copy(self)
        theirs._owner = owner
        return theirs

    # What people ask for

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
        """Store a run, which `begin` or `work` sets going; returns its id. Raises RagError("evaluation_empty").

        `chat` is the chat model of a browser: of it is kept whose it is, in memory alone, and it is asked for at each
        question. Where it is gone, or after a restart, the run waits. `person` is whose share the answers count
        against, nobody's where it is empty. With `judge` the chat model holds statements against their passages, else a
        local model or rules do.
        """
        settings = list({setting.name: setting for setting in settings}.values())
        if not cases or not settings:
            raise RagError("evaluation_empty")
        libraries = list(dict.fromkeys(setting.library or library for setting in settings))
        data = {
            "settings": [asdict(one) for one in settings],
            "set_version": version_of(cases),
            "generations": [self._asker.generation(one) for one in libraries],
            "code": __version__,
            "connected": chat is not None,
            "person": person,
            "judge": judge,
        }
        total = len(cases) * len(settings)
        rows = list(map(row_of, cases))
        run_id = self._table.create(library, self._owner or "", name, set_id, rows, total, data)
        self._keep(run_id, chat)
        return run_id

    def begin(self) -> None:
        """Work on what is running, in a thread of its own; also called at start."""
        with self._starting:
            if self._thread.ident is None and not self._closed.is_set() and self._table.running():
                self._thread.start()
        self._wake.set()

    def runs(self, library: str) -> list[RunView]:
        """Those of the library, newest first."""
        return [_view(run) for run in self._table.runs(library, self._owner)]

    def run(self, run_id: str) -> RunView:
        return _view(self._kept(run_id))

    def cases(self, run_id: str) -> list[Case]:
        """Its questions, as they were when it began."""
        return [case_of(row) for row in self._table.cases(self._kept(run_id).id)]

    def scores(self, run_id: str, setting: str = "") -> dict[str, dict[str, float | None]]:
        """The scores of one setting, by default the first, by question."""
        run = self.run(run_id)
        setting = setting or run.settings[0].name
        return {key: dict(values) for key, values in self._table.scores(run_id).get(setting, {}).items()}

    def means(self, run_id: str, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """The means of these scores by setting, in the run's order."""
        found = self._table.means(self._kept(run_id).id, names)
        return {one.name: found.get(one.name, {}) for one in self.run(run_id).settings}

    def row(self, run_id: str, setting: str, case_id: str) -> RowView | None:
        kept = self._table.row(self._kept(run_id).id, setting, case_id)
        return _row_view(kept) if kept else None

    def rows(self, run_id: str, setting: str) -> list[RowView]:
        return [_row_view(row) for row in self._table.rows(self._kept(run_id).id, setting)]

    def pause(self, run_id: str) -> None:
        """Stop after the question in hand; whose model was connected is forgotten."""
        self._table.set_state(self._kept(run_id).id, "paused", ["running"])
        self._chats.pop(run_id, None)

    def resume(self, run_id: str, chat: Any = None, *, begin: bool = True) -> None:
        """Go on with the model that is connected where it is resumed (`chat`); without one, such a run waits on.

        Without `begin` the caller works on it.
        """
        if self._kept(run_id).state == "paused":
            self._keep(run_id, chat)
        told = {"notice": None} | ({"connected": True} if chat is not None else {})
        if self._table.set_state(run_id, "running", ["paused"], told) and begin:
            self.begin()

    def cancel(self, run_id: str) -> None:
        """End it as it is; its rows stay."""
        self._table.set_state(self._kept(run_id).id, "cancelled", _OPEN)
        self._chats.pop(run_id, None)

    def delete(self, run_id: str) -> None:
        self._table.delete(self._kept(run_id).id)
        self._chats.pop(run_id, None)

    def close(self) -> None:
        """Stop after the question in hand, which is asked again at the next start if it takes longer than seconds."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_LOOK)

    # The work

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            for run in self._table.running():
                try:
                    patiently(partial(self.of(None).work, run.id), self._closed.is_set)()
                except Exception:  # the thread's edge: one run that breaks must not stop the others
                    log.exception("an evaluation broke off")
                    self._table.set_state(run.id, "paused", ["running"], _notice_of(Notice("evaluation_broke")))
            self._wake.wait(_LOOK_AGAIN)

    def work(self, run_id: str, on_row: Callable[[RowView], object] = lambda row: None) -> None:
        """Ask what is left of a run, here and now. What another process works on is left to it."""
        kept = self._kept(run_id)
        if self._process.may_be_alive(kept.process, kept.seen_at):
            return
        if not self._table.claim(run_id, self._process.name, kept.process):
            return
        try:
            for one in {setting.library or kept.library for setting in _settings(kept)}:
                self._asker.warm(one)
            for setting, case in self._left(kept):
                if self._closed.is_set() or self._table.seen(run_id) != "running":
                    return
                if (row := self._asked(kept, setting, case)) and self._table.add_row(run_id, row):
                    on_row(_row_view(row))
        except StoreAwayError:
            return  # the program ends: the next one goes on
        except RagError as error:
            self._chats.pop(run_id, None)
            self._table.set_state(run_id, "paused", ["running"], _notice_of(error.notice))
            return
        self._chats.pop(run_id, None)
        self._table.set_state(run_id, "done", ["running"])

    def _left(self, run: KeptRun) -> Iterator[tuple[Setting, Case]]:
        """What has no row yet. Settings take turns, so that what is there of a run can be compared, and take turns in
        being the first: what a question meets cold, such as its vector, is warm to those that ask it next."""
        there, settings = self._table.scores(run.id), _settings(run)
        for number, case in enumerate(self.cases(run.id)):
            at = number % len(settings)
            turns = (*settings[at:], *settings[:at])
            yield from ((setting, case) for setting in turns if case.id not in there.get(setting.name, {}))

    def _asked(self, run: KeptRun, setting: Setting, case: Case) -> KeptRow | None:
        """The row of one question; None where the run was stopped meanwhile. Raises RagError."""
        source, judged = self._chats.get(run.id), run.data["judge"]
        if source is None and run.data["connected"]:
            raise RagError("evaluation_no_model")
        library = setting.library or run.library
        question = setting.question(case, run.library)
        chat = self._asker.connected(source)
        while True:
            timed = self._begun(
                run, partial(self._asker.ask_as, question, case.history, setting.model, chat), 1 + judged
            )
            if timed is None:
                return None
            self._asker.connected(source)  # what it was asked with may be gone meanwhile: then this is no answer
            if timed.answer.notice is None or timed.answer.notice.code not in AWAY:
                break
            self._closed.wait(_LOOK)  # a database that is away says nothing about the answer
            if self._table.seen(run.id) != "running":
                return None
        found = scores(case, timed, self._asker.tools(library, chat, judged))
        texts = [asdict(passage) for passage in timed.answer.passages]
        answer = {**to_json(timed.answer), "passages": texts}
        return KeptRow(setting.name, case.id, found, {"answer": answer, "first_token": timed.first_token})

    def _begun(self, run: KeptRun, ask: Callable[[str, int], str], answers: int) -> Timed | None:
        """The answer, begun once the person has few enough others under way."""
        while not self._closed.is_set():
            try:
                return self._timed(run.id, ask(run.data.get("person", ""), answers))
            except RagError as error:
                if error.code != "too_many_answers":
                    raise
            self._closed.wait(_SHARE_AGAIN)
            if self._table.seen(run.id) != "running":
                break
        return None

    def _timed(self, run_id: str, answering: str) -> Timed | None:
        """Wait for the answer, and note when its first piece came."""
        began, seen, first = time.monotonic(), 0, None
        while not self._closed.is_set():
            events = self._asker.events(answering, seen, _LOOK)
            seen += len(events)
            for event in events:
                first = first or (time.monotonic() - began if event.kind == "token" and not event.path else None)
                if event.kind == "waiting":  # nobody is there who could reply: what it has so far is the answer
                    self._asker.cancel(answering)
                if event.kind == "answer":
                    return Timed(event.data, first)
            if self._table.seen(run_id) is None:
                break
        self._asker.cancel(answering)
        return None

    def _keep(self, run_id: str, chat: Any) -> None:
        """Keep whose connected model a run asks, in the place of any other."""
        self._chats.pop(run_id, None)
        if chat is not None:
            self._chats[run_id] = self._asker.source_of(chat)

    def _kept(self, run_id: str) -> KeptRun:
        found = self._table.run(run_id, self._owner)
        if found is None:
            raise RagError("evaluation_unknown")
        return found


def _settings(run: KeptRun) -> list[Setting]:
    return [from_json(Setting, one) for one in run.data["settings"]]


def _view(run: KeptRun) -> RunView:
    same = ("id", "library", "name", "set_id", "created_at", "state", "done", "total")
    told = run.data.get("notice")
    return RunView(
        **{name: getattr(run, name) for name in same},
        **{name: run.data[name] for name in ("set_version", "code", "judge", "generations")},
        settings=tuple(_settings(run)),
        notice=Notice(**told) if told else None,
    )


def _row_view(row: KeptRow) -> RowView:
    return RowView(
        row.setting, row.case_id, from_json(Answer, row.data["answer"]), dict(row.scores), row.data["first_token"]
    )


def _notice_of(notice: Notice) -> dict[str, Any]:
    return {"notice": {"code": notice.code, "params": dict(notice.params)}}
