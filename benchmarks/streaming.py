"""Many users whose answers stream at once over the app's WebSocket, compared with one user.

    python -m benchmarks.streaming [--people N …] [--rounds N] [--pause SECONDS] [--json]

The app is served as `make run` serves it, over the sample pages; the chat model is the tests' scripted server, which
pauses between the pieces of its answers. Each user is a client that speaks Streamlit's protocol as the browser does
(tab.py). All ask at the same time, and finish when the answer is drawn with its sources. Server, chat model and
clients share the machine's processors; `server_cpu_s` is the processor time per answer of the server's process, from
asking to the last finish, and is more reliable than seconds if others use the machine. `server_ms` divides it by part
(stages.py), and `calls` counts the calls of each part per answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.answering import chat_server
from benchmarks.serving import ROOT, ServedApp, serving
from benchmarks.startup import load_samples
from benchmarks.tab import Tab

_WARM_UP_LIMIT = 120.0


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder, chat_server(options.pause, options.times) as chat:
        data, settings = Path(folder) / "data", {"LLM_MODEL": "test", "LLM_BASE_URL": chat}
        load_samples(data)
        with serving(data, settings, Path(folder) / "stages.json") as served:
            served.wait()
            figures = asyncio.run(_measure(served, options.people, options.rounds))
    print(json.dumps({"pause_s": options.pause, "rounds": options.rounds, **figures}))
    return 0


@dataclass(frozen=True)
class Round:
    """Seconds until each finish, the number of dropped answers, the server's processor time, and that of its parts."""

    finishes: list[float]
    dropped: int
    cpu: float
    seconds: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, float] = field(default_factory=dict)


async def _measure(served: ServedApp, people: list[int], rounds: int) -> dict[str, Any]:
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows if row["lang"] == "en"]
    await _warm_up(served, questions)
    alone = [await _ask_together(served, questions[n : n + 1] or questions[:1], 1) for n in range(max(3, rounds))]
    base = statistics.median(seconds for part in alone for seconds in part.finishes)
    result: dict[str, Any] = {"alone_s": round(base, 2), "alone_server_cpu_s": cpu_of_answers(alone), **parts_of(alone)}
    for count in people:
        result[f"people_{count}"] = row_of([await _ask_together(served, questions, count) for _ in range(rounds)], base)
    return result


def row_of(rounds: Sequence[Round], base: float) -> dict[str, Any]:
    """Return the figures of rounds of equal size; `base` are the seconds of a single user."""
    finishes = sorted(seconds for part in rounds for seconds in part.finishes)
    late = finishes[min(len(finishes) - 1, int(0.95 * len(finishes)))] if finishes else float("inf")
    return {
        "median_s": round(statistics.median(finishes), 2) if finishes else None,
        "p95_s": round(late, 2),
        "ratio_p95": round(late / base, 2),
        "dropped": sum(part.dropped for part in rounds),
        "server_cpu_s": cpu_of_answers(rounds),
        **parts_of(rounds),
    }


def parts_of(rounds: Sequence[Round]) -> dict[str, dict[str, float]]:
    """Return the processor milliseconds per answer of each part, most first, and the calls of each."""
    answers = sum(len(each.finishes) for each in rounds)
    seconds, calls = Counter[str](), Counter[str]()
    for each in rounds:
        seconds.update(each.seconds)
        calls.update(each.calls)
    if not answers or not seconds:
        return {}
    ms = {part: round(1000 * total / answers, 1) for part, total in seconds.most_common()}
    return {"server_ms": ms, "calls": {part: round(count / answers, 1) for part, count in calls.most_common()}}


def cpu_of_answers(rounds: Sequence[Round]) -> float | None:
    """Return the server's processor seconds per answer; None if unknown or without answers."""
    answers, seconds = sum(len(part.finishes) for part in rounds), sum(part.cpu for part in rounds)
    return round(seconds / answers, 3) if answers and seconds else None


async def _warm_up(served: ServedApp, questions: list[str]) -> None:
    """Ask until answers stop getting faster: then models and modules are loaded."""
    before, end = float("inf"), time.perf_counter() + _WARM_UP_LIMIT
    while time.perf_counter() < end:
        finished = (await _ask_together(served, questions, 1)).finishes
        if finished and finished[0] > 0.8 * before:
            return
        before = finished[0] if finished else before


async def _ask_together(served: ServedApp, questions: list[str], count: int) -> Round:
    async with AsyncExitStack() as stack:
        tabs = [await stack.enter_async_context(Tab(served.address, f"person {n}")) for n in range(count)]
        for tab in tabs:  # one after the other: measuring starts when all are open
            await tab.open()
        before, began = served.stages(), served.cpu_seconds()
        asking = (tab.ask(questions[n % len(questions)]) for n, tab in enumerate(tabs))
        results = await asyncio.gather(*asking, return_exceptions=True)
        cpu, after = served.cpu_seconds() - began, served.stages()
    for problem in results:
        if isinstance(problem, BaseException):
            print(f"dropped: {type(problem).__name__}: {problem}", file=sys.stderr)
    finished = [result for result in results if not isinstance(result, BaseException)]
    seconds, calls = ({k: v - before[kind].get(k, 0) for k, v in after[kind].items()} for kind in ("seconds", "calls"))
    return Round(finished, count - len(finished), cpu, seconds, calls)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[50, 100], metavar="N")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--pause", type=float, default=0.05, metavar="SECONDS", help="between pieces (default 0.05)")
    parser.add_argument("--times", type=int, default=4, metavar="N", help="repetitions of each answer (default 4)")
    parser.add_argument("--json", action="store_true", help="one line of JSON (always printed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
