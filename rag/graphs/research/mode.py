"""Research as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from rag.runs.kept import citations_of, notice_of, passage_of, statements_of
from rag.runs.run import DrivenMode, Run, answer_of
from rag.types import Answer, Notice, Outcome

_KEPT: Final = ("aspects", "plan", "decisions", "gain", "stop", "struck", "notes")


class ResearchMode(DrivenMode):
    """Plans, searches in parallel, reads, decides how to go on, and writes a report that is checked."""

    name = "research"
    max_calls = 16
    most_calls = 24
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """From the run's last state; where it broke off, with what its ledger holds."""
        state, told = run.state, broken or notice_of(run.state.get("notice"))
        if broken is not None and not state.get("outcome"):
            state = await self.driving.rescued(run)
        outcome: Outcome = state.get("outcome") or "failed"
        answer = answer_of(
            run,
            outcome,
            told,
            state.get("text", ""),
            citations_of(state),
            [passage_of(kept) for kept in state.get("passages", ())],
            statements_of(state),
        )
        return replace(answer, trail=await asyncio.to_thread(_trail, state))


def _trail(state: Any) -> dict[str, Any]:
    """What is kept with the answer: the plan as it was carried out, and the ledger without the passages' texts.

    A passage of the web, which nothing else holds, is kept whole.
    """
    from rag.graphs.research.writing import gaps

    ledger = [
        {
            **{key: entry["passage"][key] for key in ("id", "url", "url_hash", "title", "start", "end")},
            "distilled": entry["distilled"],
            "steps": sorted(entry["ranks"], key=lambda step: entry["ranks"][step]),
            "source": entry["source"],
            "fetched_at": entry["fetched_at"],
            **({"passage": entry["passage"]} if entry["source"] == "web" else {}),
        }
        for entry in state.get("ledger", {}).values()
    ]
    kept = {key: state[key] for key in _KEPT if state.get(key)}
    return {**kept, "ledger": ledger, "gaps": gaps(state)}
