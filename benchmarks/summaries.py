"""What of a page its summary without a model tells, of what people asked about the page.

    python -m benchmarks.summaries [SET …] [--data FOLDER] [--limit N]

The app tells each section by its first sentence. Beside that stand a choice of the sentences that together hold most of
the page's words for their length (Lin and Bilmes, “A Class of Submodular Functions for Document Summarization”, ACL
2011), the page's beginning, and sentences at random, all of as many characters. A question's sentences of evidence
that are among those chosen are its score; a figure is the mean over pages of what a choice is ahead of the app's, with
its interval of 95 %, of the pages with even and with odd places: what was tried was looked at on the even ones.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import datasets
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.intervals import told as shown
from rag.evaluation.evidence import squash
from rag.reasoning.summarising import leading, sections_of, select_parts, select_sentences
from rag.text import terms

_STRETCH = 12_000  # characters of a long document that are taken for a page
_DECAY = 0.8  # what a word is worth each time more that it is said
_EVERYTHING = 10_000


@dataclass(frozen=True)
class Sentence:
    text: str
    words: frozenset[str]


@dataclass(frozen=True)
class Read:
    """A page's sentences in order, and the places of those that the app's summary has."""

    sentences: list[Sentence]
    ours: list[int]

    @property
    def room(self) -> int:
        return sum(len(self.sentences[place].text) for place in self.ours)


def read(text: str) -> Read:
    sections = sections_of(text)
    texts = [text[section.start : section.end] for section in sections]
    parts = select_parts(sections)
    quotes = [select_sentences([texts[place] for place in places], len(parts)) for places in parts]
    said = {
        place: len(own)
        for places, part in zip(parts, quotes, strict=True)
        for place, own in zip(places, part, strict=True)
    }
    sentences, ours = list[Sentence](), list[int]()
    for place, own in enumerate(texts):
        found = leading(own, _EVERYTHING)
        ours += range(len(sentences), len(sentences) + said.get(place, 0))
        sentences += [Sentence(one.text, frozenset(word[:5] for word in terms(one.text))) for one in found]
    return Read(sentences, ours)


def _fitting(page: Read, order: Sequence[int]) -> list[int]:
    chosen, room = list[int](), page.room
    for place in order:
        if len(page.sentences[place].text) <= room:
            chosen.append(place)
            room -= len(page.sentences[place].text)
    return chosen


def coverage(page: Read) -> list[int]:
    """Greedy, by what a sentence adds for each of its characters."""
    weight = Counter(word for one in page.sentences for word in one.words)
    said: Counter[str] = Counter()
    order, left = list[int](), list(range(len(page.sentences)))

    def gain(place: int) -> float:
        one = page.sentences[place]
        return sum(weight[word] * _DECAY ** said[word] for word in one.words) / (20 + len(one.text))

    while left and len(order) < 4 * len(page.ours):
        best = max(left, key=gain)
        left.remove(best)
        order.append(best)
        said.update(page.sentences[best].words)
    return _fitting(page, order)


def beginning(page: Read) -> list[int]:
    return _fitting(page, range(len(page.sentences)))


def at_random(page: Read) -> list[int]:
    return _fitting(page, random.Random(0).sample(range(len(page.sentences)), len(page.sentences)))


CHOICES: dict[str, Callable[[Read], list[int]]] = {
    "first of each section": lambda page: page.ours,
    "most words": coverage,
    "beginning": beginning,
    "random": at_random,
}


def texts(data: Dataset) -> Iterator[tuple[str, list[str]]]:
    """Each page, or stretch of a long one, with the evidence that stands in it."""
    for page in data.pages:
        quotes = {e["quote"] for row in data.questions for e in row["evidence"] if e["url"] == page["url"]}
        for at in range(0, len(page["text"]), _STRETCH):
            text = page["text"][at : at + _STRETCH]
            here = [quote for quote in map(squash, sorted(quotes)) if quote in squash(text)]
            if here:
                yield text, here


def score(page: Read, chosen: Sequence[int], evidence: Sequence[str]) -> float:
    """The mean share of the sentences of a piece of evidence that were chosen."""
    squashed = [squash(one.text) for one in page.sentences]
    shares = []
    for quote in evidence:
        holding = [n for n, text in enumerate(squashed) if len(text) > 8 and (text in quote or quote in text)]
        shares.append(len({*holding} & {*chosen}) / len(holding) if holding else 0.0)
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="pages of a set")
    options = parser.parse_args()
    for folder in datasets.find(options.data, options.sets):
        pages = [
            (read(text), quotes) for text, quotes in datasets.spread(list(texts(datasets.load(folder))), options.limit)
        ]
        pages = [(page, quotes) for page, quotes in pages if len(page.sentences) > 3]
        for half, name in ((0, "even"), (1, "odd")):
            rows = {
                choice: [score(one, how(one), quotes) for one, quotes in pages[half::2]]
                for choice, how in CHOICES.items()
            }
            ours = rows.pop("first of each section")
            if not ours:
                continue
            print(f"{folder.name}, {name} pages: {len(ours)}; first of each section {shown(ours)}")
            for choice, own in rows.items():
                print(f"    {choice:12}{shown([a - b for a, b in zip(own, ours, strict=True)], signed=True)}")


if __name__ == "__main__":
    main()
