"""The text of real pages beside trafilatura's, against hand-checked text.

    python -m benchmarks.extraction [--data FOLDER] [--kind KIND ...] [--json] [--show ID]

Runs `rag.ingest.extract.extract` and trafilatura (Markdown, its defaults) page by page in one process and prints
F1 over words by kind of page, the snippets that must and must not appear, and the processor's seconds of both.
--show prints one page's blocks, how likely each was thought to be its own text, and whether it was taken.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.extraction_labels import SET, read_page, read_truth
from benchmarks.extraction_score import line, score
from rag.errors import IngestError
from rag.ingest.charset import decode
from rag.ingest.extract import extract
from rag.ingest.extraction.main_text import judge_blocks
from rag.ingest.extraction.segments import segment
from rag.ingest.extraction.structured import read_facts
from rag.ingest.extraction.tree import body_of, parse
from rag.ingest.extraction.visible import remove_hidden

Reader = Callable[[bytes, str], str]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    truth = [row for row in read_truth(options.data) if not options.kind or row["type"] in options.kind]
    if options.show:
        _show(next(row for row in truth if row["id"] == options.show), options.data)
        return 0
    found = measure(truth, options.data)
    if options.json:
        print(json.dumps(found))
        return 0
    for name in ("ours", "trafilatura"):
        print(f"{name:12}", line(found[name]))
    print(
        f"processor seconds: ours {found['seconds']['ours']:.1f}, trafilatura {found['seconds']['trafilatura']:.1f}, ",
        end="",
    )
    print(f"ratio {found['ratio']:.2f} over {found['pages']} pages")
    return 0


def measure(truth: Sequence[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Scores by reader, processor seconds by reader, and the ratio of ours to trafilatura's."""
    readers: dict[str, Reader] = {"trafilatura": read_trafilatura, "ours": read_ours}
    texts: dict[str, dict[str, str]] = {name: {} for name in readers}
    seconds = dict.fromkeys(readers, 0.0)
    for read in readers.values():
        read(read_page(truth[0], folder), truth[0]["url"])  # what is loaded once
    for row in truth:
        body = read_page(row, folder)
        for name, read in readers.items():
            start = time.process_time()
            texts[name][row["id"]] = read(body, row["url"])
            seconds[name] += time.process_time() - start
    scores = {name: score(truth, found) for name, found in texts.items()}
    return {**scores, "seconds": seconds, "ratio": seconds["ours"] / seconds["trafilatura"], "pages": len(truth)}


def read_ours(body: bytes, url: str) -> str:
    try:
        return extract(body, "text/html", None, url).text
    except IngestError:
        return ""


def read_trafilatura(body: bytes, url: str) -> str:
    import trafilatura

    return trafilatura.extract(body, url=url, output_format="markdown") or ""


def _show(row: dict[str, Any], folder: Path) -> None:
    tree = parse(decode(read_page(row, folder)))
    facts = read_facts(tree)
    remove_hidden(tree)
    body = body_of(tree)
    for judged in judge_blocks(body, segment(body), facts):
        mark = "+" if judged.is_taken else "-"
        print(f"{mark} {judged.chance:.2f} {judged.block.place.node.tag:8} {judged.block.text[:100]!r}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=SET)
    parser.add_argument("--kind", action="append", help="only pages of this kind; may be repeated")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", metavar="ID", help="one page's blocks, each with its chance")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
