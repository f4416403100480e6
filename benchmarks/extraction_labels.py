"""Pages with hand-checked main text, and which of their blocks belong to it."""

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
from rag.reading.extraction.features import describe, words_of
from rag.reading.extraction.main_text import extract_with_trafilatura
from rag.reading.extraction.segments import Block, segment
from rag.reading.extraction.structured import Facts, read_facts
from rag.reading.extraction.tree import body_of, parse

SETS = (DEFAULT_FOLDER / "wcxb", DEFAULT_FOLDER / "aeb")
# The pages of this set are news, and it calls them articles; the other set's articles are of all sorts.
_NEWS = "aeb"
_ADDRESSES = (
    "//link[@rel='canonical']/@href | //meta[@property='og:url']/@content | //a[starts-with(@href, 'http')]/@href"
)
Row = dict[str, Any]
_LONG = 5
# How sure a short block is of the text when none, one or both of its sides continue there as on the page.
_BY_SIDES = (0.0, 0.75, 1.0)
_OWN_LINE = 0.4


@dataclass(slots=True)
class Example:
    """The blocks of one page: features (blocks x names), sizes in words, and the share of each that is wanted."""

    row: Row
    features: list[list[float]]
    sizes: list[int]
    wanted: list[float]


def read_truth(folders: Iterable[Path] = SETS) -> list[Row]:
    """The rows of truth.jsonl (id, url, type, text, with, without), each with its folder and its site."""
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


def parsed(page: bytes) -> tuple[Any, Facts]:
    """The body of a page without hidden parts, and what it states of itself."""
    source = decode(page)
    tree = parse(source)
    facts = read_facts(tree)
    make_reader_view(tree, source)
    return body_of(tree), facts


def read_examples(rows: Iterable[Row]) -> Iterator[Example]:
    """Every page that has blocks at all."""
    for row in rows:
        body, facts = parsed(read_page(row))
        if blocks := segment(body):
            features, sizes = describe(blocks, extract_with_trafilatura(body), facts)
            yield Example(row, features, sizes, wanted(blocks, row["text"]))


def _site(row: Row) -> str:
    """The registered domain of a page: of its address, or the first that it states or links to; or its id."""
    from tld import get_fld

    addresses = [row["url"]] if row["url"] else map(str, parse(decode(read_page(row))).xpath(_ADDRESSES))
    domains = (get_fld(address.strip(), fail_silently=True) for address in addresses)
    return next(filter(None, domains), row["id"])


def wanted(blocks: Sequence[Block], text: str) -> list[float]:
    """For each block the share of it that is in `text`, from 0 to 1.

    Long blocks by their runs of four words. A short one may be a menu's entry that the text happens to
    say as well, so its neighbours on the page have to be its neighbours in the text.
    """
    truth = words_of(text)
    known = [set(zip(*(truth[start:] for start in range(count)), strict=False)) for count in range(5)]
    lines = {" ".join(words_of(line)) for line in text.split("\n")}
    words = [words_of(block.text) for block in blocks]
    return [_share(i, words, known, lines) for i in range(len(words))]


def _share(i: int, words: Sequence[list[str]], known: Sequence[set[tuple[str, ...]]], lines: set[str]) -> float:
    own = words[i]
    if not own:
        return 0.0
    if len(own) >= _LONG:
        return sum(gram in known[4] for gram in _grams(own, 4)) / (len(own) - 3)
    if any((word,) not in known[1] for word in own):
        return 0.0
    before = _beside(words, range(i - 1, -1, -1), lambda more, found: more + found)[-2:]
    after = _beside(words, range(i + 1, len(words)), lambda more, found: found + more)[:2]
    sides = sum(_is_in(side, known) for side in ([*before, *own], [*own, *after]))
    return _BY_SIDES[sides] or (_OWN_LINE if " ".join(own) in lines else 0.0)


def _beside(words: Sequence[list[str]], places: range, join: Callable[[list[str], list[str]], list[str]]) -> list[str]:
    found: list[str] = []
    for place in places:
        if len(found) >= 3:
            break
        found = join(words[place], found)
    return found


def _is_in(run: list[str], known: Sequence[set[tuple[str, ...]]]) -> bool:
    size = min(3, len(run))
    return all(gram in known[size] for gram in _grams(run, size))


def _grams(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
