"""Judge mode as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from rag.runs.run import GraphMode, Run
from rag.types import Answer, Notice


class JudgeMode(GraphMode):
    """Judges each passage by itself, asks on for what one lacks, and answers from what the tree holds."""

    name = "judge"
    max_calls = 24
    most_calls = 48
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        answer = await super().finish(run, broken)
        return replace(answer, trail=await asyncio.to_thread(self.graph_module.trail, run))
