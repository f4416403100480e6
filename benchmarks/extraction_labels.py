"""Pages with hand-checked main text, and the labels of their blocks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import DEFAULT_FOLDER
from rag.reading.charset import decode
from rag.reading.extract import make_reader_view
from rag.reading.extraction.features import build_features, split_words
from rag.reading.extraction.main_text import extract_with_trafilatura
from rag.reading.extraction.metadata import StructuredData, read_structured_data
from rag.reading.extraction.segments import Block, segment
from rag.reading.extraction.tree import body_of, parse

SETS = (DEFAULT_FOLDER / "wcxb", DEFAULT_FOLDER / "aeb")
# All pages of this set are news, labelled "article"; in the other set, articles are of all kinds.
_NEWS = "aeb"
_ADDRESSES = (
    "//link[@rel='canonical']/@href | //meta[@property='og:url']/@content | //a[starts-with(@href, 'http')]/@href"
)
Row = dict[str, Any]
_LONG_BLOCK = 5
# Label of a short block by the number of its sides (0 to 2) on which text and page continue alike.
_LABEL_BY_SIDES = (0.0, 0.75, 1.0)
_LABEL_OF_LINE = 0.4


@dataclass(slots=True)
class Example:
    """The blocks of one page: features (blocks x names), sizes in words, and the wanted share of each."""

    row: Row
    features: list[list[float]]
    sizes: list[int]
    wanted: list[float]


def read_truth(folders: Iterable[Path] = SETS) -> list[Row]:
    """Return the rows of truth.jsonl (id, url, type, text, with, without), each with its folder and its site."""
    rows = []
    for folder in folders:
        with (folder / "truth.jsonl").open(encoding="utf-8") as file:
            rows += [{"url": "", **json.loads(line), "folder": folder} for line in file if line.strip()]
    for row in rows:
        row["site"] = _site(row)
        row["type"] = "news" if row["folder"].name == _NEWS else row["type"]
    return rows


def read_page(row: Row) -> bytes:
    return gzip.decompress((row["folder"] / "html" / f"{row['id']}.html.gz").read_bytes())


def parse_page(page: bytes) -> tuple[Any, StructuredData]:
    """Return the body of a page without hidden parts, and the facts that it states about itself."""
    source = decode(page)
    tree = parse(source)
    structured_data = read_structured_data(tree)
    make_reader_view(tree, source)
    return body_of(tree), structured_data


def read_examples(rows: Iterable[Row]) -> Iterator[Example]:
    """Yield an example for every page with blocks."""
    for row in rows:
        body, structured_data = parse_page(read_page(row))
        if blocks := segment(body):
            features, sizes = build_features(blocks, extract_with_trafilatura(body), structured_data)
            yield Example(row, features, sizes, label_blocks(blocks, row["text"]))


def _site(row: Row) -> str:
    """Return the registered domain of a page: from its address, or the first that it states or links to; or its id."""
    from tld import get_fld

    addresses = [row["url"]] if row["url"] else map(str, parse(decode(read_page(row))).xpath(_ADDRESSES))
    domains = (get_fld(address.strip(), fail_silently=True) for address in addresses)
    return next(filter(None, domains), row["id"])


def label_blocks(blocks: Sequence[Block], text: str) -> list[float]:
    """Return for each block the share of it that is in `text`, from 0 to 1.

    Long blocks count by their runs of four words. A short one may be a menu entry whose words the text happens to
    contain, so its neighbours on the page must be its neighbours in the text.
    """
    truth = split_words(text)
    truth_grams = [set(zip(*(truth[start:] for start in range(count)), strict=False)) for count in range(5)]
    lines = {" ".join(split_words(line)) for line in text.split("\n")}
    words = [split_words(block.text) for block in blocks]
    return [_share(i, words, truth_grams, lines) for i in range(len(words))]


def _share(i: int, words: Sequence[list[str]], truth_grams: Sequence[set[tuple[str, ...]]], lines: set[str]) -> float:
    block_words = words[i]
    if not block_words:
        return 0.0
    if len(block_words) >= _LONG_BLOCK:
        return sum(gram in truth_grams[4] for gram in _grams(block_words, 4)) / (len(block_words) - 3)
    if any((word,) not in truth_grams[1] for word in block_words):
        return 0.0
    before = _nearby(words, range(i - 1, -1, -1), lambda more, found: more + found)[-2:]
    after = _nearby(words, range(i + 1, len(words)), lambda more, found: found + more)[:2]
    sides = sum(_is_in(side, truth_grams) for side in ([*before, *block_words], [*block_words, *after]))
    return _LABEL_BY_SIDES[sides] or (_LABEL_OF_LINE if " ".join(block_words) in lines else 0.0)


def _nearby(words: Sequence[list[str]], places: range, join: Callable[[list[str], list[str]], list[str]]) -> list[str]:
    neighbours: list[str] = []
    for place in places:
        if len(neighbours) >= 3:
            break
        neighbours = join(words[place], neighbours)
    return neighbours


def _is_in(run: list[str], truth_grams: Sequence[set[tuple[str, ...]]]) -> bool:
    size = min(3, len(run))
    return all(gram in truth_grams[size] for gram in _grams(run, size))


def _grams(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
