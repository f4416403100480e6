"""Share of the questions about a page that its summary without a model answers.

    python -m benchmarks.summaries [SET …] [--data FOLDER] [--limit N]

The app summarises each section by its first sentence. Compared with the sentences that together cover most of the
page's words for their length (Lin and Bilmes, “A Class of Submodular Functions for Document Summarization”, ACL 2011),
the page's beginning, and random sentences, all with as many characters. A question's score is the share of its
evidence's sentences that were chosen; a figure is the mean over pages of a choice's lead over the app's, with its 95%
interval, separately for even and odd pages: development used the even ones.
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
from benchmarks.intervals import format_mean
from rag.evaluation.support import normalise_text
from rag.graphs.summary.gathering import leading_sentences, sections_of, select_parts, select_sentences
from rag.text import terms

_STRETCH = 12_000  # characters of a long document that count as a page
_DECAY = 0.8  # worth of each repetition of a word
_EVERYTHING = 10_000


@dataclass(frozen=True)
class Sentence:
    text: str
    words: frozenset[str]


@dataclass(frozen=True)
class PageSentences:
    """A page's sentences in order, and the indices of those in the app's summary."""

    sentences: list[Sentence]
    ours: list[int]

    @property
    def budget(self) -> int:
        return sum(len(self.sentences[place].text) for place in self.ours)


def split_page(text: str) -> PageSentences:
    sections = sections_of(text)
    section_texts = [text[section.start : section.end] for section in sections]
    parts = select_parts(sections)
    quotes = [select_sentences([section_texts[place] for place in places], len(parts)) for places in parts]
    counts = {
        place: len(section_text)
        for places, part in zip(parts, quotes, strict=True)
        for place, section_text in zip(places, part, strict=True)
    }
    sentences, ours = list[Sentence](), list[int]()
    for place, section_text in enumerate(section_texts):
        sentences_here = leading_sentences(section_text, _EVERYTHING)
        ours += range(len(sentences), len(sentences) + counts.get(place, 0))
        sentences += [Sentence(one.text, frozenset(word[:5] for word in terms(one.text))) for one in sentences_here]
    return PageSentences(sentences, ours)


def _fit(page: PageSentences, order: Sequence[int]) -> list[int]:
    places, budget = list[int](), page.budget
    for place in order:
        if len(page.sentences[place].text) <= budget:
            places.append(place)
            budget -= len(page.sentences[place].text)
    return places


def coverage(page: PageSentences) -> list[int]:
    """Choose greedily, by what a sentence adds per character."""
    weight = Counter(word for sentence in page.sentences for word in sentence.words)
    used: Counter[str] = Counter()
    order, remaining = list[int](), list(range(len(page.sentences)))

    def gain(place: int) -> float:
        sentence = page.sentences[place]
        return sum(weight[word] * _DECAY ** used[word] for word in sentence.words) / (20 + len(sentence.text))

    while remaining and len(order) < 4 * len(page.ours):
        best = max(remaining, key=gain)
        remaining.remove(best)
        order.append(best)
        used.update(page.sentences[best].words)
    return _fit(page, order)


def beginning(page: PageSentences) -> list[int]:
    return _fit(page, range(len(page.sentences)))


def at_random(page: PageSentences) -> list[int]:
    return _fit(page, random.Random(0).sample(range(len(page.sentences)), len(page.sentences)))


CHOICES: dict[str, Callable[[PageSentences], list[int]]] = {
    "first of each section": lambda page: page.ours,
    "most words": coverage,
    "beginning": beginning,
    "random": at_random,
}


def pieces(data: Dataset) -> Iterator[tuple[str, list[str]]]:
    """Yield each page, or stretch of a long one, with the evidence in it."""
    for page in data.pages:
        quotes = {e["quote"] for row in data.questions for e in row["evidence"] if e["url"] == page["url"]}
        for at in range(0, len(page["text"]), _STRETCH):
            text = page["text"][at : at + _STRETCH]
            evidence = [quote for quote in map(normalise_text, sorted(quotes)) if quote in normalise_text(text)]
            if evidence:
                yield text, evidence


def score(page: PageSentences, places: Sequence[int], evidence: Sequence[str]) -> float:
    """Return the mean share of the sentences of a piece of evidence that were chosen."""
    squashed = [normalise_text(sentence.text) for sentence in page.sentences]
    shares = []
    for quote in evidence:
        matching = [n for n, text in enumerate(squashed) if len(text) > 8 and (text in quote or quote in text)]
        shares.append(len({*matching} & {*places}) / len(matching) if matching else 0.0)
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="pages per set")
    options = parser.parse_args()
    for folder in datasets.find_folders(options.data, options.sets):
        pages = [
            (split_page(text), quotes)
            for text, quotes in datasets.sample_evenly(list(pieces(datasets.load(folder))), options.limit)
        ]
        pages = [(page, quotes) for page, quotes in pages if len(page.sentences) > 3]
        for half, name in ((0, "even"), (1, "odd")):
            rows = {
                choice: [score(one, choose(one), quotes) for one, quotes in pages[half::2]]
                for choice, choose in CHOICES.items()
            }
            ours = rows.pop("first of each section")
            if not ours:
                continue
            print(f"{folder.name}, {name} pages: {len(ours)}; first of each section {format_mean(ours)}")
            for choice, scores in rows.items():
                print(f"    {choice:12}{format_mean([a - b for a, b in zip(scores, ours, strict=True)], signed=True)}")


if __name__ == "__main__":
    main()
