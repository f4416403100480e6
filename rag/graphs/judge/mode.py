"""The judge mode: its limits, and its answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from rag.runs.run import GraphMode, Run
from rag.types import Answer, Notice


class JudgeMode(GraphMode):
    """A mode that grades each passage, asks follow-up questions for gaps, and answers from the resulting tree."""

    name = "judge"
    max_calls = 24
    most_calls = 48
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        answer = await super().finish(run, broken)
        return replace(answer, trail=await asyncio.to_thread(self.graph_module.trail, run))
