"""Sets of pages and questions: `pages.jsonl` and `questions.jsonl` in a folder.

pages      {"url", "title", "lang", "text"}
questions  {"id", "question", "lang", "answers": [text], "evidence": [{"url", "quote"}]}
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
_SHINGLE = 12


@dataclass(frozen=True)
class Dataset:
    name: str
    pages: list[dict[str, Any]]
    questions: list[dict[str, Any]]


def load(folder: Path, limit: int | None = None) -> Dataset:
    """Read a set; `limit` keeps its first questions alone."""
    return Dataset(folder.name, _rows(folder / "pages.jsonl"), _rows(folder / "questions.jsonl")[:limit])


def find(folder: Path, names: Sequence[str]) -> list[Path]:
    """The sets below `folder` by name, or all that are there."""
    found = sorted(path.parent for path in folder.glob("*/questions.jsonl"))
    return [path for path in found if not names or path.name in names]


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def score(questions: Sequence[Mapping[str, Any]], hits: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """recall@4000: share of the evidence's characters in the first 4 000 characters of the hits' texts.

    MRR: mean of 1 / rank of the first of ten hits that covers half of a quote. `hits` are texts in rank
    order by question id; questions without evidence are left out.
    """
    rows = [_score_one(q, hits.get(str(q["id"]), [])) for q in questions if q["evidence"]]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def _score_one(question: Mapping[str, Any], texts: Sequence[str]) -> dict[str, float]:
    quotes = [squash(evidence["quote"]) for evidence in question["evidence"]]
    room, kept = 4000, []
    for text in texts:
        kept.append(squash(text[: max(0, room)]))
        room -= len(text)
    body = "".join(kept)
    found = sum(_covered(quote, body) * len(quote) for quote in quotes)
    bodies = [squash(text) for text in texts[:10]]
    ranks = (rank for rank, one in enumerate(bodies, 1) if any(_covered(quote, one) >= 0.5 for quote in quotes))
    rank = next(ranks, None)
    return {"recall@4000": found / max(1, sum(map(len, quotes))), "MRR": 1 / rank if rank else 0.0}


def squash(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).lower()


def _covered(quote: str, body: str) -> float:
    """Share of the quote's characters that lie in a run of twelve that also stands in `body`."""
    if not quote or quote in body:
        return 1.0
    n = min(_SHINGLE, len(quote))
    seen = bytearray(len(quote))
    for i in range(len(quote) - n + 1):
        if quote[i : i + n] in body:
            seen[i : i + n] = b"\x01" * n
    return sum(seen) / len(quote)
