"""The tool mode: its limits, and its answer."""

from __future__ import annotations

from dataclasses import replace

from rag.runs.options import RunOptions
from rag.runs.run import GraphMode, Run
from rag.runs.serialization import from_json
from rag.types import Answer, Notice, ToolUse


class ToolMode(GraphMode):
    """A mode that answers with tools, chosen by the route of the message, in up to four tool calls."""

    name = "tool"
    max_calls = 6
    max_tokens = 40_000

    def calls(self, options: RunOptions, *, talks: bool) -> int:
        """Return one call per tool call, one for the answer and one for its check; a follow-up needs two more."""
        return self.max_calls + 2 * talks

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        answer = await super().finish(run, broken)
        uses = tuple(from_json(ToolUse, use) for use in run.state.get("uses", ()))
        return replace(answer, tools=uses, outcome="failed" if broken else answer.outcome)
