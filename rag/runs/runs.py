"""Background runs, which answer questions while their callers may leave and return later."""

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
from rag.reasoning import Reasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.retrieval.retriever import ScopedSearch
from rag.runs.run import (
    STOP_GRACE,
    Hooks,
    Mode,
    PassageCache,
    Question,
    Run,
    conclude,
    drive,
    failure_notice,
    interruption_notice,
    log_problem,
)
from rag.tracing import CallBudget, Meter, Span, Trace, UsageSnapshot
from rag.types import Answer, Event, Exchange, Notice, RunMode

_TEXT_INTERVAL: Final = 1.0  # seconds
_KEEP: Final = 200  # finished runs
_MAX_AGE: Final = 3600.0  # seconds for which they are kept
_TIME_LIMIT: Final = 600.0  # seconds of a run, unless its options have another limit


@dataclass(frozen=True, slots=True)
class ResumeState:
    """The state of a run to resume: the user's replies to its waits, by their ids, its usage so far, and its spans.

    If `is_interrupted`, the run resumes from its last checkpoint, which has its usage.
    """

    reply: Mapping[str, Any] = field(default_factory=dict)
    usage: UsageSnapshot = field(default_factory=UsageSnapshot)
    spans: Sequence[Span] = ()
    is_interrupted: bool = False


NEW_RUN: Final = ResumeState()


class Runs:
    """The runs of the background event loop. Thread-safe.

    At its time limit, a run is stopped with its text so far. `saver` returns the LangGraph checkpointer for
    conversations; its first call may block. `verifier` is a local model that checks answers if the reasoner can't.
    `modes` are the answer modes by name. `on_end` gets each run with its answer, and must return immediately.
    """

    def __init__(
        self,
        modes: Mapping[str, Mode],
        *,
        saver: Callable[[], Any] | None = None,
        verifier: Verifier | None = None,
        on_end: Callable[[Run], object] | None = None,
    ) -> None:
        self._on_end = on_end
        self._modes = modes
        self._saver = saver
        self._verifier = verifier
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Build the graphs in advance, so that the first question doesn't wait a second for their imports."""
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
        resumed: ResumeState = NEW_RUN,
    ) -> str:
        """Start to answer `question` and return the run's id immediately.

        `history` has earlier (question, answer) pairs, oldest first. `quoter` answers if the model can't. With a
        `thread` the saver stores the conversation, and `history` is used only if nothing is stored there.
        """
        mode, options = self._modes[question.mode], question.options
        default_calls = mode.default_calls(options, in_conversation=bool(history or thread))
        calls = default_calls if options.calls is None else options.calls
        tokens = mode.max_tokens if options.tokens is None else options.tokens
        run = Run(
            id=uuid4().hex,
            question=question,
            mode=mode,
            reasoner=reasoner,
            cache=PassageCache(retriever),
            budget=CallBudget(calls, tokens=tokens, meter=Meter(options.prices), max_calls=mode.calls_cap),
            history=tuple(exchange if isinstance(exchange, Exchange) else Exchange(*exchange) for exchange in history),
            hooks=hooks or Hooks(),
            quoter=quoter,
            verifier=self._verifier,
            owner=owner,
            thread=thread if self._saver is not None else "",
            saver=self._saver,
            reply=resumed.reply,
            is_resumed=resumed.is_interrupted,
            trace=Trace(resumed.spans),
            modes=self._modes,
        )
        run.restore_usage(resumed.usage)
        self._launch(run)
        return run.id

    def _launch(self, run: Run) -> None:
        with self._lock:
            self._delete_old()
            self._runs[run.id] = run
        run.work = asyncio.run_coroutine_threadsafe(self._supervise(run), BACKGROUND.loop())

    # With an `owner`, methods raise RagError("run_unknown") for another user's run.

    def events(self, run_id: str, since: int = 0, wait: float = 0.0, owner: str | None = None) -> list[Event]:
        """Return the events from number `since` on; raises RagError("run_unknown") for a deleted run.

        If there are none yet, wait up to `wait` seconds for the first.
        """
        run = self._run(run_id, owner)
        with run.changed:
            run.changed.wait_for(lambda: len(run.events) > since, wait)
            return run.events[since:]

    def cancel(self, run_id: str, owner: str | None = None) -> None:
        """Stop the run. Its answer, with the text so far, arrives within a second."""
        run = self._run(run_id, owner)
        BACKGROUND.loop().call_soon_threadsafe(run.stopped.set)

    def reply(
        self,
        run_id: str,
        reply: Mapping[str, Any],
        reasoner: Reasoner | None = None,
        retriever: ScopedSearch | None = None,
    ) -> None:
        """Resume a waiting run with the user's reply (JSON values) to each of its Waits, by their ids.

        The `reasoner` and `retriever` of the user who replies, if given, replace those of the run.
        """
        run = self._run(run_id)

        def resume() -> None:
            run.reply = reply
            run.reasoner = reasoner or run.reasoner
            run.cache.retriever = retriever or run.cache.retriever
            run.replied.set()

        BACKGROUND.loop().call_soon_threadsafe(resume)

    def can_resume(self, mode: str) -> bool:
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

    def count_unfinished(self, *modes: RunMode) -> int:
        """Count the unfinished runs, of `modes` if given."""
        with self._lock:
            return sum(run.ended_at is None and (not modes or run.mode.name in modes) for run in self._runs.values())

    def wait(self, run_id: str, timeout: float | None = None, owner: str | None = None) -> Answer:
        """Wait for the answer; raises TimeoutError after `timeout` seconds, while the run continues."""
        run = self._run(run_id, owner)
        if not run.done.wait(timeout) or run.answer is None:
            raise TimeoutError(f"run {run_id} has no answer after {timeout} s")
        return run.answer

    def close(self) -> None:
        """Stop all runs; each still gets its answer, except those that wait for a reply, which can be resumed later."""
        with self._lock:
            unfinished = [run for run in self._runs.values() if not run.done.is_set()]
        active = [run for run in unfinished if not run.waits]
        for run in unfinished:
            if run.waits and run.work is not None:
                run.work.cancel()
        for run in active:
            BACKGROUND.loop().call_soon_threadsafe(run.stopped.set)
        for run in active:
            run.done.wait(2 * STOP_GRACE)

    def _run(self, run_id: str, owner: str | None = None) -> Run:
        with self._lock:
            run = self._runs.get(run_id)
        if run is None or (owner is not None and run.owner != owner):
            raise RagError("run_unknown")
        return run

    def _delete_old(self) -> None:
        now = time.monotonic()
        ended = [run for run in self._runs.values() if run.ended_at is not None]
        surplus = len(ended) - _KEEP + 1
        for place, run in enumerate(sorted(ended, key=lambda run: run.ended_at or 0.0)):
            if place < surplus or now - (run.ended_at or now) > _MAX_AGE:
                del self._runs[run.id]

    async def _supervise(self, run: Run) -> None:
        """Drive a run until it has its answer, even if it fails."""
        text_task = asyncio.create_task(_report_text(run)) if run.hooks.on_text else None
        try:
            notice = await self._drive(run)
            while run.waits and notice is None:
                notice = await _wait_for_reply(run) or await self._drive(run)
        finally:
            if text_task is not None:
                text_task.cancel()
        run.answer = await conclude(run, notice)
        if notice is not None:
            # added to the conversation with a short timeout, so that the answer isn't delayed
            work = asyncio.wait_for(run.mode.remember(run), STOP_GRACE)
            (problem,) = await asyncio.gather(work, return_exceptions=True)
            if isinstance(problem, BaseException):
                log_problem("an interrupted answer could not be added to its conversation", problem)
        run.ended_at = time.monotonic()
        run.add("answer", run.answer)
        await _report_spans(run)
        if self._on_end is not None:
            self._on_end(run)
        if run.hooks.on_answer is not None:
            await _call_hook("an answer could not be processed further", run.hooks.on_answer, run.answer)
        run.done.set()

    async def _drive(self, run: Run) -> Notice | None:
        """Drive a run until its graph ends or waits, it is stopped, or its time is up; return the problem, if any."""
        task = asyncio.create_task(drive(run))
        stop = asyncio.create_task(run.stopped.wait())
        while not (task.done() or stop.done()):
            limit = (run.options.seconds or _TIME_LIMIT) + run.extra_limits.get("seconds", 0.0)
            if (remaining := limit - run.seconds()) <= 0:
                break
            await asyncio.wait({task, stop}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if not (task.done() or stop.done()):
                await _call_hook("the user's changes to a run could not be loaded", run.changes)
        is_interrupted = not task.done()
        if is_interrupted:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_GRACE)
        stop.cancel()
        return interruption_notice(run) if is_interrupted else failure_notice(run, task)


async def _wait_for_reply(run: Run) -> Notice | None:
    """Wait for the user's reply, without a time limit; return a notice if the run is stopped instead."""
    wait_started, usage = time.monotonic(), run.budget.snapshot(run.seconds())
    run.replied.clear()
    if run.hooks.on_wait is not None:
        await _report_spans(run)
        await _call_hook("the questions of a waiting run could not be saved", run.hooks.on_wait, run.waits, usage)
    run.add("waiting", run.waits)
    tasks = [asyncio.create_task(one.wait()) for one in (run.stopped, run.replied)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    run.seconds_waited += time.monotonic() - wait_started
    return interruption_notice(run) if run.stopped.is_set() else None


async def _report_spans(run: Run) -> None:
    run.trace.close()
    if run.hooks.on_spans is not None:
        await _call_hook("the spans of a run could not be saved", run.hooks.on_spans, tuple(run.trace.spans))


async def _call_hook(message: str, hook: Callable[..., object], *args: Any) -> bool:
    """Call a hook in a thread; return False and log the error if it fails."""
    (problem,) = await asyncio.gather(asyncio.to_thread(hook, *args), return_exceptions=True)
    if isinstance(problem, BaseException):
        log_problem(message, problem)
    return not isinstance(problem, BaseException)


async def _report_text(run: Run) -> None:
    """Report the text regularly as it grows, so that it survives if the process is killed."""
    succeeds = run.hooks.on_text is not None
    while succeeds and run.hooks.on_text is not None:
        await asyncio.sleep(_TEXT_INTERVAL)
        succeeds = await _call_hook("the text of a run so far could not be saved", run.hooks.on_text, run.text)
