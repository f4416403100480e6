"""Questions about listings, such as shops: an attribute is a separate line, and says nothing without its title.

    python -m benchmarks.listings [--data FOLDER] [--pages N]

Asks the answer reader's questions about pages of wcxb, read from their HTML, in fast mode without a chat model. An
answer is an attribute if it is in a short line without a full stop. The rivals quote each line alone, and each pair of
successive short lines. Near misses have no answer. The reader was trained on most questions, with each line alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import report
from benchmarks.datasets import DEFAULT_FOLDER, sample_evenly
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, measured_app
from benchmarks.natural_questions import contains_answer
from benchmarks.quoted import sentences_of
from benchmarks.reader_questions import read_pages, read_questions
from rag import text as text_module
from rag.app import Question
from rag.ingest import chunking
from rag.ingest.batch import ingest_all
from rag.ingest.sources import Source
from rag.reasoning import extractive
from rag.text import HEADING, Entry, find_entries, lazy_regex, unit_spans

Find = Callable[..., list[Entry]]
Row = dict[str, Any]

_SAMPLES = {"attribute": 5, "other": 2, "near miss": 2}
"""Questions per page and kind."""
_MAX_LINE = 100
_ENDS = lazy_regex(r"[.!?。！？;；…][\"”’)）]*$")
_MARKS = ("|", "- ", "* ", "#")


@dataclass(frozen=True)
class Reply:
    """The result of one question: if the quotes, and the first, contain the answer, and if it is called answered."""

    kind: str
    contains_answer: bool
    first_contains_answer: bool
    answered: bool


def _pairs(text: str, start: int = 0, end: int | None = None) -> list[Entry]:
    """Return each two consecutive short lines as an entry."""
    entries: list[Entry] = []
    before: tuple[int, int] | None = None
    for match in lazy_regex(r"^\S.*$", 8).finditer(text, start, len(text) if end is None else end):
        line = match[0]
        if not is_short(line) or HEADING.match(line):
            before = None
        elif before:
            entries.append(Entry(None, before, [match.span()]))
            before = None
        else:
            before = match.span()
    return entries


WAYS: dict[str, Find] = {"entries": find_entries, "each line alone": lambda *_: [], "pairs of lines": _pairs}


def is_short(line: str) -> bool:
    """Return whether a line may be an attribute: short, without a full stop or marks of lists and tables."""
    return 0 < len(line) < _MAX_LINE and not _ENDS.search(line) and not line.startswith(_MARKS)


def select_questions(rows: Sequence[Row], text: str) -> list[tuple[str, Row]]:
    """Return a sample of a page's questions, each with its kind and with `answers` added."""
    by_kind: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if "answer" not in row:
            by_kind["near miss"].append(row | {"answers": []})
            continue
        start, end = row["answer"]
        after = text.find("\n", start)
        line = text[text.rfind("\n", 0, start) + 1 : after if after >= 0 else len(text)].strip()
        by_kind["attribute" if is_short(line) else "other"].append(row | {"answers": [text[start:end]]})
    return [
        (kind, row)
        for kind, count in _SAMPLES.items()
        for row in sample_evenly(by_kind[kind], min(count, len(by_kind[kind])))
    ]


def measure(app: MeasuredApp, way: str, pages: Sequence[Row], questions: Sequence[tuple[str, Row]]) -> list[Reply]:
    with _found_by(WAYS[way]):
        library = way.replace(" ", "-")
        app.libraries.create(library)
        sources = [
            Source(page["url"], page["url"], "web", data=page["html"], content_type="text/html") for page in pages
        ]
        list(ingest_all(app.imports.ingestor(library), sources))
        return [_ask(app, library, kind, row) for kind, row in questions]


def _ask(app: MeasuredApp, library: str, kind: str, row: Row) -> Reply:
    answer = app.wait(app.ask(Question(row["question"], (library,))))
    quotes = [] if answer.outcome == "not_in_pages" else sentences_of(answer.text)
    has_answer = bool(row["answers"])
    return Reply(
        kind,
        has_answer and contains_answer(row, quotes),
        has_answer and contains_answer(row, quotes[:1]),
        answer.outcome == "answered",
    )


@contextmanager
def _found_by(find: Find) -> Iterator[None]:
    with ExitStack() as stack:
        for module in (chunking, extractive, text_module):
            stack.enter_context(patch.object(module, "find_entries", find))
        unit_spans.cache_clear()
        yield
    unit_spans.cache_clear()


def _load(folder: Path, count: int) -> tuple[list[Row], list[tuple[str, Row]]]:
    """Return the pages with most questions about attributes, and a sample of their questions."""
    texts = read_pages(folder)
    with (folder / "wcxb/truth.jsonl").open(encoding="utf-8") as lines:
        ids = {row["url"]: row["id"] for row in map(json.loads, lines)}
    by_page: dict[str, list[Row]] = defaultdict(list)
    for row in (*read_questions(held_out=False), *read_questions(held_out=True)):
        if row["url"] in ids:
            by_page[row["url"]].append(row)
    samples = {url: select_questions(rows, texts[url]["text"]) for url, rows in by_page.items()}
    attributes = {url: sum(kind == "attribute" for kind, _ in sample) for url, sample in samples.items()}
    chosen = sorted(samples, key=lambda url: (-attributes[url], -len(by_page[url]), url))[:count]
    html = {url: gzip.decompress((folder / "wcxb/html" / f"{ids[url]}.html.gz").read_bytes()) for url in chosen}
    return [{"url": url, "html": html[url]} for url in chosen], [one for url in chosen for one in samples[url]]


def as_table(replies: dict[str, list[Reply]]) -> str:
    lines = []
    for kind in _SAMPLES:
        for figure in ("contains_answer", "first_contains_answer", "answered"):
            if kind == "near miss" and figure != "answered":
                continue
            values = [[float(getattr(one, figure)) for one in own if one.kind == kind] for own in replies.values()]
            lines.append([f"{kind}, {figure.replace('_', ' ')}", str(len(values[0])), *map(format_mean, values)])
    return report.table(["", "questions", *replies], lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=44, metavar="N")
    options = parser.parse_args()
    pages, questions = _load(options.data, options.pages)
    with measured_app() as app:
        print(as_table({way: measure(app, way, pages, questions) for way in WAYS}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
