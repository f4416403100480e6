"""Models by URL, and traces: whether a model by URL finds the same passages as a local one, and the cost of both.

    python -m benchmarks.services [--set xquad-en] [--questions 100] [--data FOLDER]

The same weights encode here and behind a service on loopback (the tests' server, with TEI's API), both in float32: in
bfloat16 a vector depends on which texts are encoded together, which may swap two passages of equal score. It compares
the first ten passages of each question, and the time of a question's vector minus the service's own. Two alternating
apps quote answers, one of which sends its traces: to a collector, and to a closed port. Exits with 1 unless all
passages match, a vector takes up to 10 ms longer, and an answer up to 5 ms with traces.
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
from benchmarks.measured_app import MeasuredApp, MeasuredModels, import_set
from benchmarks.samples import find_sets
from rag.app import Question
from rag.config import load_settings
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.models.model_files import BUILTIN, family_of, find_model
from tests.support.collector import Collector
from tests.support.model_server import ModelServer

_MODEL = "intfloat/multilingual-e5-small"
_FIRST = 10
_VECTOR_MS, _TRACES_MS = 10.0, 5.0
_NOBODY = "http://127.0.0.1:9/v1/traces"


class ExactModels(MeasuredModels):
    """The app's models, in float32."""

    def _load(self, name: str) -> EmbeddingModel:
        return load_embedding_model(name, exact=True)


class Service:
    """The encoder behind the service, and the seconds of each request."""

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
    """Run an app with the set in a separate library, and no chat model."""
    options = {"qdrant_url": "", "llm_model": "", "llm_base_url": "", "embedding_model": BUILTIN, **settings}
    with TemporaryDirectory() as folder:
        app_settings = load_settings(None, rag_data_dir=Path(folder), **options)
        with closing(MeasuredApp(app_settings, ExactModels(app_settings))) as app:
            import_set(app, data, "semantic", data.name)
            yield app


def compare_by_url(data: Dataset) -> tuple[list[str], bool]:
    """Return cells (questions with the same passages, extra milliseconds per vector), and whether limits are met."""
    service = Service()
    with ModelServer("tei", encode=service.encode, max_texts=32) as server, app_of(data) as local:
        served = {"embedding_base_url": server.url, "embedding_model": _MODEL, "embedding_timeout": 60.0}
        with app_of(data, **served) as remote:
            matches, cost = [], []
            for row in data.questions:
                matches.append(_top(local, data, row["question"]) == _top(remote, data, row["question"]))
                began = time.perf_counter()
                remote.models.embedding.encode_query(f"{row['question']} ")
                cost.append(1000 * (time.perf_counter() - began - service.seconds[-1]))
    middle = statistics.median(cost)
    cells = ["same first ten by URL", f"{sum(matches)} of {len(matches)}"]
    return [*cells, f"{middle:+.2f}"], all(matches) and middle <= _VECTOR_MS


def _top(app: MeasuredApp, data: Dataset, question: str) -> list[tuple[str, int, int]]:
    passages = app.search(question, library=data.name, k=_FIRST).passages
    return [(passage.url, passage.start, passage.end) for passage in passages]


def compare_traces(data: Dataset, name: str, url: str) -> tuple[list[str], bool]:
    """Return cells (milliseconds of an answer, those that its trace adds), and whether the limit is met."""
    with app_of(data) as untraced, app_of(data, trace_url=url) as tracing:
        apps = (untraced, tracing)
        for app in apps:
            _time_answer(app, data, data.questions[0]["question"])
        rows = []
        for place, row in enumerate(data.questions):
            turns = apps[:: 1 if place % 2 else -1]
            ms = {id(app): _time_answer(app, data, row["question"]) for app in turns}
            rows.append((ms[id(untraced)], ms[id(tracing)]))
    cost = statistics.median(with_traces - without for without, with_traces in rows)
    bare = statistics.median(without for without, _ in rows)
    return [name, f"an answer takes {bare:.1f} ms", f"{cost:+.2f}"], cost <= _TRACES_MS


def _time_answer(app: MeasuredApp, data: Dataset, question: str) -> float:
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
    data = replace(data, questions=datasets.sample_evenly(data.questions, options.questions))
    with Collector() as collector:
        results = [compare_by_url(data), compare_traces(data, "traces to a collector", collector.url)]
        sent = len(collector.spans())
    results.append(compare_traces(data, "traces to nobody", _NOBODY))
    table = report.table(["", "", "median ms"], [cells for cells, _ in results])
    report.save("services", machine.describe(()), [{"row": cells} for cells, _ in results], table)
    print(f"{table}\n\n{sent} spans were sent.")
    return 0 if sent and all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
