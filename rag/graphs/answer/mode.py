"""The loop as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from rag.checking.citations import check
from rag.runs.options import RunOptions
from rag.runs.run import STOP_GRACE, GraphMode, Run, answer_of
from rag.runs.serialization import citations_of, notice_of, statements_of
from rag.text import whole_sentences
from rag.types import Answer, Notice, Outcome, Passage

_COMPOSING: Final = 10  # calls that passage by passage takes, for as many passages
_SOUND: Final = frozenset({"run_stopped", "run_too_long", "budget_seconds", "quoted_budget_seconds"})


class LoopMode(GraphMode):
    """Searches, judges what was found where it is `deep`, and answers."""

    def __init__(self, name: str, max_calls: int) -> None:
        self.name = name
        self.max_calls = max_calls

    def calls(self, options: RunOptions, *, talks: bool) -> int:
        """The mode's, one more in a conversation, which may need summing up, and those of a longer way to compose."""
        return self.max_calls + talks + (0 if options.compose in ("auto", "stuff") else _COMPOSING)

    def warm(self, saver: Any) -> None:
        self.graph_module.graph_of(self.name, saver)

    async def remember(self, run: Run) -> None:
        await self.graph_module.remember(run)

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """From the run's last state, or, if it broke off, from what there is."""
        passages = await self._passages(run, STOP_GRACE if broken else None)
        if broken is None:
            return await asyncio.to_thread(_complete_answer, run, passages)
        if broken.code == "budget_seconds" and not run.text and (quoted := await _quote_best(run, passages)):
            run.text, broken = quoted, Notice("quoted_budget_seconds", broken.params)
        return await asyncio.to_thread(_partial_answer, run, passages, broken)

    async def _passages(self, run: Run, patience: float | None) -> list[Passage]:
        """Those the answer was written from; none where they cannot be read, or not within `patience` seconds."""
        refs = run.state.get("passages") or []
        if not refs:
            return []
        reading = asyncio.create_task(asyncio.to_thread(self.graph_module.read_passages, refs, run.cache.passages_of))
        await asyncio.wait({reading}, timeout=patience)
        return reading.result() if reading.done() and reading.exception() is None else []


async def _quote_best(run: Run, passages: Sequence[Passage]) -> str:
    """The best sentences of what was found, for a run whose time was up before it wrote anything."""
    if run.quoter is None or not passages:
        return ""
    question = run.state.get("standalone") or run.question.text
    return "".join([piece async for piece in run.quoter.answer(question, passages)])


def _complete_answer(run: Run, passages: list[Passage]) -> Answer:
    state = run.state
    outcome: Outcome = state.get("outcome") or "failed"
    notice = notice_of(state.get("notice"))
    return answer_of(run, outcome, notice, state.get("text", ""), citations_of(state), passages, statements_of(state))


def _partial_answer(run: Run, passages: list[Passage], notice: Notice) -> Answer:
    """Keep the text so far, which is worth something only where the run itself was sound.

    What was cut off was not checked as a whole, so no verdicts on its statements are kept.
    """
    checked = check(whole_sentences(run.text) or run.text, passages)
    outcome: Outcome = "caveat" if checked.text and notice.code in _SOUND else "failed"
    statements = checked.statements if notice.code == "quoted_budget_seconds" else ()
    return answer_of(run, outcome, notice, checked.text, checked.citations, passages, statements)
