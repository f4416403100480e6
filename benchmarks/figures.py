"""Figures of `make bench` that have a limit instead of a peer: their benchmarks, options and rows.

A figure over its limit is marked as such, and so is a benchmark that cannot run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD = ("what", "measured", "limit")
CHUNKS = 100_000
Result = Mapping[str, Any]
Row = tuple[str, float | None, float | None, str]
"""Label, value (None: did not finish), limit (None: no limit), unit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A benchmark; `rows` converts the output of `benchmarks.<name>`, run with `options` and --json."""

    name: str
    options: tuple[str, ...]
    rows: Callable[[Result], Iterator[Row]]


def _startup(result: Result) -> Iterator[Row]:
    yield "start of the process to the first HTTP answer", result["http_s"], None, "s"
    yield "start of the process to the first page drawn in Chromium", result["page_s"], 2.5, "s"
    yield "start of the process to models loaded", result["models_s"], 4.0, "s"
    yield f"opening a library of {result['chunks']:,} chunks", result["opened_s"], 0.8, "s"


def _answering(result: Result) -> Iterator[Row]:
    yield "first token of a fast answer, sample pages", result["samples"]["first_token_ms"], 150.0, "ms"
    yield f"first token of a fast answer, {CHUNKS:,} chunks", result[str(CHUNKS)]["first_token_ms"], 150.0, "ms"
    for mode in ("fast", "deep"):
        worst = max(result["graph"][f"{mode}_{turn}_question_ms"] for turn in ("first", "second"))
        yield f"{mode} answer if model and search take no time", worst, 30.0, "ms"
    for name, how, bound in (("research", "", 60.0), ("research_kept", ", with checkpoints", 150.0)):
        yield f"research of four steps{how}, model and search take no time", result["graph"][f"{name}_ms"], bound, "ms"


def _screens(result: Result) -> Iterator[Row]:
    yield "Enter key to the question on the screen, in Chromium", result["echo_ms"], 200.0, "ms"
    yield "Enter key to the first text of a quoted answer, in Chromium", result["text_ms"], 700.0, "ms"
    yield "Enter key to a quoted answer with its sources, in Chromium", result["sources_ms"], None, "ms"


def _streaming(result: Result) -> Iterator[Row]:
    yield "one person's answer, asked to drawn", result["alone_s"], None, "s"
    for key, row in result.items():
        if not key.startswith("people_"):
            continue
        count = int(key.removeprefix("people_"))
        bound = 2.0 if count <= 50 else 4.0
        yield f"{count} people at once, p95 of the finish compared with one person's", row["ratio_p95"], bound, "times"
        yield f"{count} people at once, answers that never came", row["dropped"], 0.0, ""


def _memory(result: Result) -> Iterator[Row]:
    at = result["pages"] // 10
    yield f"memory, growth from page {at:,} to page {result['pages']:,} of an import", result["grown_mb"], 100.0, "MB"


def _building(result: Result) -> Iterator[Row]:
    condition = f"while the index of {result['chunks']:,} chunks and a tenth more is built"
    yield f"search p95 {condition}, compared with before", result["ratio_p95"], 2.0, "times"
    yield f"longest wait of another thread {condition}", result["during"]["stall_ms"], 200.0, "ms"


def _dedupe(result: Result) -> Iterator[Row]:
    task = f"finding which of {result['urls']:,} addresses are in a library of {result['chunks']:,} chunks"
    yield task, result["ours_s"], 0.3, "s"
    yield f"{task}: one scroll per address in local mode, extrapolated", result["peer_s"], None, "s"


def _searching(result: Result) -> Iterator[Row]:
    bounds = {10_000: 12.0, 100_000: 15.0, 1_000_000: 20.0}
    for row in result["rows"]:
        scope = f"among {row['chunks']:,} chunks, without the query's encoding, p95"
        yield f"hybrid, filter and MMR {scope}", row["mmr_found"]["p95"], bounds.get(row["chunks"]), "ms"
        if "local" in row:
            yield f"hybrid and filter by qdrant-client's local mode {scope}", row["local"]["p95"], None, "ms"
        yield f"the default search, and whether the pages answer, {scope}", row["rerank"]["p95"], None, "ms"


FIGURES = (
    Figures("startup", ("--chunks", str(CHUNKS)), _startup),
    Figures("answering", ("--chunks", str(CHUNKS)), _answering),
    Figures("screens", (), _screens),
    Figures("streaming", (), _streaming),
    Figures("memory", (), _memory),
    Figures("building", ("--chunks", str(CHUNKS)), _building),
    Figures("dedupe", (), _dedupe),
    Figures("searching", (), _searching),
)


def cells(row: Row) -> list[str]:
    """Return a row as table cells; mark a value over its limit."""
    what, value, bound, unit = row
    measured = "–" if value is None or value == float("inf") else f"{value:g} {unit}".strip()
    if bound is None:
        return [what, measured, ""]
    missed = value is None or value > bound
    return [what, f"{measured} (missed)" if missed else f"**{measured}**", f"{bound:g} {unit}".strip()]
