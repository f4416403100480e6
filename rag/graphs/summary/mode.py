"""Summary mode as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

from rag.runs.kept import citations_of, notice_of, passage_of, statements_of
from rag.runs.run import DrivenMode, Run, answer_of
from rag.types import Answer, Notice, Outcome


class SummaryMode(DrivenMode):
    """Tells what pages say, section by section or page by page, or what changed in them; every sentence is cited."""

    name = "summary"
    max_calls = 16
    max_tokens = 250_000

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """From the run's last state; where it broke off, the quotes of what it had read."""
        state, told = run.state, broken or notice_of(run.state.get("notice"))
        if broken is not None and not state.get("outcome") and state.get("parts"):
            state = run.state = await self.driving.rescued(state)
        outcome: Outcome = state.get("outcome") or "failed"
        passages = [passage_of(kept) for kept in state.get("passages", ())]
        return answer_of(run, outcome, told, state.get("text", ""), citations_of(state), passages, statements_of(state))
