"""Research as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from rag.runs.run import GraphMode, Run
from rag.types import Answer, Notice

_KEPT: Final = ("aspects", "plan", "decisions", "gain", "stop", "struck", "notes")


class ResearchMode(GraphMode):
    """Plans, searches in parallel, reads, decides how to go on, and writes a report that is checked."""

    name = "research"
    max_calls = 16
    most_calls = 24
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        answer = await super().finish(run, broken)
        return replace(answer, trail=await asyncio.to_thread(self._trail, run.state))

    def _trail(self, state: Any) -> dict[str, Any]:
        """What is kept with the answer: the plan as it was carried out, and the ledger without the passages' texts.

        A passage of the web, which nothing else holds, is kept whole.
        """
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
        return {**kept, "ledger": ledger, "gaps": self.graph_module.gaps(state)}
