"""What to search for beside the question, by rules: no model, no I/O.

What was found tells what to look for next: a new name, one that most likely leads on, takes the place of what is said
of it. A question that sets things beside each other is searched for once more where one of them was not found. See
docs/decisions/0013-hops-explore-summaries.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest
from typing import Final, Literal

from rag.models.sparse import SparseEncoder
from rag.retrieval.context import joined, touch
from rag.text import sentence_spans
from rag.types import Notice, Passage

Kind = Literal["question", "comparison", "hop"]

NEXT: Final = 2
"""So many sub-questions a revision has at most."""
READ: Final = 4
"""The passages of a search, best first, in which names are looked for."""
FIRST: Final = 1
"""The passages of the first search that stay before all others."""
DEEPER: Final = 2.0
"""What a name counts that a hop found, beside another that the search which led to the hop found."""

FEATURES: Final = {"said": 6.0, "held": 9.5, "titled": 4.0, "rare": 1.5, "early": 1.9, "page": 2.6, "long": 0.6}
"""What tells that a name leads on, with weights: a conditional logit on half of the questions of HotpotQA and MuSiQue.

The shares of the query's terms that the sentence holds, and its passage, with their title; the share of the title's
terms that the query holds; how rare the name is, how early it stands, whether a passage is about it, how long it is.
"""

_LATIN = r"(?:[^\W_\u3400-\u9fff]|[’'.&])"
_RUN = re.compile(rf"《[^《》\n]{{1,40}}》|[“「][^“”「」\n]{{2,40}}[”」]|{_LATIN}++(?:[ -]{_LATIN}++)*+")
_WORD = re.compile(r"\w")
_SPLIT = re.compile("[ -]")
_LOWER = re.compile(r"(?<![\w’'])[a-z]\w*+")
_HAN = "\u3400-\u9fff"
_PIECE = re.compile(f"[{_HAN}]+|[^\\s{_HAN}]+")
_OPENING = "《“「"
_LITTLE = frozenset("of de la du van von der the &".split())
_AROUND = "《》“”「」’'.& -"
_POSSESSIVE = re.compile(r"['’]s?$")
_QUALIFIED = re.compile(r"(?<!\s)\s*+[(（][^()（）]*+[)）]$")
_JOIN = r"(?:\b(?:and|or|vs|versus|than)\b|[和与與跟及比、]|或)"
_JOINT = re.compile(_JOIN, re.IGNORECASE)
_JOINED_BEFORE = re.compile(rf"(?:[{_HAN}]|\b[A-Z\d]\S{{0,30}}+\s){_JOIN}.{{0,12}}$")
_JOINED_AFTER = re.compile(rf".{{0,12}}?{_JOIN}\W{{0,3}}(?:the )?[A-Z{_HAN}\d]")
_APART: Final = 24
"""Characters that stand at most between two names that are set beside each other."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A sub-question: `text` is what is searched for, `justification` says why."""

    text: str
    justification: Notice
    kind: Kind


@dataclass(frozen=True, slots=True)
class Lead:
    """A new name in a passage (by its place), what to ask for with it, and how likely it is the one that leads on."""

    name: str
    text: str
    chance: float
    passage: int


class RulePlanner:
    """Plans by names. `weights` gives the IDF of terms in the library; it may block."""

    def __init__(self, encoder: SparseEncoder, weights: Callable[[Sequence[int]], Mapping[int, float]]) -> None:
        self._terms = encoder.terms
        self._weights = weights

    def plan(self, question: str) -> list[Planned]:
        """The question as it stands. One search finds both sides of most comparisons, and reads them best at once."""
        return [Planned(question, Notice("plan_question"), "question")]

    def revise(self, question: str, asked: Sequence[str], found: Sequence[Sequence[Passage]]) -> list[Planned]:
        """At most NEXT sub-questions, the most promising first; none where nothing new is to be looked for.

        `found` are the passages of what was `asked`, the question among it. A side of a comparison that was not
        found comes before new names. Where both were found, a new name of each is followed once, if their pages were
        found from the beginning and in one place: of a longer page, the one search read what bears on the question.
        """
        titles = {bare(passage.title) for passages in found for passage in passages}
        sides = _compared(question, titles)
        sources = list(zip(asked, found, strict=True))
        if sides:
            sources[:1] = _by_side(question, sides, found[0])
            places = [[passage.start for passage in passages] for _, passages in sources[: len(sides)]]
            if len(asked) > len(sides) or any(starts not in ([], [0]) for starts in places):
                return []
        lost = {text: side for side in titles if not sides and (text := _other_side(question, side))}
        hops = self._hops(question, sources)
        texts = self._distinct(question, asked, [*lost, *hops])
        return [
            Planned(text, Notice("plan_side", {"name": lost[text]}), "comparison")
            if text in lost
            else Planned(text, Notice("plan_hop", {"name": hops[text]}), "hop")
            for text in texts
        ]

    def sides(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """The titles of pages among these that the question sets beside each other, in their order there."""
        return _compared(question, {bare(passage.title) for passage in passages})

    def _hops(self, question: str, sources: Sequence[tuple[str, Sequence[Passage]]]) -> dict[str, str]:
        """What to ask for each new name, with it, the most promising first; in a chain the chances of its links."""
        worth: dict[str, float] = {}
        names: dict[str, str] = {}
        for query, passages in sources:
            for lead in self.leads(question, query, passages[:READ]):
                worth[lead.text] = max(worth.get(lead.text, 0.0), lead.chance * DEEPER * worth.get(query, 1.0 / DEEPER))
                names[lead.text] = lead.name
        return {text: names[text] for text in sorted(worth, key=lambda text: -worth[text])}

    def _distinct(self, question: str, asked: Sequence[str], texts: Sequence[str]) -> list[str]:
        """The first NEXT texts whose new terms neither hold those of another nor are held by them."""
        own = self._terms(question)
        known = [terms for text in asked if (terms := self._terms(text) - own)]
        kept: list[str] = []
        for text in texts:
            new = self._terms(text) - own
            if len(kept) < NEXT and text not in asked and not (new and any(new <= one or one <= new for one in known)):
                kept.append(text)
                known += [new] if new else []
        return kept

    def leads(self, question: str, query: str, passages: Sequence[Passage]) -> list[Lead]:
        """Each name in the passages that neither `question` nor `query`, a part of it, holds.

        Their chances are a softmax over the names, each by the place that tells most for it. May block.
        """
        best: dict[str, tuple[float, str, int]] = {}
        for name, features, sentence, place in self._places(query, passages, self._terms(f"{question} {query}")):
            score = sum(map(float.__mul__, FEATURES.values(), features))
            best[name] = max(best.get(name, (-math.inf, "", 0)), (score, sentence, place))
        top = max((score for score, _, _ in best.values()), default=0.0)
        odds = {name: math.exp(score - top) for name, (score, _, _) in best.items()}
        total = sum(odds.values())
        return [
            Lead(name, f"{name} {self._left(query, sentence)}".strip(), odds[name] / total, place)
            for name, (_, sentence, place) in best.items()
        ]

    def _left(self, query: str, said: str) -> str:
        """The query without the words that `said` holds; of Chinese, without the runs of characters that it holds."""
        held = self._terms(said)
        pieces = [_unsaid(word, said) if "\u3400" <= word[0] <= "\u9fff" else word for word in _PIECE.findall(query)]
        return " ".join(
            piece for piece in pieces if _WORD.search(piece) and not ((terms := self._terms(piece)) and terms <= held)
        )

    def _places(
        self, query: str, passages: Sequence[Passage], known: frozenset[int]
    ) -> Iterator[tuple[str, list[float], str, int]]:
        """Each place of a new name, the FEATURES that it has there, the sentence under its title, its passage."""
        asked = self._terms(query)
        titles = {bare(passage.title): self._terms(bare(passage.title)) for passage in passages}
        read = [(passage, *self._read(passage, titles)) for passage in passages]
        new = {name: self._terms(name) for _, _, sentences in read for names, _ in sentences for name in names}
        idf = self._weights(sorted(asked.union(*new.values(), *titles.values())))
        most = max(idf.values(), default=1.0) or 1.0
        for place, (passage, above, sentences) in enumerate(read):
            up = self._terms(above)
            held = _share(idf, asked, self._terms(passage.text) | up)
            titled = _share(idf, titles[bare(passage.title)], asked)
            for number, (names, text) in enumerate(sentences, 1):
                said = _share(idf, asked, self._terms(text) | up)
                for name in names:
                    if own := new[name] - known:
                        rare = sum(idf[term] for term in own) / len(own) / most
                        page = float(any(new[name] <= title for title in titles.values()))
                        features = [said, held, titled, rare, 1 / number, page, len(new[name]) / 3]
                        yield name, features, f"{above} {text}", place

    def _read(self, passage: Passage, titles: Iterable[str]) -> tuple[str, list[tuple[list[str], str]]]:
        """What stands above a passage, and its sentences, each with what it names."""
        ordinary = frozenset(_LOWER.findall(passage.text))
        texts = [passage.text[start:end] for start, end in sentence_spans(passage.text)]
        above = " ".join((passage.title, *passage.section))
        return above, [(self._names(text, ordinary, titles), text) for text in texts]

    def _names(self, text: str, ordinary: Collection[str] = (), titles: Iterable[str] = ()) -> list[str]:
        """What `text` names: runs of capitals, what stands in quotes, titles of pages; none of words that ask nothing.

        A word in `ordinary`, which stands in lower case elsewhere, begins a sentence and no name.
        """
        runs = [run for found in _RUN.finditer(text) for run in _capitals(found[0])]
        if runs and text.startswith(runs[0]) and (len(words := runs[0].split()) == 1 or words[0].lower() in ordinary):
            runs[0] = " ".join(words[1:])
        found = dict.fromkeys([*runs, *(title for title in titles if title in text)])
        return [name for name in found if len(name) > 1 and self._terms(name)]


def bare(title: str) -> str:
    """A title without what it is qualified by in parentheses."""
    return _QUALIFIED.sub("", title) or title


def _capitals(run: str) -> Iterator[str]:
    """The names in a run of words: words that begin with capitals, with numbers and little words between them."""
    if run[0] in _OPENING:
        yield run.strip(_AROUND)
        return
    name: list[str] = []
    for word in (*_SPLIT.split(run), "x"):
        if word[:1].isupper() or word[:1].isdigit() or (name and word in _LITTLE):
            name.append(word)
            continue
        while name and name[-1] in _LITTLE:
            name.pop()
        if any(part[0].isupper() for part in name):
            yield _POSSESSIVE.sub("", " ".join(name)).strip(_AROUND)
        name = []


def _share(idf: Mapping[int, float], asked: frozenset[int], held: frozenset[int]) -> float:
    """The share of what is asked for, by IDF, that is held."""
    total = sum(idf[term] for term in asked)
    return sum(idf[term] for term in asked & held) / total if total else 0.0


def _unsaid(run: str, said: str) -> str:
    """The characters of a run that stand in no piece of two or more which `said` holds too."""
    kept, at = "", 0
    while at < len(run):
        end = at + 1
        while end <= len(run) and run[at:end] in said:
            end += 1
        step = end - 1 - at
        kept += run[at] if step < 2 else ""
        at += max(1, step if step >= 2 else 1)
    return kept


def _without(question: str, names: Iterable[str]) -> str:
    """The question less the names, with the marks around them."""
    for name in sorted(names, key=len, reverse=True):
        own = rf"(?<!\w){re.escape(name)}(?:['’]s?)?(?!\w)" if name.isascii() else re.escape(name)
        question = re.sub(f"[《“「]?{own}[》”」]?", " ", question)
    return " ".join(question.split())


def _compared(question: str, titles: Iterable[str]) -> list[str]:
    """The pages' titles that the question sets beside each other, in their order there."""
    places: list[tuple[int, str]] = []
    left = question
    for title in sorted({bare(title) for title in titles if bare(title) in question}, key=len, reverse=True):
        if (at := _stands(title, left)) >= 0:
            places.append((at, title))
            left = left[:at] + "\0" * len(title) + left[at + len(title) :]
    sides: list[str] = []
    for (at, title), (then, other) in pairwise(sorted(places)):
        between = question[at + len(title) : then]
        if len(between) <= _APART and _JOINT.search(between):
            sides += [title, other]
    return list(dict.fromkeys(sides))


def _by_side(question: str, sides: Sequence[str], passages: Sequence[Passage]) -> list[tuple[str, Sequence[Passage]]]:
    """What is asked of each side, with what was found of it."""
    return [
        (
            _without(question, [other for other in sides if other != side]),
            [passage for passage in passages if bare(passage.title) == side],
        )
        for side in sides
    ]


def _other_side(question: str, side: str) -> str:
    """What is left to ask where `side` is set beside something else: the question without it; else nothing."""
    at = _stands(side, question)
    if at < 0 or not (_JOINED_BEFORE.search(question[:at]) or _JOINED_AFTER.match(question[at + len(side) :])):
        return ""
    return _without(question, [side])


def _stands(title: str, question: str) -> int:
    """Where a title stands in the question as a name of its own, -1 where it does not."""
    if not title.isascii():
        return question.find(title) if len(title) > 1 else -1
    found = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", question) if any(map(str.isupper, title)) else None
    return found.start() if found else -1


def fitting(passages: Sequence[Passage], room: int) -> list[Passage]:
    """The first passages, as long as fewer characters than `room` stand before them; the first in any case."""
    before = accumulate((len(one.text) for one in passages), initial=0)
    return [one for one, used in zip(passages, before, strict=False) if used < max(1, room)]


def in_turns(searches: Sequence[Sequence[Passage]], keep: int = FIRST) -> list[Passage]:
    """What the searches found as one list: the first `keep` of the first search, then one of each in turn.

    What touches or overlaps in a page becomes one passage, at the place of what came first.
    """
    first, *others = searches or [[]]
    turns = zip_longest(first[keep:], *others)
    ledger: list[Passage] = []
    for passage in (*first[:keep], *(one for turn in turns for one in turn if one is not None)):
        place = next((i for i, other in enumerate(ledger) if touch(passage, other)), None)
        if place is None:
            ledger.append(passage)
        else:
            ledger[place] = joined(ledger[place], passage)
    return ledger
