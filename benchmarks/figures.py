"""The figures of `make bench` that have a bound instead of a peer: which benchmark, with which options, which rows.

A figure that misses its bound is shown as such, and so is a benchmark that could not run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD = ("what", "measured", "at most")
CHUNKS = 100_000
Found = Mapping[str, Any]
Row = tuple[str, float | None, float | None, str]
"""What, how much (None: it never ended), at most how much (None: no bound), in which unit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """`rows` makes them of what `benchmarks.<name>` prints when it is run with `options`."""

    name: str
    options: tuple[str, ...]
    rows: Callable[[Found], Iterator[Row]]


def _startup(found: Found) -> Iterator[Row]:
    yield "start of the process to the first HTTP answer", found["http_s"], None, "s"
    yield "start of the process to the first page drawn in Chromium", found["page_s"], 3.0, "s"
    yield "start of the process to models that are loaded", found["models_s"], None, "s"
    yield f"opening a library of {found['chunks']:,} chunks", found["opened_s"], 1.0, "s"


def _answering(found: Found) -> Iterator[Row]:
    yield "first token of a fast answer, sample pages", found["samples"]["first_token_ms"], 150.0, "ms"
    yield f"first token of a fast answer, {CHUNKS:,} chunks", found[str(CHUNKS)]["first_token_ms"], 150.0, "ms"
    for mode in ("fast", "deep"):
        worst = max(found["graph"][f"{mode}_{turn}_question_ms"] for turn in ("first", "second"))
        yield f"{mode} answer whose model and search take no time", worst, 30.0, "ms"
    for name, how, bound in (("research", "", 60.0), ("research_kept", ", with checkpoints", 150.0)):
        yield f"research of four steps{how}, model and search take no time", found["graph"][f"{name}_ms"], bound, "ms"


def _screens(found: Found) -> Iterator[Row]:
    yield "Enter key to the question on the screen, in Chromium", found["echo_ms"], 200.0, "ms"
    yield "Enter key to the first text of a quoted answer, in Chromium", found["text_ms"], 700.0, "ms"
    yield "Enter key to a quoted answer with its sources, in Chromium", found["sources_ms"], None, "ms"


def _streaming(found: Found) -> Iterator[Row]:
    yield "one person's answer, asked to drawn", found["alone_s"], None, "s"
    for key, row in found.items():
        if not key.startswith("people_"):
            continue
        count = int(key.removeprefix("people_"))
        bound = 2.5 if count <= 50 else None
        yield f"{count} people at once, p95 of the finish beside one person's", row["ratio_p95"], bound, "times"
        yield f"{count} people at once, answers that never came", row["dropped"], 0.0, ""


def _memory(found: Found) -> Iterator[Row]:
    at = found["pages"] // 10
    yield f"memory, growth from page {at:,} to page {found['pages']:,} of an import", found["grown_mb"], 100.0, "MB"


def _building(found: Found) -> Iterator[Row]:
    while_ = f"while the index of {found['chunks']:,} chunks and a tenth more is built"
    yield f"search p95 {while_}, beside before", found["ratio_p95"], 2.0, "times"
    yield f"longest wait of another thread {while_}", found["during"]["stall_ms"], 200.0, "ms"


def _dedupe(found: Found) -> Iterator[Row]:
    what = f"which of {found['urls']:,} addresses are in a library of {found['chunks']:,} chunks"
    yield what, found["ours_s"], 1.0, "s"
    yield f"{what}: one scroll an address in local mode, extrapolated", found["peer_s"], None, "s"


def _searching(found: Found) -> Iterator[Row]:
    bounds = {10_000: 5.0, 100_000: 12.0, 1_000_000: 20.0}
    for row in found["rows"]:
        among = f"among {row['chunks']:,} chunks, without the query's encoding, p95"
        yield f"hybrid, filter and MMR {among}", row["mmr_found"]["p95"], bounds.get(row["chunks"]), "ms"
        if "local" in row:
            yield f"hybrid and filter by qdrant-client's local mode {among}", row["local"]["p95"], None, "ms"
        yield f"the default search, and whether the answer is there, {among}", row["rerank"]["p95"], None, "ms"


FIGURES = (
    Figures("startup", ("--chunks", str(CHUNKS)), _startup),
    Figures("answering", ("--chunks", str(CHUNKS)), _answering),
    Figures("screens", (), _screens),
    Figures("streaming", (), _streaming),
    Figures("memory", (), _memory),
    Figures("building", ("--chunks", str(CHUNKS)), _building),
    Figures("dedupe", ("--json",), _dedupe),
    Figures("searching", ("--json",), _searching),
)


def cells(row: Row) -> list[str]:
    """A row as it stands in the table; a bound that is missed is marked."""
    what, value, bound, unit = row
    measured = "–" if value is None or value == float("inf") else f"{value:g} {unit}".strip()
    if bound is None:
        return [what, measured, ""]
    missed = value is None or value > bound
    return [what, f"{measured} (missed)" if missed else f"**{measured}**", f"{bound:g} {unit}".strip()]
