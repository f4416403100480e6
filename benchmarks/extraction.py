"""The text of real pages compared with trafilatura's, against hand-checked text.

    python -m benchmarks.extraction [--data FOLDER ...] [--kind KIND ...] [--folds N] [--json] [--show ID]
    python -m benchmarks.extraction --without {prices,bylines,authors}

Reads each page as the app does, with its block classifier, and with trafilatura (Markdown, its defaults), in one
process, and prints F1 over words by kind of page, their difference (95% intervals over sites), the snippets that must
and must not appear, and pages per second of processor time. --folds N cross-validates: each page is judged by trees
fitted to the other N - 1 folds of all sets, with no site in two folds. --show prints one page's blocks, their
probabilities, and whether they were kept. --without prints, with and without one rule, the mean F1, the texts that it
changes, and how many pages with an author have the name in their text.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.extraction_fit import fit_folds
from benchmarks.extraction_labels import SETS, Row, parse_page, read_examples, read_page, read_truth
from benchmarks.extraction_score import line, score, word_f1
from benchmarks.intervals import format_mean
from rag.errors import IngestError
from rag.reading.extract import extract_html
from rag.reading.extraction import main_text
from rag.reading.extraction.features import Forest
from rag.reading.extraction.main_text import score_blocks
from rag.reading.extraction.segments import segment

Reader = Callable[[bytes, Row], str]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    truth = [row for row in read_truth(options.data or SETS) if not options.kind or row["type"] in options.kind]
    if options.show:
        _show(next(row for row in truth if row["id"] == options.show))
        return 0
    if options.without:
        print("\n".join(compare_rule(truth, *RULES[options.without])))
        return 0
    forests = fit_folds(list(read_examples(truth)), options.folds) if options.folds else {}
    results = measure(truth, forests)
    print(json.dumps(results) if options.json else "\n".join(report(truth, results)))
    return 0


RULES: dict[str, tuple[str, Callable[..., Any]]] = {
    "prices": ("complete_cards", lambda _, selected, __: list(selected)),
    "bylines": ("add_byline", lambda rows, _: list(rows)),
    "authors": ("name_posts", lambda rows: [row.block for row in rows if row.is_selected]),
}
"""The function of `rag.reading.extraction.main_text` that carries out each rule, and one that doesn't."""


def compare_rule(truth: Sequence[Row], name: str, absent: Callable[..., Any]) -> list[str]:
    """Return the rows of a Markdown table by kind, for pages as the app reads them and without one of its rules."""
    with patch.object(main_text, name, absent):
        without = {row["id"]: _read_with_author(row) for row in truth}
    ours = {row["id"]: _read_with_author(row) for row in truth}
    lines = [
        "| kind | pages | F1 | without | changed | with an author | author in text | without |",
        f"|{' --- |' * 8}",
    ]
    for kind in sorted({row["type"] for row in truth}):
        rows = [row for row in truth if row["type"] == kind]
        pairs = [(ours[row["id"]], without[row["id"]]) for row in rows]
        scores = (sum(word_f1(read[row["id"]][0], row["text"]) for row in rows) / len(rows) for read in (ours, without))
        named = [(author.lower(), text.lower(), other.lower()) for (text, author), (other, _) in pairs if author]
        counts = [sum(author in texts[place] for author, *texts in named) for place in (0, 1)]
        changed = sum(text != other for (text, _), (other, _) in pairs)
        figures = (kind, len(rows), *(f"{score:.3f}" for score in scores), changed, len(named), *counts)
        lines.append(f"| {' | '.join(map(str, figures))} |")
    return lines


def _read_with_author(row: Row) -> tuple[str, str]:
    try:
        document = extract_html(read_page(row), row["url"])
    except IngestError:
        return "", ""
    return document.text, document.author


def measure(truth: Sequence[Row], forests: Mapping[str, Forest]) -> dict[str, Any]:
    """Return per reader the F1 of each page, snippets and pages per second; ours uses the page's forest, if any."""
    readers: dict[str, Reader] = {
        "ours": lambda body, row: read_ours(body, row["url"], forests.get(row["id"])),
        "trafilatura": lambda body, row: read_trafilatura(body, row["url"]),
    }
    texts: dict[str, dict[str, str]] = {name: {} for name in readers}
    seconds = dict.fromkeys(readers, 0.0)
    for read in readers.values():
        read(read_page(truth[0]), truth[0])  # warm-up
    for row in truth:
        body = read_page(row)
        for name, read in readers.items():
            start = time.process_time()
            texts[name][row["id"]] = read(body, row)
            seconds[name] += time.process_time() - start
    return {name: _score_reader(truth, texts[name], seconds[name]) for name in readers}


def report(truth: Sequence[Row], results: Mapping[str, Any]) -> list[str]:
    """Return the rows of a Markdown table by kind, and a line on each reader."""
    pages: dict[str, list[Row]] = defaultdict(list)
    for row in truth:
        pages["all"].append(row)
        pages[row["type"]].append(row)
    lines = ["| kind | pages | ours | trafilatura | difference |", "| --- | --- | --- | --- | --- |"]
    for kind, rows in pages.items():
        sites = [row["site"] for row in rows]
        ours, theirs = ([results[name]["pages"][row["id"]] for row in rows] for name in ("ours", "trafilatura"))
        gain = format_mean([a - b for a, b in zip(ours, theirs, strict=True)], sites, signed=True)
        lines.append(f"| {kind} | {len(rows)} | {format_mean(ours, sites)} | {format_mean(theirs, sites)} | {gain} |")
    speeds = ", ".join(f"{name} {one['pages_a_second']:.1f}" for name, one in results.items())
    return [*lines, *(f"{name}: {line(one['score'])}" for name, one in results.items()), f"pages per second: {speeds}"]


def _score_reader(truth: Sequence[Row], texts: Mapping[str, str], seconds: float) -> dict[str, Any]:
    pages = {row["id"]: word_f1(texts[row["id"]], row["text"]) for row in truth}
    return {"score": score(truth, texts), "pages": pages, "pages_a_second": len(truth) / seconds}


def read_ours(body: bytes, url: str, forest: Forest | None = None) -> str:
    try:
        return extract_html(body, url, forest=forest).text
    except IngestError:
        return ""


def read_trafilatura(body: bytes, url: str) -> str:
    import trafilatura

    return trafilatura.extract(body, url=url or None, output_format="markdown") or ""


def _show(row: Row) -> None:
    root, structured_data = parse_page(read_page(row))
    for judged in score_blocks(root, segment(root), structured_data):
        mark = "+" if judged.is_selected else "-"
        print(f"{mark} {judged.probability:.2f} {judged.block.place.node.tag:8} {judged.block.text[:100]!r}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, action="append", help="a set of pages; may be repeated")
    parser.add_argument("--kind", action="append", help="only pages of this kind; may be repeated")
    parser.add_argument("--folds", type=int, help="judge each page by a fit on the other parts; no site is in two")
    parser.add_argument("--without", choices=RULES, help="compare with texts that are read without this rule")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", metavar="ID", help="one page's blocks, each with its probability")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
