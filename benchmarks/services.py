"""Models by address and traces: whether the same is found by address as from a folder, and what either costs.

    python -m benchmarks.services [--set xquad-en] [--questions 100] [--data FOLDER]

The same weights encode here and behind a service on loopback (the tests' server, in TEI's shape), both in float32: in
bfloat16 a vector depends on which texts are encoded together, and that may swap two passages of one score. Compared are
the first ten passages of each question, and what a question's vector takes beside the service's own time.
Answers are quoted, by two apps in turns, one of which sends its traces: to a collector, and to an address where nobody
is. Exits 1 where fewer than all are the same, a vector costs more than 10 ms, or traces cost an answer more than 5.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.ours import MeasuredApp, MeasuredModels, take_in
from benchmarks.samples import find_sets
from rag.app import Question
from rag.config import load_settings
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.models.families import family_of
from rag.models.hub import BUILTIN, find_model
from tests.support.collector import Collector
from tests.support.model_server import ModelServer

_MODEL = "intfloat/multilingual-e5-small"
_FIRST = 10
_VECTOR_MS, _TRACES_MS = 10.0, 5.0
_NOBODY = "http://127.0.0.1:9/v1/traces"


class ExactModels(MeasuredModels):
    """The models as they come, in float32."""

    def _load(self, name: str) -> EmbeddingModel:
        return load_embedding_model(name, exact=True)


class Service:
    """What encodes behind the service, and the seconds that each request took it."""

    def __init__(self) -> None:
        self._model: EmbeddingModel = load_embedding_model(BUILTIN, exact=True)
        self._family = family_of(_MODEL, find_model(BUILTIN).folder)
        self.seconds: list[float] = []

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        began = time.perf_counter()
        query, passage = self._family.query, self._family.passage
        if all(text.startswith(query) for text in texts):
            rows = [self._model.encode_query(text.removeprefix(query)).tolist() for text in texts]
        else:
            rows = self._model.encode_passages([text.removeprefix(passage) for text in texts]).tolist()
        self.seconds.append(time.perf_counter() - began)
        return rows


@contextmanager
def app_of(data: Dataset, **settings: Any) -> Iterator[MeasuredApp]:
    """An app with the set in a library of its own, and no chat model."""
    plain = {"qdrant_url": "", "llm_model": "", "llm_base_url": "", "embedding_model": BUILTIN, **settings}
    with TemporaryDirectory() as folder:
        given = load_settings(None, rag_data_dir=Path(folder), **plain)
        with closing(MeasuredApp(given, ExactModels(given))) as app:
            take_in(app, data, "semantic", data.name)
            yield app


def by_address(data: Dataset) -> tuple[list[str], bool]:
    """How many questions have the same first passages, and the milliseconds that a vector costs beside the service."""
    service = Service()
    with ModelServer("tei", encode=service.encode, most=32) as server, app_of(data) as here:
        served = {"embedding_base_url": server.url, "embedding_model": _MODEL, "embedding_timeout": 60.0}
        with app_of(data, **served) as there:
            same, cost = [], []
            for row in data.questions:
                same.append(_first(here, data, row["question"]) == _first(there, data, row["question"]))
                began = time.perf_counter()
                there.models.embedding.encode_query(f"{row['question']} ")
                cost.append(1000 * (time.perf_counter() - began - service.seconds[-1]))
    middle = statistics.median(cost)
    cells = ["the same first ten by address", f"{sum(same)} of {len(same)}"]
    return [*cells, f"{middle:+.2f}"], all(same) and middle <= _VECTOR_MS


def _first(app: MeasuredApp, data: Dataset, question: str) -> list[tuple[str, int, int]]:
    found = app.search(question, library=data.name, k=_FIRST).passages
    return [(one.url, one.start, one.end) for one in found]


def traced(data: Dataset, name: str, url: str) -> tuple[list[str], bool]:
    """The milliseconds of an answer, and what sending its trace costs it."""
    with app_of(data) as plain, app_of(data, trace_url=url) as sends:
        apps = (plain, sends)
        for app in apps:
            _answered(app, data, data.questions[0]["question"])
        rows = []
        for place, row in enumerate(data.questions):
            turns = apps[:: 1 if place % 2 else -1]
            ms = {id(app): _answered(app, data, row["question"]) for app in turns}
            rows.append((ms[id(plain)], ms[id(sends)]))
    cost = statistics.median(with_traces - without for without, with_traces in rows)
    bare = statistics.median(without for without, _ in rows)
    return [name, f"an answer takes {bare:.1f} ms", f"{cost:+.2f}"], cost <= _TRACES_MS


def _answered(app: MeasuredApp, data: Dataset, question: str) -> float:
    began = time.perf_counter()
    app.wait(app.ask(Question(question, (data.name,))), 60)
    return 1000 * (time.perf_counter() - began)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="xquad-en")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    options = parser.parse_args(arguments)
    (folder,) = find_sets(options.data, [options.set])
    data = datasets.load(folder)
    data = replace(data, questions=datasets.spread(data.questions, options.questions))
    with Collector() as collector:
        found = [by_address(data), traced(data, "traces that are sent", collector.url)]
        sent = len(collector.spans())
    found.append(traced(data, "traces to nobody", _NOBODY))
    table = report.table(["", "", "ms at the median"], [cells for cells, _ in found])
    report.save("services", machine.describe(()), [{"row": cells} for cells, _ in found], table)
    print(f"{table}\n\n{sent} spans were sent.")
    return 0 if sent and all(good for _, good in found) else 1


if __name__ == "__main__":
    sys.exit(main())
