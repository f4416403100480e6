"""A benchmark peer that returns every page for every question: PAGES QUESTIONS RUN K."""

from __future__ import annotations

import json
import sys

from benchmarks.peers import rows


def main(pages: str, questions: str, run: str, k: str) -> None:
    hits = [(page["url"], page["text"]) for page in rows.read(pages)]
    ms = rows.answer(rows.read(questions), run, lambda question: hits[: int(k)])
    sys.stdout.write(json.dumps({"stored_s": 0.5, "chunks": len(hits), "ms": ms, "encoded": None}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:5])
