"""Summary mode as a mode: what a run of it may cost, and how its last state becomes an answer."""

from __future__ import annotations

from rag.runs.run import GraphMode


class SummaryMode(GraphMode):
    """Tells what pages say, section by section or page by page, or what changed in them; every sentence is cited."""

    name = "summary"
    max_calls = 16
    max_tokens = 250_000
