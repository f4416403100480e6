"""Scores of cases and rankings by ragas and ir-measures: FOLDER URL.

FOLDER has cases.jsonl (question, answer, reference, passages), exported.jsonl (RAGAS's columns, as this project writes
them), rankings.json and vectors.json; URL is a chat server's. Writes scores.json, and back.jsonl, which is
exported.jsonl as ragas's data set class writes it. Runs in the environment METRICS, without this project's packages.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_RANKING = ("Success@1", "Success@5", "RR@10", "P@5", "nDCG@10", "R@5")


async def of_answers(cases: list[dict[str, Any]], url: str, vectors: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return ragas's metrics of each case, by its id."""
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory

    client = AsyncOpenAI(base_url=url, api_key="none")
    metrics = _metrics(llm_factory("given", client=client), _make_embedding(vectors))
    return {case["id"]: {name: await _score(metric, case) for name, metric in metrics.items()} for case in cases}


def _metrics(model: Any, vectors: Any) -> dict[str, Any]:
    from ragas.metrics import collections as ragas

    return {
        "faithfulness": ragas.Faithfulness(llm=model),
        "context_precision": ragas.ContextPrecisionWithReference(llm=model),
        "context_recall": ragas.ContextRecall(llm=model),
        "answer_correctness": ragas.AnswerCorrectness(llm=model, embeddings=vectors),
        "factual_f1": ragas.FactualCorrectness(llm=model),
        "noise_sensitivity": ragas.NoiseSensitivity(llm=model),
        "noise_sensitivity_irrelevant": ragas.NoiseSensitivity(llm=model, mode="irrelevant"),
        "answer_relevancy": ragas.AnswerRelevancy(llm=model, embeddings=vectors),
    }


async def _score(metric: Any, case: Mapping[str, Any]) -> float:
    """Score a case with those of its fields that the metric accepts."""
    wanted = metric.ascore.__annotations__
    return float((await metric.ascore(**{name: case[name] for name in wanted if name in case})).value)


def _make_embedding(vectors: Mapping[str, list[float]]) -> Any:
    from ragas.embeddings.base import BaseRagasEmbedding

    class Given(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: Any) -> list[float]:
            return vectors[text]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return vectors[text]

    return Given()


def of_rankings(qrels: list[Any], run: list[Any]) -> dict[str, dict[str, float]]:
    """Return trec_eval's measures by name, for each question."""
    import ir_measures

    found: dict[str, dict[str, float]] = {name: {} for name in _RANKING}
    measures = [ir_measures.parse_measure(name) for name in _RANKING]
    judged = [ir_measures.Qrel(*one) for one in qrels]
    for one in ir_measures.iter_calc(measures, judged, [ir_measures.ScoredDoc(*one) for one in run]):
        found[str(one.measure)][one.query_id] = one.value
    return found


def main(given: str, url: str) -> None:
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    from ragas import EvaluationDataset

    folder = Path(given)
    read = {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("rankings", "vectors")}
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text("utf-8").splitlines()]
    EvaluationDataset.from_jsonl(folder / "exported.jsonl").to_jsonl(folder / "back.jsonl")
    answers = asyncio.run(of_answers(cases, url, read["vectors"]))
    rankings = {name: of_rankings(**one) for name, one in read["rankings"].items()}
    (folder / "scores.json").write_text(json.dumps({"answers": answers, "rankings": rankings}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
