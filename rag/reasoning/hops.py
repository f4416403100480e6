"""Follow-up searches by rules, without a model.

The next search replaces a description in the question with the most promising new name in the results. Names come from
running sentences about something that the question names, and must be on another page too: elsewhere, headings, buttons
and dates pass for names, and lead nowhere. If one side of a comparison was not found, it is searched for separately.
See docs/decisions/0013-hops-explore-summaries.md.
"""

from __future__ import annotations

import math
import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, pairwise, zip_longest
from typing import Final

from rag.dates import find_moments
from rag.models.embedding import SparseEncoder
from rag.reasoning.extractive import as_prose, weighted_share
from rag.reasoning.questions import split_questions
from rag.retrieval.context import is_touching, merge_passages
from rag.text import is_chinese, lazy_regex, sentence_spans
from rag.types import Notice, Passage

MAX_NEW_STEPS: Final = 2
"""Maximum number of sub-questions that one revision of a plan adds."""
MAX_SCANNED: Final = 4
"""Best passages of a search that are scanned for names."""
FIRST_RESULTS: Final = 1
"""Passages of the first search that stay ahead of all others."""
MAX_LOOKUPS: Final = 6
"""Best names of one revision that are looked up on other pages."""
HOP_GAIN: Final = 2.0
"""Factor for a name found by a hop, relative to names found by the search before it."""

FEATURES: Final = {
    "in_sentence": 6.0,
    "in_passage": 9.5,
    "in_title": 4.0,
    "rare": 1.5,
    "early": 1.9,
    "page": 2.6,
    "long": 0.6,
}
"""Features of useful names and their weights, from a conditional logit on half of the HotpotQA and MuSiQue questions.

The shares of the query's terms in the sentence and in its passage, with their title; the share of the title's terms
in the query; how rare the name is, how early it occurs, whether a passage is about it, how long it is.
"""

_LATIN = r"(?:[^\W_\u3400-\u9fff]|[’'.&])"
_RUN = lazy_regex(rf"《[^《》\n]{{1,40}}》|[“「][^“”「」\n]{{2,40}}[”」]|{_LATIN}++(?:[ -]{_LATIN}++)*+")
_WORD = lazy_regex(r"\w")
_SENTENCE_END = lazy_regex(r"[.!?。！？][\"'’”」』)）\]]*$")
_LATIN_WORD = lazy_regex(r"[^\W\d_\u3400-\u9fff]+")
_SPLIT = lazy_regex("[ -]")
_LOWER = lazy_regex(r"(?<![\w’'])[a-z]\w*+")
_HAN = "\u3400-\u9fff"
_PIECE = lazy_regex(f"[{_HAN}]+|[^\\s{_HAN}]+")
_OPENING = "《“「"
_CALENDAR = frozenset(word.lower() for word in (*day_name, *day_abbr, *month_name, *month_abbr))
_SMALL_WORDS = frozenset("of de la du van von der the &".split())
_NAME_PUNCTUATION = "《》“”「」’'.& -"
_POSSESSIVE = lazy_regex(r"['’]s?$")
_QUALIFIED = lazy_regex(r"(?<!\s)\s*+[(（][^()（）]*+[)）]$")
_JOIN = r"(?:\b(?:and|or|vs|versus|than)\b|[和与與跟及比、]|或)"
_JOINT = lazy_regex(_JOIN, re.IGNORECASE)
_JOINED_BEFORE = lazy_regex(rf"(?:[{_HAN}]|\b[A-Z\d]\S{{0,30}}+\s){_JOIN}.{{0,12}}$")
_JOINED_AFTER = lazy_regex(rf".{{0,12}}?{_JOIN}\W{{0,3}}(?:the )?[A-Z{_HAN}\d]")
_MAX_GAP: Final = 24
"""Maximum characters between two names of a comparison."""


Find = Callable[[str], Sequence[Passage]]
"""A function that returns the passages with a name, found by keywords. May block."""


@dataclass(frozen=True, slots=True)
class FollowUpSearch:
    """A sub-question: the `text` to search for, and why. `question` is its wording for people, by default the text."""

    text: str
    justification: Notice
    question: Notice | None = None


@dataclass(frozen=True, slots=True)
class CandidateName:
    """A new name in a passage (by index), the text to search for with it, and the chance that it is the right one."""

    name: str
    text: str
    chance: float
    passage: int


class RulePlanner:
    """A planner that follows names. `weights` returns the IDF of terms in the library; it may block."""

    def __init__(self, encoder: SparseEncoder, weights: Callable[[Sequence[int]], Mapping[int, float]]) -> None:
        self._terms = encoder.terms
        self._weights = weights

    def plan(self, question: str) -> list[FollowUpSearch]:
        """Return each question of the message. One search finds both sides of most comparisons, read together."""
        questions = split_questions(question)
        reason = Notice("plan_question" if len(questions) == 1 else "plan_part")
        return [FollowUpSearch(text, reason) for text in questions]

    def revise(
        self, question: str, asked: Sequence[str], found: Sequence[Sequence[Passage]], find: Find
    ) -> list[FollowUpSearch]:
        """Return up to MAX_NEW_STEPS sub-questions, most promising first; none if there is nothing new to search.

        `found` are the passages for each text of `asked`, which begins with those of the plan; `find` looks a name up
        in the library. A missing side of a comparison comes before new names. If both sides were found, a new name of
        each is followed once, but only if each page was found as one passage from its beginning: of a longer page, the
        search has read the relevant part.
        """
        titles = {trim_title(passage.title) for passages in found for passage in passages}
        is_whole = asked[:1] == [question]  # else each of its questions was searched for
        sides = _find_sides(question, titles) if is_whole else []
        sources = list(zip(asked, found, strict=True))
        if sides:
            sources[:1] = _split(question, sides, found[0])
            places = [[passage.start for passage in passages] for _, passages in sources[: len(sides)]]
            if len(asked) > len(sides) or any(starts not in ([], [0]) for starts in places):
                return []
        missing = {
            text: side for side in titles if is_whole and not sides and (text := _ask_other_side(question, side))
        }
        hops = self._hops(question, sources, find)
        names = hops | missing
        kinds = {text: "side" if text in missing else "hop" for text in names}
        return [
            FollowUpSearch(text, Notice(f"plan_{kinds[text]}", params), Notice(f"ask_{kinds[text]}", params))
            for text in self._distinct(question, asked, [*missing, *hops])
            if (params := {"name": names[text]})
        ]

    def find_compared(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the titles of these pages that the question compares, in its order."""
        return _find_sides(question, {trim_title(passage.title) for passage in passages})

    def _hops(self, question: str, sources: Sequence[tuple[str, Sequence[Passage]]], find: Find) -> dict[str, str]:
        """Map the search text of each new name that is on another page to the name, best first.

        Chances along a chain are multiplied.
        """
        best: dict[str, float] = {}
        names: dict[str, tuple[str, str]] = {}
        for query, passages in sources:
            for candidate in self.find_candidates(question, query, passages[:MAX_SCANNED]):
                best[candidate.text] = max(
                    best.get(candidate.text, 0.0), candidate.chance * HOP_GAIN * best.get(query, 1.0 / HOP_GAIN)
                )
                names[candidate.text] = candidate.name, passages[candidate.passage].url_hash
        asked = {query for query, _ in sources}
        ranked = [text for text in sorted(best, key=lambda text: -best[text]) if text not in asked]
        return {text: names[text][0] for text in ranked[:MAX_LOOKUPS] if _leads_on(*names[text], find)}

    def _distinct(self, question: str, asked: Sequence[str], texts: Sequence[str]) -> list[str]:
        """Return the first MAX_NEW_STEPS texts whose new terms are neither a subset nor a superset of another's."""
        question_terms = self._terms(question)
        seen = [terms for text in asked if (terms := self._terms(text) - question_terms)]
        selected: list[str] = []
        for text in texts:
            new = self._terms(text) - question_terms
            if (
                len(selected) < MAX_NEW_STEPS
                and text not in asked
                and not (new and any(new <= other or other <= new for other in seen))
            ):
                selected.append(text)
                seen += [new] if new else []
        return selected

    def find_candidates(self, question: str, query: str, passages: Sequence[Passage]) -> list[CandidateName]:
        """Return the names in the passages that are in neither `question` nor `query`, a part of it.

        Chances are a softmax over the names' best occurrences. May block.
        """
        best: dict[str, tuple[float, str, int]] = {}
        occurrences = self._occurrences(
            query, passages, self._terms(f"{question} {query}"), is_made_up=query != question
        )
        for name, features, sentence, place in occurrences:
            score = sum(map(float.__mul__, FEATURES.values(), features))
            best[name] = max(best.get(name, (-math.inf, "", 0)), (score, sentence, place))
        top = max((score for score, _, _ in best.values()), default=0.0)
        odds = {name: math.exp(score - top) for name, (score, _, _) in best.items()}
        total = sum(odds.values())
        return [
            CandidateName(name, f"{name} {self._remaining_query(query, sentence)}".strip(), odds[name] / total, place)
            for name, (_, sentence, place) in best.items()
        ]

    def _remaining_query(self, query: str, sentence: str) -> str:
        """Return the terms of the query without those of a sentence or, in Chinese, the substrings that it has."""
        seen = self._terms(sentence)
        pieces = [_strip(word, sentence) if "\u3400" <= word[0] <= "\u9fff" else word for word in _PIECE.findall(query)]
        return " ".join(piece for piece in pieces if (terms := self._terms(piece)) and not terms <= seen)

    def _occurrences(
        self, query: str, passages: Sequence[Passage], known_terms: frozenset[int], *, is_made_up: bool
    ) -> Iterator[tuple[str, list[float], str, int]]:
        """Yield each occurrence of a new name, with its FEATURES, the sentence under its title, and its passage.

        The sentence is about something that the query names; one that is made up begins with a name.
        """
        query_terms = self._terms(query)
        titles = {trim_title(passage.title): self._terms(trim_title(passage.title)) for passage in passages}
        asked_names = [self._terms(name) for name in self._names(f"· {query}" if is_made_up else query, (), titles)]
        ordinary = frozenset(_LOWER.findall("\n".join(passage.text for passage in passages)))
        parsed = [(passage, *self._parse(passage, ordinary, titles)) for passage in passages]
        terms = {name: self._terms(name) for _, _, sentences in parsed for names, _ in sentences for name in names}
        idf = self._weights(sorted(query_terms.union(*terms.values(), *titles.values())))
        query_idf = {term: idf[term] for term in query_terms}
        max_idf = max(idf.values(), default=1.0) or 1.0
        for place, (passage, heading, sentences) in enumerate(parsed):
            heading_terms = self._terms(heading)
            in_passage = weighted_share(query_idf, self._terms(passage.text) | heading_terms)
            title_idf = {term: idf[term] for term in titles[trim_title(passage.title)]}
            in_title = weighted_share(title_idf, query_terms)
            for number, (names, text) in enumerate(sentences, 1):
                sentence_terms = self._terms(text) | heading_terms
                if not any(len(name & sentence_terms) > len(name) / 2 for name in asked_names):
                    continue
                in_sentence = weighted_share(query_idf, sentence_terms)
                for name in names:
                    if new_terms := terms[name] - known_terms:
                        rare = sum(idf[term] for term in new_terms) / len(new_terms) / max_idf
                        page = float(any(terms[name] <= title for title in titles.values()))
                        features = [in_sentence, in_passage, in_title, rare, 1 / number, page, len(terms[name]) / 3]
                        yield name, features, f"{heading} {text}", place

    def _parse(
        self, passage: Passage, ordinary: Collection[str], titles: Iterable[str]
    ) -> tuple[str, list[tuple[list[str], str]]]:
        """Return the headings above a passage, and its running sentences with the names in each."""
        texts = (as_prose(passage.text[start:end]) for start, end in sentence_spans(passage.text))
        heading = " ".join((passage.title, *passage.section))
        running = [(self._names(text, ordinary, titles), text) for text in texts if _is_running(text)]
        return heading, [
            ([one for one in names if one in titles or not one[0].isdigit()], text) for names, text in running
        ]

    def _names(self, text: str, ordinary: Collection[str] = (), titles: Iterable[str] = ()) -> list[str]:
        """Return the names in `text`: capitalised runs, quoted words, titles of pages; none without search terms.

        A first word is not part of a name if no capitalised word follows, or if it is in `ordinary` (lower-case words).
        Dates and runs of ordinary words are no names.
        """
        runs = [run for match in _RUN.finditer(text) for run in _split_names(match[0])]
        if runs and text.startswith(runs[0]) and (len(words := runs[0].split()) == 1 or words[0].lower() in ordinary):
            runs[0] = " ".join(words[1:])
        runs = [run for run in runs if not _is_ordinary(run, ordinary)]
        names = dict.fromkeys([*runs, *(title for title in titles if title in text)])
        return [name for name in names if len(name) > 1 and self._terms(name)]


def trim_title(title: str) -> str:
    """Return a title without its qualifier in parentheses."""
    return _QUALIFIED.sub("", title) or title


def _is_running(text: str) -> bool:
    """Return whether a text is like a sentence, with an end and words in lower case, unlike headings and buttons."""
    words = _LATIN_WORD.findall(text)
    lower = sum(word[0].islower() for word in words)
    return bool(_SENTENCE_END.search(text.strip())) and (is_chinese(text) or lower >= max(2, len(words) / 3))


def _is_ordinary(run: str, ordinary: Collection[str]) -> bool:
    """Return whether a run is a date, or consists of ordinary words."""
    if any(len(one.phrase) >= len(run) for one in find_moments(run, date.today(), False)):
        return True
    words = _LATIN_WORD.findall(run)
    return bool(words) and all(word.lower() in ordinary or word.lower() in _CALENDAR for word in words)


def _leads_on(name: str, url_hash: str, find: Find) -> bool:
    """Return whether a page other than this one has the name."""
    return any(one.url_hash != url_hash and name in one.text_with_headings for one in find(name))


def _split_names(run: str) -> Iterator[str]:
    """Yield the names in a run of words: capitalised words, with numbers and small words between them."""
    if run[0] in _OPENING:
        yield run.strip(_NAME_PUNCTUATION)
        return
    name: list[str] = []
    for word in (*_SPLIT.split(run), "x"):
        if word[:1].isupper() or word[:1].isdigit() or (name and word in _SMALL_WORDS):
            name.append(word)
            continue
        while name and name[-1] in _SMALL_WORDS:
            name.pop()
        if any(part[0].isupper() for part in name):
            yield _POSSESSIVE.sub("", " ".join(name)).strip(_NAME_PUNCTUATION)
        name = []


def _strip(run: str, sentence: str) -> str:
    """Return a run without its substrings of two or more characters that are also in `sentence`."""
    remaining, start = "", 0
    while start < len(run):
        end = start + 1
        while end <= len(run) and run[start:end] in sentence:
            end += 1
        step = end - 1 - start
        remaining += run[start] if step < 2 else ""
        start += max(1, step if step >= 2 else 1)
    return remaining


def _remove_names(question: str, names: Iterable[str]) -> str:
    """Return the question without the names and the quotation marks around them."""
    for name in sorted(names, key=len, reverse=True):
        own = rf"(?<!\w){re.escape(name)}(?:['’]s?)?(?!\w)" if name.isascii() else re.escape(name)
        question = re.sub(f"[《“「]?{own}[》”」]?", " ", question)
    return " ".join(question.split())


def _find_sides(question: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that the question compares, in its order."""
    places: list[tuple[int, str]] = []
    remaining = question
    for title in sorted(
        {trim_title(title) for title in titles if trim_title(title) in question}, key=len, reverse=True
    ):
        if (at := _find_name(title, remaining)) >= 0:
            places.append((at, title))
            remaining = remaining[:at] + "\0" * len(title) + remaining[at + len(title) :]
    sides: list[str] = []
    for (at, title), (next_at, next_title) in pairwise(sorted(places)):
        between = question[at + len(title) : next_at]
        if len(between) <= _MAX_GAP and _JOINT.search(between):
            sides += [title, next_title]
    return list(dict.fromkeys(sides))


def _split(question: str, sides: Sequence[str], passages: Sequence[Passage]) -> list[tuple[str, Sequence[Passage]]]:
    """Return the question for each side of a comparison, with the passages about that side."""
    return [
        (
            _remove_names(question, [other for other in sides if other != side]),
            [passage for passage in passages if trim_title(passage.title) == side],
        )
        for side in sides
    ]


def _ask_other_side(question: str, side: str) -> str:
    """Return the question without `side` if it compares `side` with something else; else an empty string."""
    at = _find_name(side, question)
    if at < 0 or not (_JOINED_BEFORE.search(question[:at]) or _JOINED_AFTER.match(question[at + len(side) :])):
        return ""
    return _remove_names(question, [side])


def _find_name(title: str, question: str) -> int:
    """Return the index of a title that is a separate name in the question, or -1."""
    if not title.isascii():
        return question.find(title) if len(title) > 1 else -1
    match = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", question) if any(map(str.isupper, title)) else None
    return match.start() if match else -1


def select_fitting(passages: Sequence[Passage], room: int) -> list[Passage]:
    """Return the leading passages that begin within `room` characters in total; always the first one."""
    before = accumulate((len(passage.text) for passage in passages), initial=0)
    return [passage for passage, used in zip(passages, before, strict=False) if used < max(1, room)]


def interleave(searches: Sequence[Sequence[Passage]], keep: int = FIRST_RESULTS) -> list[Passage]:
    """Merge the results of searches: the first `keep` of the first search, then one of each in turn.

    Passages of a page that touch or overlap become one, at the place of the first.
    """
    first, *rest = searches or [[]]
    turns = zip_longest(first[keep:], *rest)
    merged: list[Passage] = []
    for passage in (*first[:keep], *(result for turn in turns for result in turn if result is not None)):
        place = next((i for i, other in enumerate(merged) if is_touching(passage, other)), None)
        if place is None:
            merged.append(passage)
        else:
            merged[place] = merge_passages(merged[place], passage)
    return merged
