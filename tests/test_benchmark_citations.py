"""The rules that reword and falsify, and the benchmarks that use them, can fail."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks import citations, fragments
from benchmarks.datasets import Dataset
from benchmarks.rewording import falsify, reword

ENGLISH = (
    "In 1911, the bridge over the Ling, which was built by nine crews, also became famous because 20% of them died."
)
CHINESE = "1911年，由九个工程队建造的大桥在杭州建成，因为有20%的人去世，大桥也非常著名。"


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_reworded_sentences_differ_and_keep_what_they_say(text: str, language: str) -> None:
    made = {reword(text, language, random.Random(seed)) for seed in range(30)}
    assert len(made) > 10
    assert all("1911" in one and ("Ling" in one or "大桥" in one) for one in made)


@pytest.mark.parametrize(("text", "language", "name"), [(ENGLISH, "en", "Ling"), (CHINESE, "zh", "杭州")])
def test_falsified_sentences_change_one_thing(text: str, language: str, name: str) -> None:
    made = dict(falsify(text, language, random.Random(1), [name, "Other"]))
    assert {"number", "name"} <= set(made)
    assert name not in made["name"] and "Other" in made["name"]
    assert made["number"] != text and name in made["number"]


def make_dataset() -> Dataset:
    paragraphs = [
        "The bridge was opened in 1911. It took nine years to build.",
        "Its toll was lifted in 1946. Nobody pays it today.",
    ]
    quotes = ["The bridge was opened in 1911.", "Its toll was lifted in 1946."]
    url = "https://a.example/"
    pages = [{"url": url, "title": "Bridge", "lang": "en", "text": "\n\n".join(paragraphs)}]
    questions = [
        {
            "id": str(i),
            "question": "When was the toll of the bridge opened or lifted?",
            "lang": "en",
            "answers": ["1911"],
            "evidence": [{"url": url, "quote": quote}],
        }
        for i, quote in enumerate(quotes)
    ]
    return Dataset("tiny-en", pages, questions)


def test_the_time_of_a_check_is_told() -> None:
    data = make_dataset()
    told = citations.speed(citations.golds(data, random.Random(1)), "en", random.Random(1))
    assert told.startswith("median ") and " ms, " in told and not told.startswith("median 0.0 ms")


def test_gold_sentences_stand_in_their_paragraphs() -> None:
    data = make_dataset()
    found = citations.golds(data, random.Random(1))
    assert len(found) == 2
    for gold in found:
        assert data.pages[0]["text"][gold.passage.start : gold.passage.end] == gold.passage.text
        assert citations.verdict(gold.sentence, gold.passage).verdict == "supported"  # type: ignore[union-attr]
    assert citations.elsewhere(found, 5, random.Random(1)).counts["same page"] == [0, 2]


def test_a_tally_notes_what_was_expected_otherwise() -> None:
    gold = citations.golds(make_dataset(), random.Random(1))[0]
    tally = citations.Tally("unsupported")
    tally.add("copied", gold.sentence, gold.passage)
    assert tally.counts["copied"] == [1, 1]
    assert len(tally.misses) == 1


def test_the_extractive_reasoner_is_scored() -> None:
    assert citations.extractive(make_dataset(), 2).startswith("answered 2, supported ")


@pytest.mark.parametrize(
    ("boxes", "verdict"),
    [
        ([(10, 10, 90, 20)], ""),
        ([], "nothing marked"),
        ([(10, 60, 90, 70)], "elsewhere"),
        ([(10, 10, 20, 20)], "too little marked"),
        ([(10, 10, 90, 20), (10, 40, 90, 55)], "too much marked"),
    ],
)
def test_marks_are_judged_by_where_they_stand(boxes: list[tuple[int, int, int, int]], verdict: str) -> None:
    mask = np.zeros((100, 100), dtype=bool)
    for left, top, right, bottom in boxes:
        mask[top:bottom, left:right] = True
    assert fragments.judged(mask, [(10, 10, 90, 20)], 100) == verdict
