"""Runs answer questions in the background: whoever started one may go away and look again later."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from rag.background import BACKGROUND
from rag.checking.verifier import Verifier
from rag.errors import RagError
from rag.models.usage import CallBudget, Meter, Spent
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Reasoner
from rag.retrieval.scoped_search import ScopedSearch
from rag.runs.options import Question, RunOptions
from rag.runs.run import (
    STOP_GRACE,
    Hooks,
    Mode,
    PassageCache,
    Run,
    conclude,
    drive,
    failure,
    interruption,
    log_problem,
)
from rag.tracing import Span, Trace
from rag.types import Answer, Event, Exchange, Notice, RunMode

_TELL_EVERY: Final = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person's answers to what a run waited for, by the ids of its Waits, what it had used before, and its spans.

    One that was `cut_off` resumes from its last checkpoint, which knows what it had used.
    """

    reply: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    spans: Sequence[Span] = ()
    cut_off: bool = False


FRESH: Final = Resumed()


class Runs:
    """Starts runs in the background loop and keeps them; every method may be called from any thread.

    A finished run is kept for `max_age` seconds, and at most `keep` of them. A run that takes longer
    than `time_limit` seconds, where nobody chose another limit, is stopped and keeps what it has. `saver` makes the
    LangGraph checkpointer that keeps conversations; it is asked when the first run needs it. `verifier` is a local
    model that checks answers where the reasoner cannot. `modes` are the ways to answer, by name. `ended` gets each run
    that has its answer, and must return at once.
    """

    def __init__(
        self,
        modes: Mapping[str, Mode],
        *,
        keep: int = 200,
        max_age: float = 3600.0,
        time_limit: float = 600.0,
        saver: Callable[[], Any] | None = None,
        verifier: Verifier | None = None,
        ended: Callable[[Run], object] | None = None,
    ) -> None:
        self._ended = ended
        self._modes = modes
        self._saver = saver
        self._verifier = verifier
        self._keep = keep
        self._max_age = max_age
        self._time_limit = time_limit
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Build the graphs now: their imports take a second, which the first question would wait for."""
        for mode in self._modes.values():
            mode.warm(self._saver() if self._saver else None)

    def start(
        self,
        question: Question,
        *,
        reasoner: Reasoner,
        retriever: ScopedSearch,
        history: Sequence[tuple[str, str] | Exchange] = (),
        quoter: ExtractiveReasoner | None = None,
        owner: str = "",
        thread: str = "",
        hooks: Hooks | None = None,
        resumed: Resumed = FRESH,
    ) -> str:
        """Begin to answer `question` and return the run's id at once.

        `history` holds earlier (question, answer) pairs, oldest first. `quoter` is what a run falls back on when its
        budget is spent. With a `thread` the saver keeps the conversation, and `history` counts only if it knows none.
        """
        mode = self._modes[question.mode]
        run = Run(
            id=uuid4().hex,
            question=question,
            mode=mode,
            reasoner=reasoner,
            cache=PassageCache(retriever),
            budget=_budget(question.options, mode, bool(history or thread), resumed.spent),
            history=tuple(one if isinstance(one, Exchange) else Exchange(*one) for one in history),
            hooks=hooks or Hooks(),
            quoter=quoter,
            verifier=self._verifier,
            owner=owner,
            thread=thread if self._saver is not None else "",
            saver=self._saver,
            spent=resumed.spent,
            reply=resumed.reply,
            is_resumed=resumed.cut_off,
            trace=Trace(resumed.spans),
            modes=self._modes,
        )
        with self._lock:
            self._forget_old()
            self._runs[run.id] = run
        run.work = asyncio.run_coroutine_threadsafe(self._supervise(run), BACKGROUND.loop())
        return run.id

    # With an `owner` these are that person's alone: RagError("run_unknown") for somebody else's run.

    def events(self, run_id: str, since: int = 0, wait: float = 0.0, owner: str | None = None) -> list[Event]:
        """Return the events from number `since` on; raises RagError("run_unknown") for a forgotten run.

        Where there are none yet, the first is waited for, at most `wait` seconds.
        """
        run = self._run(run_id, owner)
        with run.changed:
            run.changed.wait_for(lambda: len(run.events) > since, wait)
            return run.events[since:]

    def cancel(self, run_id: str, owner: str | None = None) -> None:
        """Ask the run to stop. Its answer, with the text so far, comes within a second."""
        run = self._run(run_id, owner)
        BACKGROUND.loop().call_soon_threadsafe(run.stopped.set)

    def reply(
        self,
        run_id: str,
        reply: Mapping[str, Any],
        reasoner: Reasoner | None = None,
        retriever: ScopedSearch | None = None,
    ) -> None:
        """Resume a run that waits: a person's answer (JSON values) to each of its Waits, by their ids.

        It resumes with the `reasoner` and `retriever` of the person who replies, if given.
        """
        run = self._run(run_id)

        def go_on() -> None:
            run.reply = reply
            run.reasoner = reasoner or run.reasoner
            run.cache.retriever = retriever or run.cache.retriever
            run.replied.set()

        BACKGROUND.loop().call_soon_threadsafe(go_on)

    def can_go_on(self, mode: str) -> bool:
        """Return whether an interrupted run of this mode can be resumed."""
        return self._saver is not None and mode in self._modes and self._modes[mode].keeps_history

    def answer(self, run_id: str, owner: str | None = None) -> Answer | None:
        """Return the answer, or None while the run is in progress; raises RagError("run_unknown")."""
        return self._run(run_id, owner).answer

    def is_running(self, run_id: str) -> bool:
        """Return whether the run, or the work after its answer, is still in progress."""
        with self._lock:
            run = self._runs.get(run_id)
        return run is not None and not run.done.is_set()

    def going_on(self, *modes: RunMode) -> int:
        """Count the unfinished runs, of `modes` if given."""
        with self._lock:
            return sum(run.ended is None and (not modes or run.mode.name in modes) for run in self._runs.values())

    def wait(self, run_id: str, timeout: float | None = None, owner: str | None = None) -> Answer:
        """Wait for the answer; raises TimeoutError after `timeout` seconds, while the run continues."""
        run = self._run(run_id, owner)
        if not run.done.wait(timeout) or run.answer is None:
            raise TimeoutError(f"run {run_id} goes on after {timeout} s")
        return run.answer

    def close(self) -> None:
        """Stop all runs; each still gets its answer. One that waits for a person is left as it is."""
        with self._lock:
            left = [run for run in self._runs.values() if not run.done.is_set()]
        going_on = [run for run in left if not run.waits]
        for run in left:
            if run.waits and run.work is not None:
                run.work.cancel()
        for run in going_on:
            BACKGROUND.loop().call_soon_threadsafe(run.stopped.set)
        for run in going_on:
            run.done.wait(2 * STOP_GRACE)

    def _run(self, run_id: str, owner: str | None = None) -> Run:
        with self._lock:
            run = self._runs.get(run_id)
        if run is None or (owner is not None and run.owner != owner):
            raise RagError("run_unknown")
        return run

    def _forget_old(self) -> None:
        now = time.monotonic()
        ended = [run for run in self._runs.values() if run.ended is not None]
        surplus = len(ended) - self._keep + 1
        for place, run in enumerate(sorted(ended, key=lambda run: run.ended or 0.0)):
            if place < surplus or now - (run.ended or now) > self._max_age:
                del self._runs[run.id]

    async def _supervise(self, run: Run) -> None:
        """See a run through to its answer, however it ends."""
        telling = asyncio.create_task(_tell(run)) if run.hooks.text else None
        try:
            notice = await self._driven(run)
            while run.waits and notice is None:
                notice = await _replied(run) or await self._driven(run)
        finally:
            if telling is not None:
                telling.cancel()
        run.answer = await conclude(run, notice)
        if notice is not None:
            await _remembered(run)
        run.ended = time.monotonic()
        run.add("answer", run.answer)
        await _traced(run)
        if self._ended is not None:
            self._ended(run)
        if run.hooks.done is not None:
            await _told("what follows an answer failed", run.hooks.done, run.answer)
        run.done.set()

    async def _driven(self, run: Run) -> Notice | None:
        """Drive it until its graph ends or waits for a person, it is stopped, or its time is up: then say so."""
        task = asyncio.create_task(drive(run))
        stop = asyncio.create_task(run.stopped.wait())
        while (left := self._limit(run) - run.seconds()) > 0 and not (task.done() or stop.done()):
            await asyncio.wait({task, stop}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not (task.done() or stop.done()):
                await _told("what a person changed could not be read", run.changes)
        interrupted = not task.done()
        if interrupted:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_GRACE)
        stop.cancel()
        return interruption(run) if interrupted else failure(run, task)

    def _limit(self, run: Run) -> float:
        """Seconds of work that it may take, with those that a person added meanwhile."""
        return (run.question.options.seconds or self._time_limit) + run.more.get("seconds", 0.0)


def _budget(options: RunOptions, mode: Mode, talks: bool, spent: Spent) -> CallBudget:
    calls = mode.calls(options, talks=talks) if options.calls is None else options.calls
    tokens = mode.max_tokens if options.tokens is None else options.tokens
    return CallBudget(calls, tokens=tokens, meter=Meter(options.prices), spent=spent, most=mode.most_calls)


async def _replied(run: Run) -> Notice | None:
    """Wait for a person's reply, for as long as it takes; a notice where the run is stopped instead."""
    began, spent = time.monotonic(), run.budget.spent(run.seconds())
    run.replied.clear()
    if run.hooks.waits is not None:
        await _traced(run)
        await _told("that a run waits could not be kept", run.hooks.waits, run.waits, spent)
    run.add("waiting", run.waits)
    ends = [asyncio.create_task(one.wait()) for one in (run.stopped, run.replied)]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
    run.waited += time.monotonic() - began
    return interruption(run) if run.stopped.is_set() else None


async def _traced(run: Run) -> None:
    run.trace.close()
    if run.hooks.spans is not None:
        await _told("the spans of a run could not be kept", run.hooks.spans, tuple(run.trace.spans))


async def _told(what: str, hook: Callable[..., object], *given: Any) -> bool:
    """Call it in a thread; its failure is logged and breaks nothing."""
    (problem,) = await asyncio.gather(asyncio.to_thread(hook, *given), return_exceptions=True)
    if isinstance(problem, BaseException):
        log_problem(what, problem)
    return not isinstance(problem, BaseException)


async def _remembered(run: Run) -> None:
    """Keep the text so far in the conversation; an answer does not wait for that for long."""
    (problem,) = await asyncio.gather(asyncio.wait_for(run.mode.remember(run), STOP_GRACE), return_exceptions=True)
    if isinstance(problem, BaseException):
        log_problem("a stopped answer could not be kept in its conversation", problem)


async def _tell(run: Run) -> None:
    """Hand the text on as it grows, so that a process that is killed leaves it behind."""
    is_kept = run.hooks.text is not None
    while is_kept and run.hooks.text is not None:
        await asyncio.sleep(_TELL_EVERY)
        is_kept = await _told("what a run wrote so far could not be handed on", run.hooks.text, run.text)
