"""Encoding speed compared with FlagEmbedding's encode and sentence-transformers', with the same weights in one run.

Also compared with `loaded`: ours with the loaded model's forward pass instead of our own.

    python -m benchmarks.encoding [--pages FILE.jsonl] [--chunks 120] [--rounds 5] [--exact] [--json]

The peers alternate in every round, so that load on the machine affects all of them. Prints medians in seconds, the
ratio to ours (the median of the rounds' ratios), and the lowest cosine to the stock vectors. Without --pages the texts
are synthetic. --exact is ours on a processor without bfloat16; the peers compute in float32 either way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

CHUNK_CHARACTERS = 600
QUERIES = 20
WORDS = (
    "river city treaty market lamp engine school bridge winter forest council paper signal harbour theory "
    "planet voice letter metal garden of the in and to with from under between after which were had is known"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="JSON lines with a text in each")
    parser.add_argument("--chunks", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--exact", action="store_true", help="ours in float32 on any processor")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    texts = chunks_of(options.pages, options.chunks)
    paths = load_paths(exact=options.exact)
    rows = [
        measure("chunks", paths, lambda encode: encode.chunks(texts), options.rounds),
        measure("query", paths, lambda encode: encode.queries(QUERIES), options.rounds),
    ]
    cosine = float((paths["ours"].chunks(texts) * paths["stock"].chunks(texts)).sum(axis=1).min())
    report = {
        "chunks": len(texts),
        "precision": paths["ours"].precision,
        "cosine": round(cosine, 6),
        "rows": rows,
    }
    print(json.dumps(report) if options.json else table(report))


class Encoding:
    """An encoder: chunks in one call, queries one at a time."""

    def __init__(self, encode: Callable[[list[str]], Any], query: Callable[[str], Any], precision: str) -> None:
        self.chunks = encode
        self.precision = precision
        self._query = query
        self._asked = 0

    def queries(self, count: int) -> None:
        for _ in range(count):
            self._asked += 1  # never the same text twice, so that no cache helps
            self._query(f"What does the treaty of {self._asked} say about the {WORDS.split()[self._asked % 20]}?")


def load_paths(*, exact: bool = False) -> dict[str, Encoding]:
    """Load the built-in model in each way; without language means, which the peers do not subtract."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    from FlagEmbedding import FlagModel
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    from rag.models.embedding import FlagEncoder
    from rag.models.model_files import BUILTIN, family_of, find_model, load_flag_model
    from rag.models.transformer import read_bert

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    source = find_model(BUILTIN)
    folder, family = str(source.folder), family_of(source.origin, source.folder)
    ours = FlagEncoder(read_bert(source.folder), family, name="ours", device="cpu", exact=exact)
    with patch("rag.models.transformer.can_run", return_value=False):  # as for a model of another shape
        flag = load_flag_model(source.name, source.folder, family.pooling, "cpu")
        loaded = FlagEncoder(flag, family, name="loaded", device="cpu", exact=exact)
    stock = FlagModel(folder, pooling_method=family.pooling, use_fp16=False, devices="cpu")
    stock.model.float()  # the files are in bfloat16
    peer = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": "float32"})

    def passages(texts: list[str]) -> list[str]:
        return [family.passage + text for text in texts]

    def query(text: str) -> list[str]:
        return [family.query + text]

    return {
        "ours": Encoding(ours.encode_passages, ours.encode_query, ours.choice.precision),
        "loaded": Encoding(loaded.encode_passages, loaded.encode_query, ours.choice.precision),
        "stock": Encoding(
            lambda texts: stock.encode(passages(texts)), lambda text: stock.encode(query(text)), "float32"
        ),
        "sentence-transformers": Encoding(
            lambda texts: peer.encode(passages(texts)), lambda text: peer.encode(query(text)), "float32"
        ),
    }


def measure(name: str, paths: dict[str, Encoding], work: Callable[[Encoding], Any], rounds: int) -> dict[str, Any]:
    """Return medians and ratios of `rounds` rounds after a warm-up; ours alternates between first and last."""
    for path in paths.values():
        work(path)
    seconds: dict[str, list[float]] = {key: [] for key in paths}
    for number in range(rounds):
        for key in sorted(paths, reverse=bool(number % 2)):
            began = time.perf_counter()
            work(paths[key])
            seconds[key].append(time.perf_counter() - began)
    peers = {key: [a / b for a, b in zip(seconds[key], seconds["ours"], strict=True)] for key in paths}
    return {
        "what": name,
        **{key: round(statistics.median(values), 4) for key, values in seconds.items()},
        "ratios": {key: round(statistics.median(values), 2) for key, values in peers.items() if key != "ours"},
        "spread": {key: [round(min(v), 2), round(max(v), 2)] for key, v in peers.items() if key != "ours"},
    }


def chunks_of(pages: Path | None, count: int) -> list[str]:
    if pages is None:
        rng = random.Random(1)
        words = WORDS.split()
        return [" ".join(rng.choices(words, k=110))[: CHUNK_CHARACTERS - i % 97] for i in range(count)]
    texts = [json.loads(line)["text"] for line in pages.read_text("utf-8").splitlines()]
    chunks = [text[at : at + CHUNK_CHARACTERS] for text in texts for at in range(0, len(text), CHUNK_CHARACTERS)]
    return chunks[:count]


def table(report: dict[str, Any]) -> str:
    head = f"{report['chunks']} chunks, ours in {report['precision']}"
    lines = [f"{head}, lowest cosine to stock {report['cosine']}"]
    for row in report["rows"]:
        lines.append(f"{row['what']}: ours {row['ours']:.4f} s")
        for key, ratio in row["ratios"].items():
            low, high = row["spread"][key]
            lines.append(f"  {key} {row[key]:.4f} s, {ratio:.1f} times ours ({low:.1f} to {high:.1f})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
