"""What a small chat model is worth: fast and deep answers beside one naive prompt, and beside quotes without a model.

    python -m benchmarks.local_model http://127.0.0.1:9115/v1 [--sets xquad-en,natural] [--answerable 40] [--others 20]

The naive prompt is the five best passages of the same search and one sentence of instruction, in one call; "same" is
that prompt with all passages, which are those that fast reads, for the ratio of their tokens. Scored are
whether the text holds the answer that people gave, whether it cites the page that holds it, and whether a question that
no page answers is declined; with 95 % intervals, and for gold and page the difference to the naive prompt, by pairs.
Tokens, calls and seconds are means. `make model-server` starts a model. Answers go to benchmarks/out/local_model.json.
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
from benchmarks.datasets import DEFAULT_FOLDER, find, load, spread
from benchmarks.intervals import told
from rag.app import App, Question
from rag.checking.statements import declines
from rag.config import Settings, load_settings
from rag.errors import ModelError
from rag.evaluation.evidence import squash
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.models.chat import build_chat_model
from rag.models.failures import failure_types

_NAIVE = "Answer the question from these passages, and cite their numbers like [1]."
_PASSAGES = 5
_HEAD = "|gold in answer|beside naive|cites its page|beside naive|declines the others|tokens|calls|seconds".split("|")
_MARK = re.compile(r"\[(\d{1,2})\]")


@dataclass(frozen=True)
class Scored:
    """One answer: `gold` and `page` count for answerable questions, `declined` for the others."""

    gold: float
    page: float
    declined: float
    tokens: int
    calls: int
    seconds: float
    text: str


Ask = Callable[[dict[str, Any]], Scored]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    answers: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        (folder,) = find(DEFAULT_FOLDER, [name])
        data = load(folder)
        answerable = spread([row for row in data.questions if row["evidence"]], options.answerable)
        others = spread([row for row in data.questions if not row["evidence"]], options.others)
        with tempfile.TemporaryDirectory() as place:
            plain = load_settings(None, rag_data_dir=Path(place), qdrant_url="", llm_base_url="", llm_model="")
            chosen = {"llm_base_url": options.address, "llm_model": options.model}
            lines = (json.dumps(page, ensure_ascii=False) for page in data.pages)
            found: dict[str, list[Scored]] = {}
            for way in options.ways.split(","):
                with closing(App(plain if way == "quoting" else plain.model_copy(update=chosen))) as app:
                    list(ingest_all(app.imports.ingestor("main"), list(record_sources(lines, "pages"))))
                    lines = iter(())
                    most = {"naive": _PASSAGES, "same": None}
                    ask = _naive(app, plain.model_copy(update=chosen), most[way]) if way in most else _by_app(app, way)
                    found[way] = [ask(row) for row in (*answerable, *others)]
                    print(name, *_row(way, found, len(answerable)), sep=" | ", file=sys.stderr, flush=True)
        table = report.table(_HEAD, [_row(way, found, len(answerable)) for way in found])
        print(f"\n{name}: {len(answerable)} questions that a page answers, {len(others)} that none does\n\n{table}")
        answers += [{"set": name, "way": way, **asdict(one)} for way, several in found.items() for one in several]
        report.save("local_model", machine.describe(()), answers, table)
    return 0


def _row(way: str, found: Mapping[str, Sequence[Scored]], answerable: int) -> list[str]:
    everything, naive = found[way], found.get("naive", ()) if way != "naive" else ()
    held, others = everything[:answerable], everything[answerable:]
    cells = [way]
    for score in map(attrgetter, ("gold", "page")):
        cells.append(told(list(map(score, held))))
        ahead = [score(one) - score(other) for one, other in zip(held, naive, strict=False)]
        cells.append(told(ahead, signed=True) if ahead else "")
    cells.append(told([one.declined for one in others]) if others else "–")
    cells += [f"{_mean([one.tokens for one in everything]):.0f}", f"{_mean([one.calls for one in everything]):.1f}"]
    return [*cells, f"{_mean([one.seconds for one in everything]):.1f}"]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _by_app(app: App, way: str) -> Ask:
    """Fast or deep by the model, or quotes: what a fast answer is without one."""

    def ask(row: dict[str, Any]) -> Scored:
        began = time.perf_counter()
        answer = app.wait(app.ask(Question(row["question"], ("main",), "fast" if way == "quoting" else way)), 900)
        seconds = time.perf_counter() - began
        text = "" if answer.outcome == "not_in_pages" else answer.text
        tokens = answer.usage.tokens_in + answer.usage.tokens_out
        urls = [citation.url for citation in answer.citations]
        return _scored(row, text, urls, tokens, answer.model_calls, seconds)

    return ask


def _naive(app: App, settings: Settings, most: int | None) -> Ask:
    model = build_chat_model(settings).model_copy(update={"max_tokens": 800})

    def ask(row: dict[str, Any]) -> Scored:
        passages = app.search(row["question"], library="main").passages[:most]
        block = "\n\n".join(f"[{n}] {one.title}\n{one.text}" for n, one in enumerate(passages, 1))
        prompt = f"{_NAIVE}\n\n{block}\n\nQuestion: {row['question']}"
        began = time.perf_counter()
        text, tokens = "", 0
        try:
            reply = asyncio.run(model.ainvoke(prompt))
            text, tokens = reply.text, (reply.usage_metadata or {}).get("total_tokens", 0)
        except (ModelError, *failure_types()) as error:
            print(f"naive failed: {type(error).__name__}", file=sys.stderr)
        cited = [int(number) for number in _MARK.findall(text)]
        urls = [passages[n - 1].url for n in cited if 0 < n <= len(passages)]
        return _scored(row, text, urls, tokens, 1, time.perf_counter() - began)

    return ask


def _scored(row: dict[str, Any], text: str, urls: Sequence[str], tokens: int, calls: int, seconds: float) -> Scored:
    said = squash(text)
    gold = any(squash(one) in said for one in row["answers"])
    page = any(one["url"] in urls for one in row["evidence"])
    return Scored(float(gold), float(page), float(not text.strip() or declines(text)), tokens, calls, seconds, text)


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
