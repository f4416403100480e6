"""Input and output of peers: rows of pages and questions, and the hits of a run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Hit = tuple[str, str]
"""The URL and the text of a result."""


def quiet() -> None:
    """Disable the hub, progress bars and parallel tokenisers, unless the environment sets them."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def read(path: str) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def answer(questions: list[dict[str, Any]], run: str, find: Callable[[str], Iterable[Hit]]) -> float:
    """Ask all questions and write the run; return milliseconds per question."""
    find("warm up")
    began = time.perf_counter()
    found = [(question["id"], list(find(question["question"]))) for question in questions]
    seconds = time.perf_counter() - began
    with Path(run).open("w", encoding="utf-8") as out:
        for name, hits in found:
            row = {"id": name, "hits": [{"url": url, "text": text} for url, text in hits]}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return 1000 * seconds / max(1, len(questions))
