"""The research mode: its limits, and its answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from rag.runs.run import GraphMode, Run
from rag.types import Answer, Notice

_TRAIL_KEYS: Final = ("aspects", "plan", "decisions", "gain", "stop", "struck", "notes")


class ResearchMode(GraphMode):
    """A mode that plans, searches in parallel, reads, decides on further steps, and writes a checked report."""

    name = "research"
    max_calls = 16
    most_calls = 24
    max_tokens = 60_000
    keeps_history = True

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        answer = await super().finish(run, broken)
        return replace(answer, trail=await asyncio.to_thread(self._trail, run.state))

    def _trail(self, state: Any) -> dict[str, Any]:
        """Return the data stored with the answer: the final plan, and the ledger without the passages' texts.

        Passages from the web, which are stored nowhere else, keep their text.
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
        fields = {key: state[key] for key in _TRAIL_KEYS if state.get(key)}
        return {**fields, "ledger": ledger, "gaps": self.graph_module.gaps(state)}
