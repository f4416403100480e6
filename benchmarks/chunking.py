"""Chunks of a set by each of our chunkers, and by LangChain's two with their defaults.

    python -m benchmarks.chunking [SET …] [--data FOLDER] [--chunkers A,B] [--no-peers] [--json]

Writes chunking.md and chunking.json into benchmarks/out. For each chunker:

    mean, largest     characters of a chunk; a Chinese one counts for 2.5, as it does for a chunker's maximum
    inside            share of the chunks that end inside a sentence: neither at closing punctuation nor at a line end
    over              share of the chunks above the chunker's own maximum
    encoded / source  tokens encoded per token of the pages: those of the chunks with their embedded context, and those
                      that the chunker itself encodes (none for ours)
    work / chunks     the same per token of the chunks' texts
    cut off           share of the chunks' tokens beyond the input limit of the built-in model
    seconds           for chunking alone

Tokens are those of the built-in model (`benchmarks.tokens`). SemanticChunker uses our encoder, which is several times
as fast as the one in its documentation.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import datasets, machine, report, tokens
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.ingest.chunking import CHUNKERS, embedding_text, get_chunker
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.text import weigh

_ENDS = re.compile("[.!?。！？…｡][\"'”’」』）)\\]】》〉*_`]*$")
_COLUMNS = (
    ("chunks", "chunks", ",d"),
    ("mean", "mean", ",.0f"),
    ("largest", "largest", ",.0f"),
    ("inside", "inside", ".1%"),
    ("over", "over", ".1%"),
    ("encoded", "encoded / source", ".2f"),
    ("work", "work / chunks", ".2f"),
    ("cut_off", "cut off", ".1%"),
    ("seconds", "seconds", ".2f"),
)


@dataclass(frozen=True)
class Piece:
    """One chunk: its text, its end offset in the page, and the text that would be embedded."""

    text: str
    end: int
    embedded: str


@dataclass
class System:
    """A chunker; `encoded` collects the texts that it passes through the model.

    `maximum` is in the unit of `size`.
    """

    name: str
    maximum: float | None
    cut: Callable[[dict[str, Any]], list[Piece]]
    encoded: list[str] = field(default_factory=list)
    size: Callable[[str], float] = weigh


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folders = find_sets(options.data, options.sets)
    if not folders:
        print(f"no such sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore", DeprecationWarning)
    model = load_embedding_model("builtin")
    facts = {**machine.describe(), "limits": "chunking alone, the built-in model's tokens"}
    rows: list[Row] = []
    for folder in folders:
        data = datasets.load(folder)
        for system in _systems(model, options):
            rows.append(measure(data, system))
            print(f"{data.name}: {system.name} done", file=sys.stderr, flush=True)
            report.save("chunking", facts, rows, tables(rows))
    print(json.dumps({"run": facts, "rows": rows}, ensure_ascii=False) if options.json else tables(rows))
    return 0


def measure(data: Dataset, system: System) -> Row:
    """Return one row: the set's pages split by one chunker."""
    system.cut({**data.pages[0], "text": data.pages[0]["text"][:500]})  # so that imports are not timed
    system.encoded.clear()
    began = time.perf_counter()
    splits = [system.cut(page) for page in data.pages]
    seconds = time.perf_counter() - began
    pieces = [piece for page in splits for piece in page]
    texts = [piece.text for piece in pieces]
    sizes = [weigh(text) for text in texts]
    inside = sum(ends_inside(page["text"], one) for page, own in zip(data.pages, splits, strict=True) for one in own)
    in_chunks = tokens.count(texts)
    work = tokens.count([piece.embedded for piece in pieces]) + tokens.count(system.encoded)
    encodable = tokens.count(texts, tokens.MAX_TOKENS)
    over = None if system.maximum is None else sum(system.size(text) > system.maximum for text in texts) / len(texts)
    return {
        "set": data.name,
        "system": system.name,
        "chunks": len(pieces),
        "mean": round(sum(sizes) / len(sizes), 1),
        "largest": round(max(sizes), 1),
        "inside": round(inside / len(pieces), 4),
        "over": over,
        "encoded": round(work / tokens.count([page["text"] for page in data.pages]), 3),
        "work": round(work / in_chunks, 3),
        "cut_off": round(1 - encodable / in_chunks, 4),
        "seconds": round(seconds, 3),
    }


def ends_inside(page: str, piece: Piece) -> bool:
    """Return whether a chunk ends inside a sentence, by marks and line ends, not by our sentence splitter."""
    following = page[piece.end : piece.end + 40].lstrip(" \t")[:1]
    return following not in ("", "\n", "\r") and not _ENDS.search(piece.text.rstrip())


def _systems(model: EmbeddingModel, options: argparse.Namespace) -> Iterator[System]:
    for name in options.chunkers:
        yield _own_chunker(name, model)
    if not options.no_peers:
        yield _semantic_chunker(model)
        yield _recursive_splitter()


def _own_chunker(name: str, model: EmbeddingModel) -> System:
    chunker = get_chunker(name)

    def cut(page: dict[str, Any]) -> list[Piece]:
        title = str(page.get("title", ""))
        chunks = chunker.split(page["text"], model.sentence_vectors)
        return [Piece(chunk.text, chunk.end, embedding_text(title, chunk)) for chunk in chunks]

    return System(name, chunker.maximum, cut)


def _semantic_chunker(model: EmbeddingModel) -> System:
    from langchain_core.embeddings import Embeddings
    from langchain_experimental.text_splitter import SemanticChunker

    encoded: list[str] = []

    class Counting(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            encoded.extend(texts)
            vectors: list[list[float]] = model.encode_passages(texts).tolist()
            return vectors

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    splitter = SemanticChunker(Counting())
    return System("*SemanticChunker*", None, lambda page: _locate(page["text"], splitter.split_text), encoded)


def _recursive_splitter() -> System:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter()
    name = "*RecursiveCharacterTextSplitter*"
    maximum = float(splitter._chunk_size)
    return System(name, maximum, lambda page: _locate(page["text"], splitter.split_text), size=len)


def _locate(text: str, split: Callable[[str], Sequence[str]]) -> list[Piece]:
    """Locate the chunks of a LangChain splitter in the page; it may have changed the white space."""
    places = [i for i, sign in enumerate(text) if not sign.isspace()]
    bare = "".join(text[i] for i in places)
    pieces, position = [], 0
    for chunk in split(text):
        if not (letters := "".join(chunk.split())):
            continue
        position = bare.index(letters, position)
        pieces.append(Piece(chunk, places[position + len(letters) - 1] + 1, chunk))
        position += 1
    return pieces


def tables(rows: Sequence[Row]) -> str:
    """Return a Markdown table for each set."""
    parts = []
    for name in dict.fromkeys(row["set"] for row in rows):
        cells = [
            [str(row["system"]), *("–" if row[key] is None else format(row[key], form) for key, _, form in _COLUMNS)]
            for row in rows
            if row["set"] == name
        ]
        parts.append(f"### {name}\n\n" + report.table(["", *(title for _, title, _ in _COLUMNS)], cells))
    return "\n\n".join(parts)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--chunkers", type=_parse, default=list(CHUNKERS), metavar="A,B", help="default: all of ours")
    parser.add_argument("--no-peers", action="store_true", help="skip LangChain's; SemanticChunker is slow")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    return parser.parse_args(arguments)


def _parse(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in CHUNKERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(CHUNKERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
