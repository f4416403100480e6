"""A set made of the sample pages in examples/, so that each benchmark runs in a fresh clone.

It shows that the commands work. Twelve pages are too few for comparisons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.datasets import Dataset
from rag.reading.charset import decode
from rag.reading.extract import extract_html
from rag.text import split_sentences

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
OUT = Path(__file__).resolve().parent / "out"


def samples() -> Dataset:
    """Return the sample pages with their questions; the evidence is the first sentence with an answer."""
    pages = [
        {**row, "text": extract_html(decode((EXAMPLES / row["file"]).read_bytes(), None), row["url"]).text}
        for row in _read("pages.json")
    ]
    texts = {page["url"]: page["text"] for page in pages}
    questions = [
        {
            **row,
            "answers": [spelling for fact in row["answers"] for spelling in fact],
            "evidence": _evidence(row, texts),
        }
        for row in _read("questions.json")
    ]
    return Dataset("examples", pages, questions)


def find_sets(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the sets below `folder` by name, or all; if there are none and none is named, the sample set."""
    folders = datasets.find_folders(folder, names)
    if folders or (names and list(names) != ["examples"]):
        return folders
    target = OUT / "examples"
    datasets.write(samples(), target)
    return [target]


def _evidence(question: Mapping[str, Any], texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        quote
        for spellings in question["answers"]
        for quote in _sentences_with(spellings, {url: texts[url] for url in question["pages"]})[:1]
    ]


def _sentences_with(spellings: Sequence[str], texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the sentences that contain any of the spellings."""
    return [
        {"url": url, "quote": text[start:end].strip()}
        for url, text in texts.items()
        for start, end in split_sentences(text)
        if any(spelling in text[start:end] for spelling in spellings)
    ]


def _read(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    return rows
