"""Questions that the answer reader is trained and tested on, and the pages that they are about.

`answer_reader_questions.jsonl`: {"url", "question", "lang", "type", "quote": [start, end], "answer": [start, end]};
the places are characters of the page's text. A row without them is a near miss: the page is about its subject and
doesn't answer it. A row with "held_out" is only tested on, as are all rows about its page. The pages are those of wcxb,
of aeb (by id) and of xquad-zh, and written ones in `answer_reader_pages.jsonl`: {"url", "title", "text"}.

`byline_questions.jsonl` has questions about the authors and dates of these pages and of posts in them. Its quotes and
answers are texts of the pages as the app reads them, since the true texts of wcxb and aeb have no bylines.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.datasets import Dataset, load
from benchmarks.extraction_labels import read_page, read_truth
from rag.ingest.sources import Source, record_sources

QUESTIONS: Final = Path(__file__).with_name("answer_reader_questions.jsonl")
PAGES: Final = Path(__file__).with_name("answer_reader_pages.jsonl")
BYLINES: Final = Path(__file__).with_name("byline_questions.jsonl")
HELD_OUT: Final = "held-out"
"""The name of the set of questions about pages that nothing was trained on."""


def read_questions(*, held_out: bool) -> list[dict[str, Any]]:
    """Return the rows to test on, or those to train on."""
    return [row for row in _read(QUESTIONS) if row.get("held_out", False) is held_out]


def load_bylines(folder: Path, *, held_out: bool) -> Dataset:
    """Return the questions about authors and dates as a set without pages: `read_sources` has them."""
    rows = [
        {
            **row,
            "id": f"bylines-{row['lang']}-{language_of(row['url'])}-{number}",
            "answers": [row["answer"]] if "answer" in row else [],
            "evidence": [{"url": address_of(row["url"]), "quote": row["quote"]}] if "quote" in row else [],
        }
        for number, row in enumerate(_read(BYLINES))
        if row.get("held_out", False) is held_out
    ]
    return Dataset("bylines", [], rows, folder)


def address_of(key: str) -> str:
    """Return the address of a page: its `url`, unless that is an id of aeb."""
    return key if key.startswith("http") else f"https://aeb.example/{key}"


def read_sources(folder: Path, keys: Collection[str]) -> Iterator[Source]:
    """Yield the pages with these ids or addresses; those of wcxb and aeb as HTML."""
    for row in read_truth(folder / name for name in ("wcxb", "aeb") if (folder / name).is_dir()):
        if row["id"] in keys or row["url"] in keys:
            url = row["url"] or address_of(row["id"])
            yield Source(url, url, "web", data=read_page(row), content_type="text/html")
    texts = [*load(folder / "xquad-zh").pages, *read_written_pages()]
    yield from record_sources((json.dumps(one) for one in texts if one["url"] in keys), "written")


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
    questions = [
        cite(row, pages) | {"id": f"held-{row['lang']}-{language_of(row['url'])}-{number}"}
        for number, row in enumerate(rows)
    ]
    kept = [
        {"url": address_of(key), "title": pages[key]["title"], "lang": language_of(key), "text": pages[key]["text"]}
        for key in sorted(keys)
    ]
    return Dataset(HELD_OUT, kept, questions, folder)


def cite(row: dict[str, Any], pages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a row with the texts of its answer and its evidence, in the form of the sets."""
    text, url = pages[row["url"]]["text"], address_of(row["url"])
    return {
        **row,
        "url": url,
        "answers": [text[slice(*row["answer"])]] if "answer" in row else [],
        "evidence": [{"url": url, "quote": text[slice(*row["quote"])]}] if "quote" in row else [],
    }


def language_of(url: str) -> str:
    """Return the language of a page of these questions."""
    return "zh" if url.startswith(("https://xquad-zh.", "https://pages.example/zh/")) else "en"


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
