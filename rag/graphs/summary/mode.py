"""The summary mode and its limits."""

from __future__ import annotations

from rag.runs.run import GraphMode


class SummaryMode(GraphMode):
    """A mode that summarises pages by section or by page, or changes in them; every sentence is cited."""

    name = "summary"
    max_calls = 16
    max_tokens = 250_000
