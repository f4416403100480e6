"""Many people whose answers stream at the same time, over the app's own WebSocket, beside one alone.

    python -m benchmarks.streaming [--people N …] [--rounds N] [--pause SECONDS] [--json]

The app is served as `make run` serves it, over the sample pages; the chat model is the scripted server of the tests,
which pauses between the pieces of its answers. Each person is a client that speaks Streamlit's protocol as the browser
does (tab.py). All ask in the same moment, and have finished when the answer is drawn with its sources. Server, chat
model and clients share the machine's processors; `server_cpu_s` is the processor time that an answer cost the server's
process, from the moment of asking to the last finish, and says more than seconds where others use the machine, too.
`server_ms` divides it by part (stages.py), and `calls` says how often an answer needed each.
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
from benchmarks.serving import ROOT, Served, serving
from benchmarks.startup import load_samples
from benchmarks.tab import Tab

_WARM = 120.0


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder, chat_server(options.pause, options.multiply_dimension) as chat:
        data, settings = Path(folder) / "data", {"LLM_MODEL": "test", "LLM_BASE_URL": chat}
        load_samples(data)
        with serving(data, settings, Path(folder) / "stages.json") as served:
            served.wait()
            found = asyncio.run(_measured(served, options.people, options.rounds))
    print(json.dumps({"pause_s": options.pause, "rounds": options.rounds, **found}))
    return 0


@dataclass(frozen=True)
class Round:
    """Seconds until each finished, how many never did, the server's processor time, and that of its parts."""

    finishes: list[float]
    dropped: int
    cpu: float
    seconds: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, float] = field(default_factory=dict)


async def _measured(served: Served, people: list[int], rounds: int) -> dict[str, Any]:
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows if row["lang"] == "en"]
    await _warm_up(served, questions)
    alone = [await _together(served, questions[n : n + 1] or questions[:1], 1) for n in range(max(3, rounds))]
    one = statistics.median(seconds for told in alone for seconds in told.finishes)
    found: dict[str, Any] = {"alone_s": round(one, 2), "alone_server_cpu_s": cpu_of_answers(alone), **parts_of(alone)}
    for count in people:
        found[f"people_{count}"] = row_of([await _together(served, questions, count) for _ in range(rounds)], one)
    return found


def row_of(rounds: Sequence[Round], one: float) -> dict[str, Any]:
    """What rounds of as many people came to; `one` are the seconds of somebody alone."""
    finishes = sorted(seconds for told in rounds for seconds in told.finishes)
    late = finishes[min(len(finishes) - 1, int(0.95 * len(finishes)))] if finishes else float("inf")
    return {
        "median_s": round(statistics.median(finishes), 2) if finishes else None,
        "p95_s": round(late, 2),
        "ratio_p95": round(late / one, 2),
        "dropped": sum(told.dropped for told in rounds),
        "server_cpu_s": cpu_of_answers(rounds),
        **parts_of(rounds),
    }


def parts_of(rounds: Sequence[Round]) -> dict[str, dict[str, float]]:
    """Return the processor milliseconds of each part of an answer, most first, and how often each was needed."""
    answers = sum(len(each.finishes) for each in rounds)
    seconds, calls = Counter[str](), Counter[str]()
    for each in rounds:
        seconds.update(each.seconds)
        calls.update(each.calls)
    if not answers or not seconds:
        return {}
    ms = {part: round(1000 * spent / answers, 1) for part, spent in seconds.most_common()}
    return {"server_ms": ms, "calls": {part: round(count / answers, 1) for part, count in calls.most_common()}}


def cpu_of_answers(rounds: Sequence[Round]) -> float | None:
    """Seconds of the server's processor time for each answer that came; None where that is not known, or none came."""
    answers, seconds = sum(len(told.finishes) for told in rounds), sum(told.cpu for told in rounds)
    return round(seconds / answers, 3) if answers and seconds else None


async def _warm_up(served: Served, questions: list[str]) -> None:
    """Ask until an answer comes as fast as the one before: the models are loaded, and every module."""
    before, end = float("inf"), time.perf_counter() + _WARM
    while time.perf_counter() < end:
        finished = (await _together(served, questions, 1)).finishes
        if finished and finished[0] > 0.8 * before:
            return
        before = finished[0] if finished else before


async def _together(served: Served, questions: list[str], count: int) -> Round:
    async with AsyncExitStack() as stack:
        tabs = [await stack.enter_async_context(Tab(served.address, f"person {n}")) for n in range(count)]
        for tab in tabs:  # one after the other: what is measured begins when all are open
            await tab.open()
        before, began = served.stages(), served.cpu_seconds()
        asked = (tab.ask(questions[n % len(questions)]) for n, tab in enumerate(tabs))
        told = await asyncio.gather(*asked, return_exceptions=True)
        cpu, after = served.cpu_seconds() - began, served.stages()
    for problem in told:
        if isinstance(problem, BaseException):
            print(f"dropped: {type(problem).__name__}: {problem}", file=sys.stderr)
    finished = [one for one in told if not isinstance(one, BaseException)]
    seconds, calls = ({k: v - before[kind].get(k, 0) for k, v in after[kind].items()} for kind in ("seconds", "calls"))
    return Round(finished, count - len(finished), cpu, seconds, calls)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[50, 100], metavar="N")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--pause", type=float, default=0.05, metavar="SECONDS", help="between pieces (default 0.05)")
    parser.add_argument("--times", type=int, default=4, metavar="N", help="how often answers are said (default 4)")
    parser.add_argument("--json", action="store_true", help="as it is: one line of JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
