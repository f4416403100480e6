"""Calibrate the score that tells whether the pages hold an answer at all.

    python -m benchmarks.calibrate [SET …] [--data FOLDER] [--write]

Each set is asked three times: with every second page left out, with every second paragraph left out,
and whole, with questions that need two pages (two of the set's joined) beside questions about what a
page that is there does not say. One logistic regression on the features of `rag.retrieval.answerable`
is fitted for questions that the embedding model reads, one for all by keywords alone. What is printed
was predicted by a fit on the other half of the questions. --write puts the weights into
rag/retrieval/calibration.json, shifted so that one answerable question in fifty is below REFUSE.
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

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, find, load, separation, variant
from rag.app import App
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.records import record_sources
from rag.retrieval.answerable import DENSE_FEATURES, KEYWORD_FEATURES, REFUSE

TARGET = Path(__file__).resolve().parents[1] / "rag" / "retrieval" / "calibration.json"
REFUSED_SHARE = 0.02
_TWO_PAGES = 500
_EASY = 200
_ASKED_OF_A_PAGE = 6
_HARD_WEIGHT = 0.5
_ATTRIBUTES = {
    "en": "favourite colour|shoe size|annual electricity bill|press office phone number|blood type|wifi password"
    "|recipe for pancakes|zodiac sign|insurance premium|hourly parking fee|dress code for visitors|pet policy"
    "|laptop brand|font of the logo|weight of the statue|nickname of the accountant|warranty period|bus timetable"
    "|screen resolution|battery capacity|tax number|wedding anniversary|favourite football team",
    "zh": "最喜欢的颜色|鞋码|每年的电费|新闻办公室电话|血型|无线网密码|煎饼食谱|星座|保险费|每小时停车费|访客着装要求"
    "|宠物规定|笔记本电脑品牌|标志的字体|雕像重量|会计的绰号|保修期|公交时刻表|屏幕分辨率|电池容量|税号|结婚纪念日",
}
_FORMS = {
    "en": (
        "What is the {what} of {name}?",
        "Do the pages say which {what} {name} has?",
        "Tell me the {what} for {name}.",
    ),
    "zh": ("{name}的{what}是什么？", "{name}的{what}是多少？", "请告诉我{name}的{what}。"),
}


@dataclass(frozen=True)
class Sample:
    """Features of n questions, (n, 9), whether each is answerable, (n,), and what the sample weighs."""

    name: str
    features: NDArray[np.float64]
    answerable: NDArray[np.float64]
    dense: bool
    weight: float


def main() -> int:
    options = _options()
    folders = find(options.data, options.sets)
    if not folders:
        print(f"no sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    samples = [sample for folder in folders for sample in _samples(load(folder))]
    readable = [sample for sample in samples if sample.dense]
    calibrations = {"keyword": _calibrated(samples, KEYWORD_FEATURES, "keyword")}
    if readable:
        calibrations["builtin"] = _calibrated(readable, DENSE_FEATURES, "builtin")
    if options.write:
        TARGET.write_text(json.dumps(calibrations, indent=2) + "\n", encoding="utf-8")
    return 0


def _samples(data: Dataset) -> list[Sample]:
    rows = [
        ("pages", variant(data, "unanswerable"), 1.0),
        ("paragraphs", variant(data, "unanswerable-paragraphs"), 1.0),
    ]
    rows.append(("hard", _hard(data), _HARD_WEIGHT))
    return [_measured(f"{data.name} {name}", changed, weight) for name, changed, weight in rows]


def _hard(data: Dataset) -> Dataset:
    """Questions over two pages, plain ones, and ones about what a page that is there does not say."""
    chance = random.Random(7)
    by_page: dict[str, list[str]] = defaultdict(list)
    for question in data.questions:
        by_page[question["evidence"][0]["url"]].append(question["question"].strip())
    language = "zh" if data.pages[0]["lang"] == "zh" else "en"
    rows = [{"question": q["question"], "answerable": True} for q in chance.sample(data.questions, _EASY)]
    pages = list(by_page)
    for _ in range(_TWO_PAGES if len(pages) > 1 else 0):
        one, other = (chance.choice(by_page[url]) for url in chance.sample(pages, 2))
        rows.append({"question": _joined(one, other, language), "answerable": True})
    texts = {page["url"]: page["text"] for page in data.pages}
    for url, asked in by_page.items():
        for name in _names(asked, texts[url], language):
            for what in chance.sample(_ATTRIBUTES[language].split("|"), _ASKED_OF_A_PAGE):
                form = chance.choice(_FORMS[language])
                rows.append({"question": form.format(what=what, name=name), "answerable": False})
    return Dataset(f"{data.name} hard", data.pages, rows, data.folder)


def _joined(one: str, other: str, language: str) -> str:
    if language == "zh":
        return f"{one.rstrip('？?')}，{other}"
    return f"{one.rstrip('?')}, and {other[:1].lower()}{other[1:]}"


def _names(questions: Sequence[str], text: str, language: str) -> list[str]:
    """What a page's questions ask about most: names in its text that several of them hold."""
    counts: Counter[str] = Counter()
    for question in questions:
        if language == "zh":
            grams = {question[i : i + n] for n in (3, 4, 5) for i in range(len(question) - n + 1)}
            counts.update(g for g in grams if g in text and not re.search("[的是什么哪多少在了吗？，和谁]", g))
        else:
            found = re.findall(r"(?<!^)(?:[A-Z][\w']+(?: of| the)?(?: [A-Z][\w']+)*)", question)
            counts.update({name for name in found if name in text and len(name) > 3})
    return sorted(counts, key=lambda name: (-counts[name] * math.sqrt(len(name)), name))[:3]


def _measured(name: str, data: Dataset, weight: float) -> Sample:
    """Import the pages, ask every question, and keep what each search told."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=folder, llm_model="", qdrant_url="", embedding_model="builtin")
        with closing(App(settings)) as app:
            lines = (json.dumps(page) for page in data.pages)
            for _ in ingest_all(app.imports.ingestor("main"), list(record_sources(lines, name))):
                pass
            retriever = app.retriever("main")
            found = [retriever.evidence(question["question"]) for question in data.questions]
    features = np.array([[one.features[key] for key in DENSE_FEATURES] for one in found])
    answerable = np.array([float(question["answerable"]) for question in data.questions])
    dense = sum("dense" in one.legs for one in found) * 2 > len(found)
    print(json.dumps({"sample": name, "questions": len(found), "answerable": int(answerable.sum())}), flush=True)
    return Sample(name, features, answerable, dense, weight)


def _calibrated(samples: Sequence[Sample], features: Sequence[str], name: str) -> dict[str, float]:
    """Print how well a fit on one half tells the other apart; return the fit on everything."""
    columns = [DENSE_FEATURES.index(feature) for feature in features]
    halves = [np.arange(len(sample.answerable)) % 2 == 0 for sample in samples]
    fits = [_fit(samples, halves, side, columns) for side in (True, False)]
    for sample, half in zip(samples, halves, strict=True):
        predicted = np.where(half, *(_predict(fit, sample.features[:, columns]) for fit in fits[::-1]))
        yes = sample.answerable == 1
        told = separation(predicted[yes].tolist(), predicted[~yes].tolist())
        print(json.dumps({"fit": name, "sample": sample.name, **{k: round(v, 4) for k, v in told.items()}}), flush=True)
    weights = _fit(samples, [np.ones(len(s.answerable), bool) for s in samples], True, columns)
    easy = [s for s in samples if s.weight == 1.0]
    scores = np.concatenate([_predict(weights, s.features[s.answerable == 1][:, columns]) for s in easy])
    lowest = float(np.quantile(scores, REFUSED_SHARE))
    shift = math.log(REFUSE / (1 - REFUSE)) - math.log(lowest / (1 - lowest))
    fitted = {feature: round(float(w), 4) for feature, w in zip(features, weights, strict=False)}
    return {**fitted, "bias": round(float(weights[-1]) + shift, 4)}


def _fit(
    samples: Sequence[Sample], halves: Sequence[NDArray[np.bool_]], side: bool, columns: Sequence[int]
) -> NDArray[np.float64]:
    """Weighted logistic regression by Newton's method; the samples weigh alike, and in each both answers."""
    rows = [(s, half == side) for s, half in zip(samples, halves, strict=True)]
    features = np.concatenate([s.features[use][:, columns] for s, use in rows])
    answers = np.concatenate([s.answerable[use] for s, use in rows])
    weight = np.concatenate([s.weight * _balanced(s.answerable[use]) for s, use in rows])
    weight /= weight.sum()
    spread = features.std(axis=0) + 1e-9
    design = np.c_[features / spread, np.ones(len(features))]
    penalty = np.diag([1e-3] * len(columns) + [0.0])
    found = np.zeros(design.shape[1])
    for _ in range(60):
        predicted = 1 / (1 + np.exp(-design @ found))
        gradient = design.T @ (weight * (predicted - answers)) + penalty @ found
        curvature = (design * (weight * predicted * (1 - predicted))[:, None]).T @ design + penalty
        found -= np.linalg.solve(curvature + 1e-9 * np.eye(len(found)), gradient)
    return np.r_[found[:-1] / spread, found[-1]]


def _balanced(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    yes = max(1.0, answers.sum())
    return np.where(answers == 1, 0.5 / yes, 0.5 / max(1.0, len(answers) - yes))


def _predict(weights: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.c_[features, np.ones(len(features))] @ weights)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["xquad-en", "xquad-zh"], metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="put the weights into the project")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
