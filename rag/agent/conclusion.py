"""How the answer of a run is put together, whether it ended by itself or was cut off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rag.agent.reasoner import following
from rag.agent.run import STOP_GRACE, Run, log_problem
from rag.errors import RagError
from rag.types import Answer, Citation, Notice, Outcome, Passage, Statement, Step


def interruption(run: Run) -> Notice:
    if run.stopped.is_set():
        return Notice("run_stopped")
    limit = run.options.seconds
    return Notice("budget_seconds", {"seconds": f"{limit:g}"}) if limit else Notice("run_too_long")


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
    """Put the answer together: from the run's last state, or, if it broke off, from what there is."""
    reading = asyncio.create_task(asyncio.to_thread(_passages, run))
    await asyncio.wait({reading}, timeout=STOP_GRACE if broken else None)
    readable = reading.done() and reading.exception() is None
    passages = reading.result() if readable else []
    if run.counter is not None:
        run.counter.close()
    if broken is None:
        return await asyncio.to_thread(_finished, run, passages)
    if broken.code == "budget_seconds" and not run.text and (quoted := await _quoted(run, passages)):
        run.text, broken = quoted, Notice("quoted_budget_seconds", broken.params)
    return await asyncio.to_thread(_broken_off, run, passages, broken)


async def _quoted(run: Run, passages: Sequence[Passage]) -> str:
    """The best sentences of what was found, for a run whose time was up before it wrote anything."""
    if run.quoter is None or not passages:
        return ""
    question = run.state.get("standalone") or run.question
    quoter = following(run.quoter, run.state.get("before", ()))
    return "".join([piece async for piece in quoter.answer(question, passages)])


def _passages(run: Run) -> list[Passage]:
    refs = run.state.get("passages") or []
    if not refs:
        return []
    from rag.agent.loop.nodes import read_passages

    return read_passages(refs, run.shelf.passages_of)


def _finished(run: Run, passages: list[Passage]) -> Answer:
    citations = tuple(
        Citation(**{**kept, "section": tuple(kept["section"])}) for kept in run.state.get("citations", [])
    )
    statements = tuple(Statement(**{**kept, "marks": tuple(kept["marks"])}) for kept in run.state.get("statements", []))
    kept = run.state.get("notice")
    notice = Notice(kept["code"], kept["params"]) if kept else None
    outcome: Outcome = run.state.get("outcome") or "failed"
    return answer_of(run, outcome, notice, run.state.get("text", ""), citations, passages, statements)


def _broken_off(run: Run, passages: list[Passage], notice: Notice) -> Answer:
    """Keep the text so far, which is worth something only where the run itself was sound.

    What was cut off was not checked as a whole, so no verdicts on its statements are kept.
    """
    from rag.agent.citing.citations import check

    checked = check(run.text, passages)
    sound = notice.code in ("run_stopped", "run_too_long", "budget_seconds", "quoted_budget_seconds")
    outcome: Outcome = "caveat" if checked.text and sound else "failed"
    statements = checked.statements if notice.code == "quoted_budget_seconds" else ()
    return answer_of(run, outcome, notice, checked.text, checked.citations, passages, statements)


def answer_of(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
    statements: tuple[Statement, ...] = (),
) -> Answer:
    steps = tuple(Step(step["node"], step["ms"], step["detail"]) for step in run.state.get("steps", []))
    return Answer(
        question=run.question,
        mode=run.mode,
        outcome=outcome,
        text=text,
        citations=citations,
        passages=tuple(passages),
        steps=steps,
        model_calls=run.budget.used,
        seconds=round(time.monotonic() - run.began, 3),
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
    return "" if understood == run.question.strip() else understood
