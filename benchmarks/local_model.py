"""What a small chat model is worth: fast and deep answers beside one naive prompt, and beside quotes without a model.

    python -m benchmarks.local_model http://127.0.0.1:9115/v1 [--sets xquad-en,natural] [--answerable 40] [--others 20]

The naive prompt is the five best passages of the same search and one sentence of instruction, in one call. Scored are
whether the text holds the answer that people gave, whether it cites the page that holds it, and whether a question that
no page answers is declined; with tokens, calls and seconds, and 95 % intervals. `make model-server` starts a model.
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
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from rag.models.failures import failures

_NAIVE = "Answer the question from these passages, and cite their numbers like [1]."
_PASSAGES = 5
_HEAD = (
    "| way | answer holds gold | cites its page | declines the others | tokens | calls | seconds |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
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


Ask = Callable[[dict[str, Any]], Scored]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    for name in options.sets.split(","):
        (folder,) = find(DEFAULT_FOLDER, [name])
        data = load(folder)
        answerable = spread([row for row in data.questions if row["evidence"]], options.answerable)
        others = spread([row for row in data.questions if not row["evidence"]], options.others)
        with tempfile.TemporaryDirectory() as place:
            plain = load_settings(None, rag_data_dir=Path(place), qdrant_url="", llm_base_url="", llm_model="")
            chosen = {"llm_base_url": options.address, "llm_model": options.model}
            lines = (json.dumps(page, ensure_ascii=False) for page in data.pages)
            print(f"\n{name}: {len(answerable)} questions that a page answers, {len(others)} that none does\n{_HEAD}")
            for way in options.ways.split(","):
                with closing(App(plain if way == "quoting" else plain.model_copy(update=chosen))) as app:
                    list(ingest_all(app.imports.ingestor("main"), list(record_sources(lines, "pages"))))
                    lines = iter(())
                    ask = _naive(app, plain.model_copy(update=chosen)) if way == "naive" else _by_app(app, way)
                    print(_row(way, [ask(row) for row in answerable], [ask(row) for row in others]), flush=True)
    return 0


def _row(way: str, found: Sequence[Scored], others: Sequence[Scored]) -> str:
    everything = [*found, *others]
    cells = [told([one.gold for one in found]), told([one.page for one in found])]
    cells.append(told([one.declined for one in others]) if others else "–")
    cells += [f"{_mean([one.tokens for one in everything]):.0f}", f"{_mean([one.calls for one in everything]):.1f}"]
    cells.append(f"{_mean([one.seconds for one in everything]):.1f}")
    return f"| {way} | {' | '.join(cells)} |"


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


def _naive(app: App, settings: Settings) -> Ask:
    model = build_chat_model(settings).model_copy(update={"max_tokens": 800})

    def ask(row: dict[str, Any]) -> Scored:
        passages = app.search(row["question"], library="main").passages[:_PASSAGES]
        block = "\n\n".join(f"[{n}] {one.title}\n{one.text}" for n, one in enumerate(passages, 1))
        prompt = f"{_NAIVE}\n\n{block}\n\nQuestion: {row['question']}"
        began = time.perf_counter()
        text, tokens = "", 0
        try:
            reply = asyncio.run(model.ainvoke(prompt))
            text, tokens = reply.text, (reply.usage_metadata or {}).get("total_tokens", 0)
        except (ModelError, *failures()) as error:
            print(f"naive failed: {type(error).__name__}", file=sys.stderr)
        cited = [int(number) for number in _MARK.findall(text)]
        urls = [passages[n - 1].url for n in cited if 0 < n <= len(passages)]
        return _scored(row, text, urls, tokens, 1, time.perf_counter() - began)

    return ask


def _scored(row: dict[str, Any], text: str, urls: Sequence[str], tokens: int, calls: int, seconds: float) -> Scored:
    said = squash(text)
    gold = any(squash(one) in said for one in row["answers"])
    page = any(one["url"] in urls for one in row["evidence"])
    return Scored(float(gold), float(page), float(not text.strip() or declines(text)), tokens, calls, seconds)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", nargs="?", default=os.environ.get("TEST_LLM_BASE_URL", "http://127.0.0.1:9115/v1"))
    parser.add_argument("--model", default="local")
    parser.add_argument("--sets", default="xquad-en,natural")
    parser.add_argument("--ways", default="quoting,fast,deep,naive")
    parser.add_argument("--answerable", type=int, default=40)
    parser.add_argument("--others", type=int, default=20)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
