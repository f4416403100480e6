"""Questions that the answer reader is trained and tested on, and the pages that they are about.

`answer_reader_questions.jsonl`: {"url", "question", "lang", "type", "quote": [start, end], "answer": [start, end]};
the places are characters of the page's text. A row without them is a near miss: the page is about its subject and
doesn't answer it. A row with "held_out" is only tested on, as are all rows about its page. The pages are those of wcxb,
of aeb (by id) and of xquad-zh, and written ones in `answer_reader_pages.jsonl`: {"url", "title", "text"}.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from benchmarks.datasets import Dataset, load

QUESTIONS: Final = Path(__file__).with_name("answer_reader_questions.jsonl")
PAGES: Final = Path(__file__).with_name("answer_reader_pages.jsonl")
HELD_OUT: Final = "held-out"
"""The name of the set of questions about pages that nothing was trained on."""


def read_questions(*, held_out: bool) -> list[dict[str, Any]]:
    """Return the rows to test on, or those to train on."""
    return [row for row in _read(QUESTIONS) if row.get("held_out", False) is held_out]


def read_written_pages() -> list[dict[str, Any]]:
    """Return the pages that were written for these questions."""
    return _read(PAGES)


def read_pages(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the pages by the `url` of their questions; `folder` has the sets."""
    pages = [*load(folder / "xquad-zh").pages, *read_written_pages()]
    for name in ("wcxb", "aeb"):
        pages += [{"url": row["id"], **row} for row in _read(folder / name / "truth.jsonl")]
    return {page["url"]: page | {"title": page.get("title") or page["text"].partition("\n")[0][:60]} for page in pages}


def answers_by_page(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return by id of a page of wcxb or aeb the answers to all questions, each with the sentence it is in."""
    pages = read_pages(folder)
    answers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in _read(QUESTIONS):
        page = pages[row["url"]]
        if "answer" in row and "id" in page:
            answers[page["id"]].append((page["text"][slice(*row["answer"])], page["text"][slice(*row["quote"])]))
    return answers


def load_held_out(folder: Path) -> Dataset:
    """Return the held-out questions as a set, with the pages that they are about."""
    pages, rows = read_pages(folder), read_questions(held_out=True)
    keys = {row["url"] for row in rows}
    urls = {key: key if key.startswith("http") else f"https://aeb.example/{key}" for key in keys}
    texts = {key: pages[key]["text"] for key in keys}
    questions = [
        {
            **row,
            "id": f"held-{row['lang']}-{_language_of(row['url'])}-{number}",
            "answers": [texts[row["url"]][slice(*row["answer"])]] if "answer" in row else [],
            "evidence": [{"url": urls[row["url"]], "quote": texts[row["url"]][slice(*row["quote"])]}]
            if "quote" in row
            else [],
        }
        for number, row in enumerate(rows)
    ]
    kept = [
        {"url": urls[key], "title": pages[key]["title"], "lang": _language_of(key), "text": texts[key]}
        for key in sorted(keys)
    ]
    return Dataset(HELD_OUT, kept, questions, folder)


def _language_of(url: str) -> str:
    """Return the language of a page of these questions."""
    return "zh" if url.startswith(("https://xquad-zh.", "https://pages.example/zh/")) else "en"


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
