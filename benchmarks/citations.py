"""How well statements are told apart: said in other words, of another passage, made false.

    python -m benchmarks.citations [SET …] [--data FOLDER] [--count 200] [--questions 300] [--seed 1] [--show]

For each set: (a) answers of the extractive reasoner: statements supported, and quotes that stand in the
page to the letter; (b) gold sentences reworded by rules: share supported by their paragraph; (c) gold
sentences of another paragraph of the page, and of another page: share supported; (d) gold sentences with a
number, a denial or a name changed: share supported; (e) answers of six reworded sentences: milliseconds of the
processor that a check takes. Whoever checks it with rules of their own replaces
`benchmarks.rewording`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, find, load
from benchmarks.rewording import falsify, reword
from rag.agent.citing.citations import check
from rag.types import Passage, Statement

_PASSAGES, _SENTENCES, _MARKED = 10, 6, 0.8


@dataclass(frozen=True)
class Gold:
    """A sentence that holds an answer, and the paragraph that it stands in."""

    url: str
    sentence: str
    answer: str
    place: int
    passage: Passage


def golds(data: Dataset, chance: random.Random) -> list[Gold]:
    """Every gold sentence of the set, once, in random order."""
    paragraphs = {page["url"]: list(_paragraphs(page)) for page in data.pages}
    found: dict[str, Gold] = {}
    for question in data.questions:
        for evidence in question["evidence"]:
            for place, passage in enumerate(paragraphs.get(evidence["url"], [])):
                if evidence["quote"] in passage.text:
                    gold = Gold(evidence["url"], evidence["quote"], question["answers"][0], place, passage)
                    found.setdefault(evidence["quote"], gold)
    shuffled = list(found.values())
    chance.shuffle(shuffled)
    return shuffled


def _paragraphs(page: dict[str, Any]) -> Iterator[Passage]:
    at = 0
    for place, text in enumerate(page["text"].split("\n\n")):
        yield Passage(
            id=f"{page['url']}#{place}", url=page["url"], url_hash=page["url"], title=page["title"], site="",
            language=page["lang"], section=(), text=text, start=at, end=at + len(text),
        )  # fmt: skip
        at += len(text) + 2


def verdict(statement: str, passage: Passage) -> Statement | None:
    """What becomes of `statement` when it cites `passage`."""
    checked = check(f"{statement} [1]", [passage])
    order = {"unsupported": 0, "partly": 1, "supported": 2}
    return min(checked.statements, key=lambda one: order[one.verdict], default=None)


class Tally:
    """Shares by kind, and the cases that were expected otherwise."""

    def __init__(self, expected: str) -> None:
        self.counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.misses: list[str] = []
        self._expected = expected

    def add(self, kind: str, statement: str, passage: Passage) -> None:
        found = verdict(statement, passage)
        supported = found is not None and found.verdict == "supported"
        for name in (kind, "all"):
            self.counts[name][0] += supported
            self.counts[name][1] += 1
        if supported != (self._expected == "supported"):
            self.misses.append(f"{kind} {found.reason if found else '-'} | {statement} | {passage.text[:4000]}")

    def lines(self) -> list[str]:
        return [f"{name} {a}/{b} = {a / max(1, b):.3f}" for name, (a, b) in sorted(self.counts.items())]


def reworded(all_golds: Sequence[Gold], language: str, count: int, chance: random.Random) -> Tally:
    tally = Tally("supported")
    for gold in all_golds:
        statement = reword(gold.sentence, language, chance)
        if statement != gold.sentence and tally.counts["all"][1] < count:
            tally.add("reworded", statement, gold.passage)
    return tally


def elsewhere(all_golds: Sequence[Gold], count: int, chance: random.Random) -> Tally:
    tally = Tally("unsupported")
    for gold in all_golds:
        for kind, same in (("same page", True), ("other page", False)):
            others = [o for o in all_golds if (o.url == gold.url) == same and gold.sentence not in o.passage.text]
            if others and tally.counts[kind][1] < count:
                tally.add(kind, gold.sentence, chance.choice(others).passage)
    return tally


def falsified(all_golds: Sequence[Gold], language: str, count: int, chance: random.Random) -> Tally:
    tally = Tally("unsupported")
    by_page: dict[str, list[str]] = defaultdict(list)
    for gold in all_golds:
        by_page[gold.url].append(gold.answer)
    every = [gold.answer for gold in all_golds if _is_name(gold.answer, language)]
    for gold in all_golds:
        pool = [gold.answer, *(by_page[gold.url] if chance.random() < 0.5 else every)]
        names = [name for name in pool if _is_name(name, language)] if _is_name(gold.answer, language) else []
        for kind, statement in falsify(gold.sentence, language, chance, names):
            if tally.counts[kind][1] < count:
                tally.add(kind, statement, gold.passage)
    return tally


def _is_name(text: str, language: str) -> bool:
    if any(sign.isdigit() for sign in text):
        return False
    if language == "zh":
        return 2 <= len(text) <= 8 and not set(text) & set("的了是在不和与")
    words = text.split()
    return 0 < len(words) <= 4 and all(word[:1].isupper() for word in words)


def extractive(data: Dataset, limit: int) -> str:
    """Answers of the extractive reasoner over the nearest paragraphs by keywords."""
    from rag.agent.extractive import ExtractiveReasoner
    from rag.models.sparse import SparseEncoder

    encoder = SparseEncoder()
    reasoner = ExtractiveReasoner(encoder, lambda terms: dict.fromkeys(terms, 1.0))
    paragraphs = [passage for page in data.pages for passage in _paragraphs(page)]
    held = [frozenset(encoder.encode_query(passage.text).indices) for passage in paragraphs]
    texts = {page["url"]: page["text"] for page in data.pages}
    statements = supported = quotes = exact = answered = 0
    for question in data.questions[:limit]:
        asked = frozenset(encoder.encode_query(question["question"]).indices)
        order = sorted(range(len(paragraphs)), key=lambda i: -len(asked & held[i]))[:8]
        passages = [paragraphs[i] for i in order]
        checked = check(asyncio.run(_written(reasoner, question["question"], passages)), passages)
        answered += bool(checked.statements)
        statements += len(checked.statements)
        supported += sum(one.verdict == "supported" for one in checked.statements)
        quotes += len(checked.citations)
        exact += sum(texts[c.url_hash][c.start : c.end] == c.quote for c in checked.citations)
    return f"answered {answered}, supported {supported}/{statements}, exact quotes {exact}/{quotes}"


def speed(all_golds: Sequence[Gold], language: str, chance: random.Random) -> str:
    """The check of answers made of reworded sentences of one page, most with their mark, over its paragraphs."""
    by_page: dict[str, list[Gold]] = defaultdict(list)
    for gold in all_golds:
        by_page[gold.url].append(gold)
    spent, lengths = [], []
    for page in by_page.values():
        passages = list({gold.passage.id: gold.passage for gold in page}.values())[:_PASSAGES]
        stated = [gold for gold in page if gold.passage in passages][:_SENTENCES]
        marks = [f" [{passages.index(gold.passage) + 1}]" if chance.random() < _MARKED else "" for gold in stated]
        pairs = zip(stated, marks, strict=True)
        answer = " ".join(reword(gold.sentence, language, chance) + mark for gold, mark in pairs)
        began = time.thread_time()
        check(answer, passages)
        spent.append(1000 * (time.thread_time() - began))
        lengths.append(len(answer))
    return f"median {statistics.median(spent):.1f} ms, {statistics.median(lengths):.0f} characters"


async def _written(reasoner: Any, question: str, passages: Sequence[Passage]) -> str:
    return "".join([piece async for piece in reasoner.answer(question, passages)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["xquad-en", "xquad-zh"])
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="how many cases of each kind that went wrong to print")
    options = parser.parse_args()
    for folder in find(options.data, options.sets):
        data = load(folder)
        language = "zh" if data.name.endswith("zh") else "en"
        chance = random.Random(options.seed)
        all_golds = golds(data, chance)
        print(f"\n{data.name}")
        if options.questions:
            print("  extractive:", extractive(data, options.questions))
        print("  a check:", speed(all_golds, language, random.Random(options.seed)))
        for name, tally in (
            ("reworded", reworded(all_golds, language, options.count, chance)),
            ("elsewhere", elsewhere(all_golds, options.count, chance)),
            ("falsified", falsified(all_golds, language, options.count, chance)),
        ):
            print(f"  {name}:", "; ".join(tally.lines()))
            for miss in tally.misses[: options.show]:
                print("     ", miss)


if __name__ == "__main__":
    main()
