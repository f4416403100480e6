"""Tool mode as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

from dataclasses import replace

from rag.runs.kept import citations_of, notice_of, passage_of, statements_of
from rag.runs.options import RunOptions
from rag.runs.run import DrivenMode, Run, answer_of
from rag.types import Answer, Notice, Outcome, ToolUse


class ToolMode(DrivenMode):
    """Has tools tell what is asked, by the route of the message: at most four calls of them."""

    name = "tool"
    max_calls = 6
    max_tokens = 40_000

    def calls(self, options: RunOptions, *, talks: bool) -> int:
        """One for each call of a tool, one for the answer and one for its check; a follow-up is completed first."""
        return self.max_calls + 2 * talks

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        state, told = run.state, broken or notice_of(run.state.get("notice"))
        outcome: Outcome = "failed" if broken else state.get("outcome") or "failed"
        passages = [passage_of(kept) for kept in state.get("passages", ())]
        text = state.get("text", "")
        answer = answer_of(run, outcome, told, text, citations_of(state), passages, statements_of(state))
        uses = (ToolUse(**{**use, "failed": notice_of(use["failed"])}) for use in state.get("uses", ()))
        return replace(answer, tools=tuple(uses))
