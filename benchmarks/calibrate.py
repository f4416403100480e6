"""Calibrate the score that predicts whether the pages answer a question.

    python -m benchmarks.calibrate [SET …] [--data FOLDER] [--fit keyword] [--write]

Each set is used three times: without every second page; without every second paragraph; and with questions that name
a remaining page, about that page, about it and another, or about the content of a removed page. One logistic regression
on the features of `rag.retrieval.context` is fitted to the questions that the embedding model can read, and one to
all of them by keywords alone. The printed figures are cross-validated: each half is predicted by a fit on the other.
--write saves the fitted weights in rag/retrieval/calibration.json and keeps the others. Their bias is shifted so that
3% of the answerable questions score below REFUSAL_THRESHOLD.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, find_folders, load, separation, variant
from rag.app import App
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.models.model_files import builtin_model
from rag.retrieval.context import FEATURES, KEYWORD_FEATURES, REFUSAL_THRESHOLD

TARGET = Path(__file__).resolve().parents[1] / "rag" / "retrieval" / "calibration.json"
REFUSED_SHARE = 0.03
_HARD_QUESTIONS = 250
_ABOUT = {"en": ("According to the article about {}, ", " and "), "zh": ("根据关于{}的文章，", "和")}


@dataclass(frozen=True)
class Sample:
    """Features of n questions, (n, features), and whether each is answerable, (n,)."""

    name: str
    features: NDArray[np.float64]
    answerable: NDArray[np.float64]
    dense: bool


def main() -> int:
    options = _options()
    folders = find_folders(options.data, options.sets)
    if not folders:
        print(f"no sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    samples = [sample for folder in folders for sample in _samples(load(folder))]
    readable = [sample for sample in samples if sample.dense]
    kinds = {"keyword": (samples, KEYWORD_FEATURES), builtin_model(): (readable, FEATURES)}
    fitted = {kind: _calibrate(*kinds[kind], kind) for kind in options.fit if kinds[kind][0]}
    if options.write:
        existing = json.loads(TARGET.read_text(encoding="utf-8"))
        TARGET.write_text(json.dumps({**existing, **fitted}, indent=2) + "\n", encoding="utf-8")
    return 0


def _samples(data: Dataset) -> list[Sample]:
    rows = [
        ("pages", variant(data, "unanswerable")),
        ("paragraphs", variant(data, "unanswerable-paragraphs")),
        ("hard", _hard(data)),
    ]
    return [_measure(f"{data.name} {name}", changed) for name, changed in rows]


def _hard(data: Dataset) -> Dataset:
    """Return half of the pages, and questions naming one: about it, about two, or about a removed page's content."""
    chance = random.Random(7)
    language = "zh" if data.pages[0]["lang"] == "zh" else "en"
    pages = variant(data, "unanswerable").pages
    texts = {page["url"]: page["text"] for page in pages}
    by_page: dict[str, list[str]] = defaultdict(list)
    for question in data.questions:
        by_page[question["evidence"][0]["url"]].append(question["question"].strip())
    names = {url: candidates[0] for url in texts if (candidates := _names(by_page[url], texts[url], language))}
    pairs = [(url, asked) for url in names for asked in by_page[url]]
    removed = [asked for url, questions in by_page.items() if url not in texts for asked in questions]
    rows = []
    for _ in range(_HARD_QUESTIONS):
        (page, one), (other, two) = chance.sample(pairs, 2)
        rows.append({"question": _name_pages([names[page]], one, language), "answerable": True})
        about_both = _name_pages([names[page], names[other]], _join_questions(one, two, language), language)
        rows.append({"question": about_both, "answerable": True})
        about_removed = _name_pages([names[page]], chance.choice(removed), language)
        rows.append({"question": about_removed, "answerable": False})
    return Dataset(f"{data.name} hard", pages, rows, data.folder)


def _name_pages(names: Sequence[str], question: str, language: str) -> str:
    form, joint = _ABOUT[language]
    return form.format(joint.join(names)) + question[:1].lower() + question[1:]


def _join_questions(one: str, other: str, language: str) -> str:
    if language == "zh":
        return f"{one.rstrip('？?')}，{other}"
    return f"{one.rstrip('?')}, and {other[:1].lower()}{other[1:]}"


def _names(questions: Sequence[str], text: str, language: str) -> list[str]:
    """Return up to three names in a page's text, preferring long ones and those in many of its questions."""
    counts: Counter[str] = Counter()
    for question in questions:
        if language == "zh":
            grams = {question[i : i + n] for n in (3, 4, 5) for i in range(len(question) - n + 1)}
            counts.update(g for g in grams if g in text and not re.search("[的是什么哪多少在了吗？，和谁]", g))
        else:
            matches = re.findall(r"(?<!^)(?:[A-Z][\w']+(?: of| the)?(?: [A-Z][\w']+)*)", question)
            counts.update({name for name in matches if name in text and len(name) > 3})
    return sorted(counts, key=lambda name: (-counts[name] * math.sqrt(len(name)), name))[:3]


def _measure(name: str, data: Dataset) -> Sample:
    """Import the pages, ask every question, and return the features of each search."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=folder, llm_model="", qdrant_url="", embedding_model="builtin")
        with closing(App(settings)) as app:
            lines = (json.dumps(page) for page in data.pages)
            for _ in ingest_all(app.imports.ingestor("main"), list(record_sources(lines, name))):
                pass
            retriever = app.retriever("main")
            results = [retriever.evidence(question["question"]) for question in data.questions]
    features = np.array([[found[key] for key in FEATURES] for found, _ in results])
    answerable = np.array([float(question["answerable"]) for question in data.questions])
    dense = sum("dense" in legs for _, legs in results) * 2 > len(results)
    print(json.dumps({"sample": name, "questions": len(results), "answerable": int(answerable.sum())}), flush=True)
    return Sample(name, features, answerable, dense)


def _calibrate(samples: Sequence[Sample], features: Sequence[str], name: str) -> dict[str, float]:
    """Print how well a fit on one half separates the other; return the fit on everything."""
    columns = [FEATURES.index(feature) for feature in features]
    halves = [np.arange(len(sample.answerable)) % 2 == 0 for sample in samples]
    fits = [_fit(samples, halves, side, columns) for side in (True, False)]
    for sample, half in zip(samples, halves, strict=True):
        predicted = np.where(half, *(_predict(fit, sample.features[:, columns]) for fit in fits[::-1]))
        yes = sample.answerable == 1
        stat = separation(predicted[yes].tolist(), predicted[~yes].tolist())
        print(json.dumps({"fit": name, "sample": sample.name, **{k: round(v, 4) for k, v in stat.items()}}), flush=True)
    weights = _fit(samples, [np.ones(len(s.answerable), bool) for s in samples], True, columns)
    scores = np.concatenate([_predict(weights, s.features[s.answerable == 1][:, columns]) for s in samples])
    lowest = float(np.quantile(scores, REFUSED_SHARE))
    shift = math.log(REFUSAL_THRESHOLD / (1 - REFUSAL_THRESHOLD)) - math.log(lowest / (1 - lowest))
    by_feature = {feature: round(float(w), 4) for feature, w in zip(features, weights, strict=False)}
    return {**by_feature, "bias": round(float(weights[-1]) + shift, 4)}


def _fit(
    samples: Sequence[Sample], halves: Sequence[NDArray[np.bool_]], side: bool, columns: Sequence[int]
) -> NDArray[np.float64]:
    """Fit a logistic regression by Newton's method; samples have equal weight, and so do both classes in each."""
    rows = [(s, half == side) for s, half in zip(samples, halves, strict=True)]
    features = np.concatenate([s.features[use][:, columns] for s, use in rows])
    answers = np.concatenate([s.answerable[use] for s, use in rows])
    weight = np.concatenate([_balance(s.answerable[use]) for s, use in rows])
    weight /= weight.sum()
    spread = features.std(axis=0) + 1e-9
    design = np.c_[features / spread, np.ones(len(features))]
    penalty = np.diag([1e-3] * len(columns) + [0.0])
    weights = np.zeros(design.shape[1])
    for _ in range(60):
        predicted = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (weight * (predicted - answers)) + penalty @ weights
        curvature = (design * (weight * predicted * (1 - predicted))[:, None]).T @ design + penalty
        weights -= np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
    return np.r_[weights[:-1] / spread, weights[-1]]


def _balance(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    yes = max(1.0, answers.sum())
    return np.where(answers == 1, 0.5 / yes, 0.5 / max(1.0, len(answers) - yes))


def _predict(weights: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.c_[features, np.ones(len(features))] @ weights)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["xquad-en", "xquad-zh"], metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    kinds = ("keyword", builtin_model())
    parser.add_argument("--fit", nargs="+", choices=kinds, default=kinds, help="weights to fit (default: both)")
    parser.add_argument("--write", action="store_true", help="save the weights in the project")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
