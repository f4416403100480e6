"""How the answer of a run is put together, whether it ended by itself or was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rag.agent.run import Run, log_problem
from rag.errors import RagError
from rag.types import Answer, Citation, Notice, Outcome, Passage, Statement, Step


def interruption(run: Run) -> Notice:
    if run.stopped.is_set():
        return Notice("run_stopped")
    limit = run.question.options.seconds
    seconds = (limit or 0.0) + run.more.get("seconds", 0.0)
    return Notice("budget_seconds", {"seconds": f"{seconds:g}"}) if limit else Notice("run_too_long")


def failure(run: Run, task: asyncio.Task[None]) -> Notice | None:
    """Say why the graph broke off, if it did. The log gets no message of a surprise: it may quote pages.

    What fails once there is an outcome is the writing of the conversation: the answer is sound.
    """
    problem = task.exception() if not task.cancelled() else asyncio.CancelledError()
    if problem is None or isinstance(problem, RagError):
        return problem.notice if problem else None
    if run.thread and run.state.get("outcome"):
        log_problem("a conversation could not be kept", problem)
        return None
    log_problem("a run broke off", problem)
    return Notice("run_failed")


async def conclude(run: Run, broken: Notice | None) -> Answer:
    """The mode's answer; one that says no more than that it failed where there is none, for whoever waits for one."""
    if run.counter is not None:
        run.counter.close()
    (answer,) = await asyncio.gather(run.mode.finish(run, broken), return_exceptions=True)
    if not isinstance(answer, BaseException):
        return answer
    log_problem("an answer could not be put together", answer)
    return answer_of(run, "failed", Notice("run_failed"))


def answer_of(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
    statements: tuple[Statement, ...] = (),
) -> Answer:
    steps = tuple(Step(span.name, span.ms, span.attributes) for span in run.trace.done("node"))
    return Answer(
        question=run.question.text,
        mode=run.mode.name,
        outcome=outcome,
        text=text,
        citations=citations,
        passages=tuple(passages),
        steps=steps,
        model_calls=run.budget.used,
        seconds=round(run.seconds(), 3),
        reasoner=run.reasoner.name,
        notice=notice,
        searches=tuple(run.shelf.searches),
        answerable=run.shelf.answerable(),
        statements=statements,
        standalone=_standalone(run),
        composed=run.state.get("composed", ""),
        usage=run.budget.meter.usage(),
    )


def _standalone(run: Run) -> str:
    understood = str(run.state.get("standalone", ""))
    return "" if understood == run.question.text.strip() else understood
