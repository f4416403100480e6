"""Judge mode as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from rag.runs.kept import citations_of, notice_of, passage_of, statements_of
from rag.runs.run import DrivenMode, Run, answer_of
from rag.types import Answer, Notice, Outcome


class JudgeMode(DrivenMode):
    """Judges each passage by itself, asks on for what one lacks, and answers from what the tree holds."""

    name = "judge"
    max_calls = 24
    most_calls = 48
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """From the run's last state; where it broke off, with what its levels had found."""
        state, told = run.state, broken or notice_of(run.state.get("notice"))
        if broken is not None and not state.get("outcome") and state.get("ledger"):
            state = await self.driving.rescued(state, self.driving.context_of(run))
        outcome: Outcome = state.get("outcome") or "failed"
        passages = [passage_of(kept) for kept in state.get("passages", ())]
        answer = answer_of(
            run, outcome, told, state.get("text", ""), citations_of(state), passages, statements_of(state)
        )
        return replace(answer, trail=await asyncio.to_thread(self.driving.trail, run, state))
