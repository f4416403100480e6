"""The answer modes, fast and deep: their limits, and their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from rag.checking.citations import check
from rag.runs.options import RunOptions
from rag.runs.run import STOP_GRACE, GraphMode, Run, build_answer
from rag.runs.serialization import citations_of, notice_of, statements_of
from rag.text import trim_to_sentences
from rag.types import Answer, Notice, Outcome, Passage

_COMPOSING: Final = 10  # calls for an answer composed passage by passage, from as many passages
_SOUND: Final = frozenset({"run_stopped", "run_too_long", "budget_seconds", "quoted_budget_seconds"})


class LoopMode(GraphMode):
    """A mode that searches, grades the passages if it is `deep`, and answers."""

    def __init__(self, name: str, max_calls: int) -> None:
        self.name = name
        self.max_calls = max_calls

    def calls(self, options: RunOptions, *, talks: bool) -> int:
        """Return the mode's limit, plus one for a summary of the conversation, and those of a longer composition."""
        return self.max_calls + talks + (0 if options.compose in ("auto", "stuff") else _COMPOSING)

    def warm(self, saver: Any) -> None:
        self.graph_module.graph_of(self.name, saver)

    async def remember(self, run: Run) -> None:
        await self.graph_module.remember(run)

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """Return the answer from the run's last state or, if it was interrupted, from what there is."""
        passages = await self._passages(run, STOP_GRACE if broken else None)
        if broken is None:
            return await asyncio.to_thread(_complete_answer, run, passages)
        if broken.code == "budget_seconds" and not run.text and (quotes := await _quote_best(run, passages)):
            run.text, broken = quotes, Notice("quoted_budget_seconds", broken.params)
        return await asyncio.to_thread(_partial_answer, run, passages, broken)

    async def _passages(self, run: Run, seconds: float | None) -> list[Passage]:
        """Return the passages of the answer; none if they can't be read, or not within `seconds`."""
        refs = run.state.get("passages") or []
        if not refs:
            return []
        reading = asyncio.create_task(asyncio.to_thread(self.graph_module.read_passages, refs, run.cache.passages_of))
        await asyncio.wait({reading}, timeout=seconds)
        return reading.result() if reading.done() and reading.exception() is None else []


async def _quote_best(run: Run, passages: Sequence[Passage]) -> str:
    """Return the best sentences of the passages, for a run out of time that had written nothing."""
    if run.quoter is None or not passages:
        return ""
    question = run.state.get("standalone") or run.question.text
    return "".join([piece async for piece in run.quoter.answer(question, passages)])


def _complete_answer(run: Run, passages: list[Passage]) -> Answer:
    state = run.state
    outcome: Outcome = state.get("outcome") or "failed"
    notice = notice_of(state.get("notice"))
    return build_answer(
        run, outcome, notice, state.get("text", ""), citations_of(state), passages, statements_of(state)
    )


def _partial_answer(run: Run, passages: list[Passage], notice: Notice) -> Answer:
    """Return an answer with the text so far, which is usable only if the run did not fail.

    Interrupted text was not checked as a whole, so it has no verdicts on its statements.
    """
    checked = check(trim_to_sentences(run.text) or run.text, passages)
    outcome: Outcome = "caveat" if checked.text and notice.code in _SOUND else "failed"
    statements = checked.statements if notice.code == "quoted_budget_seconds" else ()
    return build_answer(run, outcome, notice, checked.text, checked.citations, passages, statements)
