"""Value of a small chat model: fast and deep answers compared with one naive prompt, and with quotes without a model.

    python -m benchmarks.local_model http://127.0.0.1:9115/v1 [--sets xquad-en,natural] [--answerable 40] [--others 20]

The naive prompt is the five best passages of the same search and one sentence of instruction, in one call; "same" is
that prompt with all passages that fast mode reads, for the ratio of their tokens. The scores: whether the text contains
a reference answer, whether it cites the page with that answer, and whether a question that no page answers is declined;
with 95% intervals, and for gold and page the paired difference from the naive prompt. Tokens, calls and seconds are
means. `make model-server` starts a model. Answers go to benchmarks/out/local_model.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.datasets import DEFAULT_FOLDER, find_folders, load, sample_evenly
from benchmarks.intervals import format_mean
from rag.app import App, Question
from rag.checking.statements import declines
from rag.config import Settings, load_settings
from rag.errors import ModelError
from rag.evaluation.support import normalise_text
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.models.chat import build_chat_model
from rag.models.servers import failure_types

_NAIVE = "Answer the question from these passages, and cite their numbers like [1]."
_NAIVE_PASSAGES = 5
_HEAD = "|contains the answer|vs. naive|cites its page|vs. naive|declines the others|tokens|calls|seconds".split("|")
_CITATION = re.compile(r"\[(\d{1,2})\]")


@dataclass(frozen=True)
class Score:
    """One answer: `gold` and `page` count for answerable questions, `declined` for the others."""

    gold: float
    page: float
    declined: float
    tokens: int
    calls: int
    seconds: float
    text: str


Ask = Callable[[dict[str, Any]], Score]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    answers: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        (folder,) = find_folders(DEFAULT_FOLDER, [name])
        data = load(folder)
        answerable = sample_evenly([row for row in data.questions if row["evidence"]], options.answerable)
        others = sample_evenly([row for row in data.questions if not row["evidence"]], options.others)
        with tempfile.TemporaryDirectory() as data_dir:
            base = load_settings(None, rag_data_dir=Path(data_dir), qdrant_url="", llm_base_url="", llm_model="")
            model = {"llm_base_url": options.address, "llm_model": options.model}
            lines = (json.dumps(page, ensure_ascii=False) for page in data.pages)
            scores: dict[str, list[Score]] = {}
            for way in options.ways.split(","):
                with closing(App(base if way == "quoting" else base.model_copy(update=model))) as app:
                    list(ingest_all(app.imports.ingestor("main"), list(record_sources(lines, "pages"))))
                    lines = iter(())
                    caps = {"naive": _NAIVE_PASSAGES, "same": None}
                    ask = _naive(app, base.model_copy(update=model), caps[way]) if way in caps else _by_app(app, way)
                    scores[way] = [ask(row) for row in (*answerable, *others)]
                    print(name, *_row(way, scores, len(answerable)), sep=" | ", file=sys.stderr, flush=True)
        table = report.table(_HEAD, [_row(way, scores, len(answerable)) for way in scores])
        print(f"\n{name}: {len(answerable)} questions that a page answers, {len(others)} that no page does\n\n{table}")
        answers += [{"set": name, "way": way, **asdict(row)} for way, rows in scores.items() for row in rows]
        report.save("local_model", machine.describe(()), answers, table)
    return 0


def _row(way: str, scores: Mapping[str, Sequence[Score]], answerable: int) -> list[str]:
    everything, naive = scores[way], scores.get("naive", ()) if way != "naive" else ()
    answered, others = everything[:answerable], everything[answerable:]
    cells = [way]
    for score in map(attrgetter, ("gold", "page")):
        cells.append(format_mean(list(map(score, answered))))
        gains = [score(one) - score(other) for one, other in zip(answered, naive, strict=False)]
        cells.append(format_mean(gains, signed=True) if gains else "")
    cells.append(format_mean([one.declined for one in others]) if others else "–")
    cells += [f"{_mean([one.tokens for one in everything]):.0f}", f"{_mean([one.calls for one in everything]):.1f}"]
    return [*cells, f"{_mean([one.seconds for one in everything]):.1f}"]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _by_app(app: App, way: str) -> Ask:
    """Return a function that answers in fast or deep mode, or by quotes, which is fast mode without a model."""

    def ask(row: dict[str, Any]) -> Score:
        began = time.perf_counter()
        answer = app.wait(app.ask(Question(row["question"], ("main",), "fast" if way == "quoting" else way)), 900)
        seconds = time.perf_counter() - began
        text = "" if answer.outcome == "not_in_pages" else answer.text
        tokens = answer.usage.tokens_in + answer.usage.tokens_out
        urls = [citation.url for citation in answer.citations]
        return _score(row, text, urls, tokens, answer.model_calls, seconds)

    return ask


def _naive(app: App, settings: Settings, limit: int | None) -> Ask:
    model = build_chat_model(settings).model_copy(update={"max_tokens": 800})

    def ask(row: dict[str, Any]) -> Score:
        passages = app.search(row["question"], library="main").passages[:limit]
        block = "\n\n".join(f"[{n}] {passage.title}\n{passage.text}" for n, passage in enumerate(passages, 1))
        prompt = f"{_NAIVE}\n\n{block}\n\nQuestion: {row['question']}"
        began = time.perf_counter()
        text, tokens = "", 0
        try:
            reply = asyncio.run(model.ainvoke(prompt))
            text, tokens = reply.text, (reply.usage_metadata or {}).get("total_tokens", 0)
        except (ModelError, *failure_types()) as error:
            print(f"naive failed: {type(error).__name__}", file=sys.stderr)
        cited = [int(number) for number in _CITATION.findall(text)]
        urls = [passages[n - 1].url for n in cited if 0 < n <= len(passages)]
        return _score(row, text, urls, tokens, 1, time.perf_counter() - began)

    return ask


def _score(row: dict[str, Any], text: str, urls: Sequence[str], tokens: int, calls: int, seconds: float) -> Score:
    squashed = normalise_text(text)
    gold = any(normalise_text(answer) in squashed for answer in row["answers"])
    page = any(one["url"] in urls for one in row["evidence"])
    return Score(float(gold), float(page), float(not text.strip() or declines(text)), tokens, calls, seconds, text)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", nargs="?", default=os.environ.get("TEST_LLM_BASE_URL", "http://127.0.0.1:9115/v1"))
    parser.add_argument("--model", default="local")
    parser.add_argument("--sets", default="xquad-en,natural")
    parser.add_argument("--ways", default="naive,quoting,fast,deep")
    parser.add_argument("--answerable", type=int, default=40)
    parser.add_argument("--others", type=int, default=20)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
