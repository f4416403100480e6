"""Assembly of an answer's context from selected candidates, and the probability that it answers the question.

Chunks are searched; the text to show is selected separately: the runs of sentences that together cover most of the
question for their length. The value of a set of sentences has diminishing returns in each term of the question, so a
greedy selection by gain per cost is near the optimum (Lin and Bilmes, "A Class of Submodular Functions for Document
Summarization", ACL 2011). Each passage provides one run of sentences or none. The constants were tuned on half of the
questions of nine sets. A small chunk is replaced by the section around it, which the `parent` chunker records.

A question names pages and asks something about them. Names match whenever the page exists, so what counts most for the
probability is whether the rest of the question occurs in one place on each named page. A logistic regression combines
the features; its weights in `calibration.json` come from `python -m benchmarks.calibrate`. See
docs/decisions/0005-context-and-refusals.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import SentenceIndex, SparseEncoder, index_sentences, unpack_sentences
from rag.retrieval.page_names import Terms, find_named, select_named
from rag.store.values import Hit
from rag.text import detect_language, is_chinese, question_language, terms, white_space_before
from rag.types import Fate, Passage

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

REFUSAL_THRESHOLD: Final = 0.25
"""Below this, the library counts as having no answer: calibrated to affect few answerable questions."""
CAVEAT_THRESHOLD: Final = 0.4
"""Below this, an answer gets a caveat."""
SURE_THRESHOLD: Final = 0.9
"""From this value, the search overrules a small model that finds no answer, and passages are not graded."""
UNDECIDED: Final = 0.5
MIN_ANSWERED: Final = 0.36
"""Minimum probability from the reader at which quotes count as an answer: docs/decisions/0012-quoted-answers.md."""

IMPROBABLE: Final = 0.1
"""Below this combined probability, nothing is quoted: docs/decisions/0012-quoted-answers.md."""

KEYWORD_FEATURES: Final = ("asked", "covered")
FEATURES: Final = (*KEYWORD_FEATURES, "dense")
PageTerms = tuple[Terms, list[Terms]]
"""The question's terms in a page's title, and in each pair of neighbouring sentences with their headings."""


def combine_odds(read: float, likely: float) -> float:
    """Return the probability that the pages answer, from those of the reader (`read`) and the search (`likely`).

    Their odds are multiplied, as for independent evidence.
    """
    both, neither = read * likely, (1.0 - read) * (1.0 - likely)
    return both / (both + neither) if both + neither else UNDECIDED


def probability(features: Mapping[str, float], model: str, dense_voted: bool, *, across: bool = False) -> float:
    """Return the probability that the library has the answer, 0 to 1.

    `model` is the embedding model's name. Cosines of different models are not comparable: a model without calibration
    never causes a refusal if it found something. `across`: question and pages are in different languages and share no
    words, so only the vectors count.
    """
    calibrations = _read_calibrations()
    if across and dense_voted and f"{model} across" in calibrations:
        return _logistic(features, calibrations[f"{model} across"])
    if dense_voted and model in calibrations:
        return _logistic(features, calibrations[model])
    by_keyword = _logistic(features, calibrations["keyword"])
    return max(by_keyword, UNDECIDED) if dense_voted and features["dense"] > 0 else by_keyword


def features_of(idf: Mapping[int, float], passages: Sequence[Passage], sparse: SparseEncoder) -> dict[str, float]:
    """Return the features for `probability`, 0 to 1, of the pages that the question names, else of the best one.

    asked    the share of the terms outside their titles, by IDF, in one window of a page; the mean over pages
    covered  the share of the whole question in the best windows, one of each page, combined
    dense    the best cosine
    """
    mass = sum(idf.values())
    if not passages or mass <= 0.0:
        return dict.fromkeys(FEATURES, 0.0)

    def weigh(terms: Terms) -> float:
        return sum(idf[term] for term in terms) / mass

    def gain(window: Terms) -> float:
        return weigh(window & uncovered)

    pages = _pages(frozenset(idf), passages, sparse)
    scores = [max(map(weigh, windows)) for _, windows in pages]
    places = select_named([title for title, _ in pages], weigh, scores)
    named_pages = [pages[place] for place in places or [scores.index(max(scores))]]
    uncovered: Terms = frozenset(idf)
    asked = uncovered.difference(*(title for title, _ in named_pages))
    shares = []
    for _, windows in named_pages:
        shares.append(max(weigh(window & asked) for window in windows) / weigh(asked) if weigh(asked) else 1.0)
        best = max(windows, key=gain)
        uncovered -= best
    dense = max(passage.scores.get("dense", 0.0) for passage in passages)
    return {"asked": sum(shares) / len(shares), "covered": 1.0 - weigh(uncovered), "dense": dense}


def _pages(query_terms: Terms, passages: Sequence[Passage], sparse: SparseEncoder) -> list[PageTerms]:
    by_page: dict[str, list[Passage]] = {}
    for passage in passages:
        by_page.setdefault(passage.url_hash, []).append(passage)
    pages = []
    for group in by_page.values():
        windows = [window & query_terms for passage in group for window in _windows(passage, sparse)]
        pages.append((sparse.terms(group[0].title) & query_terms, windows))
    return pages


def is_across(question: str, passages: Sequence[Passage]) -> bool:
    """True if the best passage is in another language than the question."""
    best = max(passages, key=lambda passage: passage.score, default=None)
    return best is not None and detect_language(best.text) not in ("", question_language(question))


def estimate_answerable(
    passages: Sequence[Passage],
    question: str,
    sparse: SparseEncoder,
    idf_of: Callable[[Sequence[int]], Mapping[int, float]],
) -> float:
    """Return the probability that `passages` answer a question that they were not retrieved for, by keywords alone.

    UNDECIDED if none of them is in the question's language.
    """
    language = question_language(question)
    if passages and all(detect_language(passage.text) != language for passage in passages):
        return UNDECIDED
    idf = idf_of(sorted(sparse.encode_query(question).indices))
    return probability(features_of(idf, passages, sparse), "", dense_voted=False)


def _windows(passage: Passage, sparse: SparseEncoder) -> list[Terms]:
    above = sparse.terms(" ".join((passage.title, *passage.section)))
    sentences = sparse.sentence_terms(passage.text) or (above,)
    return [above | sentence | (sentences[i - 1] if i else above) for i, sentence in enumerate(sentences)]


def _logistic(features: Mapping[str, float], calibration: Mapping[str, float]) -> float:
    total = calibration["bias"] + sum(w * features[name] for name, w in calibration.items() if name != "bias")
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


@cache
def _read_calibrations() -> dict[str, dict[str, float]]:
    path = Path(__file__).with_name("calibration.json")
    calibrations: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return calibrations


MIN_OVERLAP = 0.9
"""Share of common terms from which two texts count as the same."""
BUDGET = 4000
"""Characters that the selected runs fill together, if the passages have enough."""
DECAY = 0.94
"""Factor on a term's value for each repetition."""
NEIGHBOUR_WEIGHT = 0.6
"""Weight of a term in the sentence next to the one that has it; a term in the headings counts fully."""
PRIOR = 0.25
"""Value of a sentence of the best passage with none of the question's terms, compared with 1 for all of them: questions
may use other words than the page, and a passage found by meaning should still be used."""
SCORE_POWER = 1.5
"""Exponent of a passage's score, relative to the best, as a weight of its sentences."""
FUSED_POWER = 3.0
"""The same for fused scores of both legs, which are closer together: no cosine is far from the best."""
UNNAMED_WEIGHT = 0.6
"""Weight of a passage that is from none of the pages that the question names."""
COST_POWER = 0.6
"""A run's cost is its characters to this power (r of Lin and Bilmes); a new run costs RUN_COST characters more."""
RUN_COST = 300
SHORT = 200
"""A passage of up to this many characters, Chinese ones counting twice, is read in full or not at all."""
_Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Context:
    """`passages` in order. `fates` has the reason for each one dropped, by id, and `into` the passage that replaces it.

    The text of a passage is a run of sentences of the candidate with its id. One merged from neighbours has the id of
    the part that was selected first.
    """

    passages: tuple[Passage, ...]
    fates: dict[str, Fate] = field(default_factory=dict)
    into: dict[str, str] = field(default_factory=dict)


def assemble(
    chosen: Sequence[Passage],
    query_weights: Mapping[int, float],
    sparse: SparseEncoder,
    k: int,
    budget: int = BUDGET,
    stored: Mapping[str, str] = MappingProxyType({}),
) -> Context:
    """Assemble the context from passages in order of selection, for the question's terms, `query_weights`.

    Returns up to k passages, which fill `budget` characters if there is enough text: see `choose_spans`.
    """
    fates: dict[str, Fate] = {}
    into: dict[str, str] = {}
    duplicates = _find_duplicates(chosen)
    for later, first in duplicates.items():
        fates[chosen[later].id], into[chosen[later].id] = "same_text", chosen[first].id
    distinct = [passage for number, passage in enumerate(chosen) if number not in duplicates]
    selected: list[Passage] = []
    for number, bounds in choose_spans(distinct, query_weights, sparse, k, budget, stored):
        span = _slice(distinct[number], bounds)
        place = next((i for i, other in enumerate(selected) if is_touching(span, other)), None)
        if place is None:
            selected.append(span)
        else:
            fates[span.id], into[span.id] = "merged", selected[place].id
            selected[place] = merge_passages(selected[place], span)
    seen = {passage.id for passage in selected} | fates.keys()
    fates.update((passage.id, "says_less") for passage in distinct if passage.id not in seen)
    return Context(tuple(selected), fates, into)


def _find_duplicates(passages: Sequence[Passage]) -> dict[int, int]:
    """Map the index of each passage that repeats an earlier one to the index of the earlier one.

    Only sets that share one of their first words, in any fixed order, can overlap that much: the prefix filter of
    Chaudhuri, Ganti and Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006.
    """
    duplicates: dict[int, int] = {}
    by_word: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        words, first_words = _words(passage.text)
        earlier = sorted({other for word in first_words for other in by_word.get(word, ())})
        first = next((other for other in earlier if _is_same(passage.text, words, passages[other].text)), None)
        if first is not None:
            duplicates[number] = first
            continue
        for word in first_words:
            by_word.setdefault(word, []).append(number)
    return duplicates


def _is_same(text: str, words: frozenset[str], other: str) -> bool:
    other_words, _ = _words(other)
    common = len(words & other_words)
    if common < MIN_OVERLAP * (len(words) + len(other_words) - common):
        return False
    # Two rows of figures may share nearly all words and differ only in the relevant number.
    return re.findall(r"\d+", text) == re.findall(r"\d+", other)


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[frozenset[str], list[str]]:
    """Return the words of a text and the longest (rarest) of them; cached, since passages recur in later searches."""
    words = frozenset(terms(text))
    return words, sorted(sorted(words), key=len, reverse=True)[: len(words) - ceil(MIN_OVERLAP * len(words)) + 1]


def _slice(passage: Passage, bounds: _Bounds) -> Passage:
    start, end = bounds
    before = passage.text[:start]
    lead = before[len(before.rstrip()) :] if start else passage.lead
    text = passage.text[start:end]
    header = "" if start else passage.header
    return replace(passage, text=text, start=passage.start + start, end=passage.start + end, lead=lead, header=header)


def is_overlapping(passage: Passage, url_hash: str, start: int, end: int) -> bool:
    """True if the passage overlaps characters `start` to `end` of a page."""
    return passage.url_hash == url_hash and passage.start < end and start < passage.end


def is_touching(one: Passage, other: Passage) -> bool:
    """True if there is at most white space between two passages of a page."""
    if one.url_hash != other.url_hash:
        return False
    first, second = (one, other) if one.start < other.start else (other, one)
    return first.end + len(second.lead) >= second.start


def merge_passages(better: Passage, other: Passage) -> Passage:
    """Merge two passages with only white space between them; the result has the id of `better`."""
    first, second = (better, other) if better.start < other.start else (other, better)
    section = tuple(a for a, b in zip(first.section, second.section, strict=False) if a == b)
    gap = second.start - first.end
    return replace(
        better,
        text=first.text + (second.lead[-gap:] + second.text if gap > 0 else second.text[-gap:]),
        start=first.start,
        end=max(first.end, second.end),
        lead=first.lead,
        header=first.header,
        section=better.section if len(better.text) >= len(other.text) else section or better.section,
    )


@dataclass(slots=True)
class _Pool:
    """The n units (sentences) of all passages; `terms` (n, m) are the weights of the question's m terms in each.

    `low` and `high` are the first and last unit that are taken together with a unit; `opens` is True if they begin a
    run. `before` and `after` are the neighbours of each unit in its page, n if they are in no passage.
    """

    of: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    terms: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    opens: NDArray[np.bool_] = field(init=False)
    taken: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.opens = np.ones(len(self.of), dtype=bool)
        self.taken = np.zeros(len(self.of) + 1, dtype=bool)  # the last one for missing neighbours


def choose_spans(
    passages: Sequence[Passage],
    query_weights: Mapping[int, float],
    sparse: SparseEncoder,
    k: int,
    budget: int = BUDGET,
    stored: Mapping[str, str] = MappingProxyType({}),
) -> list[tuple[int, _Bounds]]:
    """Return up to k runs of sentences of `passages` (sorted by score), in order of selection.

    query_weights: the question's terms with their weights. Each run is the index of a passage and the bounds in its
    text. Runs that touch in the page count once. `stored` are the packed sentence indexes of passages, by id; others
    are computed.
    """
    if not passages:
        return []
    pool = _pool(passages, query_weights, sparse, stored)
    if not len(pool.of):
        return []
    weights = np.array(list(query_weights.values())) / (sum(query_weights.values()) or 1.0)
    trust = _trust_passages(passages, find_named(passages, query_weights, sparse))[pool.of]
    term_counts = np.zeros(len(weights))
    order: dict[int, _Bounds] = {}
    runs, length = 0, 0
    while length < budget:
        gains = trust * (PRIOR + pool.terms @ (weights * DECAY**term_counts))
        unit = _find_best(pool, gains, runs < k)
        if unit is None:
            break
        low, high = int(pool.low[unit]), int(pool.high[unit])
        runs += int(pool.opens[unit] and not _find_touching(pool)[unit])
        length += int(pool.end[high] - pool.start[low])
        term_counts += pool.terms[low : high + 1].sum(axis=0)
        _take(pool, order, int(pool.of[unit]), low, high)
    at = [passages[of].start for of in range(len(passages))]
    return [(of, (int(pool.start[a]) - at[of], int(pool.end[b]) - at[of])) for of, (a, b) in order.items()]


def _trust_passages(passages: Sequence[Passage], named_pages: Collection[str]) -> NDArray[np.float64]:
    """Return the weight of each passage's sentences by its score, (n,), 0 to 1, relative to the best of all passages.

    For `named_pages` it is relative to the page's best score: a page with a longer or rarer name has higher scores and
    would crowd out the others.
    """
    scores = [max(0.0, passage.score) for passage in passages]
    pages = [passage.url_hash if passage.url_hash in named_pages else "" for passage in passages]
    best = {page: max(score for score, own in zip(scores, pages, strict=True) if own == page) for page in named_pages}
    best[""] = max(scores)
    if best[""] == 0.0:
        return np.ones(len(passages))
    shares = np.array([score / (best[page] or 1.0) for score, page in zip(scores, pages, strict=True)])
    legs = frozenset[str]().union(*(passage.scores for passage in passages))
    fused = legs >= {"dense", "sparse"} and "rerank" not in legs
    factors = np.array([UNNAMED_WEIGHT if named_pages and not page else 1.0 for page in pages])
    return factors * shares ** (FUSED_POWER if fused else SCORE_POWER)


def _find_best(pool: _Pool, gains: NDArray[np.float64], may_open: bool) -> int | None:
    """Return the unit with the best gain per cost, including the units that it requires; None if none is left."""
    total = np.concatenate(([0.0], np.cumsum(gains * ~pool.taken[:-1])))
    cost = (pool.end[pool.high] - pool.start[pool.low] + RUN_COST * pool.opens) ** COST_POWER
    rate = (total[pool.high + 1] - total[pool.low]) / cost
    rate[pool.taken[:-1]] = -1.0
    if not may_open:
        rate[pool.opens & ~_find_touching(pool)] = -1.0
    unit = int(rate.argmax())
    return unit if rate[unit] > 0.0 else None


def _find_touching(pool: _Pool) -> NDArray[np.bool_]:
    touching: NDArray[np.bool_] = pool.taken[pool.before] | pool.taken[pool.after]
    return touching


def _take(pool: _Pool, order: dict[int, _Bounds], of: int, low: int, high: int) -> None:
    """Take the units from `low` to `high` of a passage, and let its other units extend that run."""
    pool.taken[low : high + 1] = True
    run = order.get(of, (low, high))
    first, last = order[of] = min(low, run[0]), max(high, run[1])
    begin, end = np.searchsorted(pool.of, [of, of + 1])
    pool.opens[begin:end] = False
    pool.low[begin:first] = np.minimum(pool.low[begin:first], np.arange(begin, first))
    pool.high[begin:first] = first - 1
    pool.low[last + 1 : end] = last + 1


def _pool(
    passages: Sequence[Passage], query_weights: Mapping[int, float], sparse: SparseEncoder, stored: Mapping[str, str]
) -> _Pool:
    indexes = [
        unpack_sentences(stored.get(passage.id, ""), passage.text) or _index(passage.text, sparse)
        for passage in passages
    ]
    sizes = np.array([len(index.start) for index in indexes])
    of, base = np.repeat(np.arange(len(passages)), sizes), np.cumsum(sizes) - sizes
    offsets = np.array([passage.start for passage in passages])[of]
    short = np.array([_is_short(passage.text) for passage in passages])[of]
    start, end, first = (np.concatenate([index[column] for index in indexes]) for column in range(3))
    first = base[of] + np.where(short, 0, first)
    last = np.where(short, (base + sizes - 1)[of], np.arange(len(of)))
    before, after = _find_neighbours(passages, of, start + offsets)
    terms = _weights(passages, indexes, of, base, list(query_weights), sparse)
    return _Pool(of, start + offsets, end + offsets, terms, first, last, before, after)


_index = lru_cache(maxsize=2048)(index_sentences)


def _is_short(text: str) -> bool:
    return 2 * len(text) <= SHORT or (len(text) <= SHORT and not is_chinese(text))


def _weights(
    passages: Sequence[Passage],
    indexes: Sequence[SentenceIndex],
    of: NDArray[np.int64],
    base: NDArray[np.int64],
    query_terms: Sequence[int],
    sparse: SparseEncoder,
) -> NDArray[np.float64]:
    """Return the weight of each term in each unit, (n, m): from the unit itself, a neighbour, or the headings.

    of: the passage of each unit, (n,); base: the first unit of each passage.
    """
    direct = np.zeros((len(of), len(query_terms)))
    above = np.zeros((len(passages), len(query_terms)), dtype=bool)
    for number, passage in enumerate(passages):
        heading = sparse.terms(" ".join((passage.title, *passage.section)))
        above[number] = [term in heading for term in query_terms]
    units = np.concatenate([index.sentence + at for index, at in zip(indexes, base, strict=True)])
    terms = np.concatenate([index.terms for index in indexes])
    for column, term in enumerate(query_terms):
        direct[units[terms == term], column] = 1.0
    beside = np.zeros_like(direct)
    same = (of[1:] == of[:-1])[:, None]
    beside[1:] = direct[:-1] * same
    beside[:-1] = np.maximum(beside[:-1], direct[1:] * same)
    weights: NDArray[np.float64] = np.where(above[of], 1.0, np.maximum(direct, NEIGHBOUR_WEIGHT * beside))
    return weights


def _find_neighbours(
    passages: Sequence[Passage], of: NDArray[np.int64], start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the units before and after each one in the page, n if they are in no passage."""
    n = len(of)
    before, after = np.full(n, n), np.full(n, n)
    numbers: dict[str, int] = {}
    page = np.array([numbers.setdefault(passage.url_hash, len(numbers)) for passage in passages], dtype=np.int64)
    joins = np.array([passage.start - len(passage.lead) for passage in passages], dtype=np.int64)
    ends = np.array([passage.end for passage in passages], dtype=np.int64)
    order = np.lexsort((start, page[of]))
    left, right = order[:-1], order[1:]
    a, b = of[left], of[right]
    adjacent = (a == b) | ((page[a] == page[b]) & (ends[a] == joins[b]))
    after[left[adjacent]], before[right[adjacent]] = right[adjacent], left[adjacent]
    return before, after


def select_best(query: str, passages: Sequence[Passage], sparse: SparseEncoder, k: int) -> list[Passage]:
    """Return the best passages, up to k, cut to their useful part and scored by their share of the query's terms, in
    which rarer terms weigh more."""
    term_sets = [sparse.terms(f"{passage.title}\n{passage.text}") for passage in passages]
    weights = {term: 1 / (1 + sum(term in sparse.terms(p.text) for p in passages)) for term in sparse.terms(query)}
    total = sum(weights.values()) or 1.0
    shares = [sum(weight for term, weight in weights.items() if term in own) / total for own in term_sets]
    scored = [replace(passage, score=share) for passage, share in zip(passages, shares, strict=True)]
    best = sorted((passage for passage in scored if passage.score > 0), key=lambda passage: -passage.score)[: 2 * k]
    return list(assemble(best, weights, sparse, k).passages)


def expand_hits(hits: Sequence[Hit], library: Library) -> list[Hit]:
    """Replace each hit with its parent, once per parent, with the best child's place, score, ranks and vector.

    The text comes from the page; start, end and id are the parent's. A hit without a parent stays unchanged.
    """
    parents = _to_parents([hit.passage for hit in hits], library)
    return [
        hits[place] if passage is hits[place].passage else replace(hits[place], passage=passage, sentences="")
        for place, passage in parents
    ]


def expand_to_parents(passages: Sequence[Passage], library: Library) -> list[Passage]:
    """Replace each passage with its parent, once per parent."""
    return [passage for _, passage in _to_parents(passages, library)]


def _to_parents(passages: Sequence[Passage], library: Library) -> Iterator[tuple[int, Passage]]:
    """Yield the index of the first passage of each parent, with the parent."""
    texts = library.texts([passage.url_hash for passage in passages if passage.parent])
    seen: set[str] = set()
    for place, child in enumerate(passages):
        passage = _parent_of(child, texts.get(child.url_hash, ""))
        if passage.id not in seen:
            seen.add(passage.id)
            yield place, passage


def _parent_of(child: Passage, text: str) -> Passage:
    """Return the parent of `child`, or the child itself if it has none or the page has changed since."""
    if child.parent is None:
        return child
    start, end = child.parent
    if text[child.start : child.end] != child.text or end > len(text):
        return child
    return replace(
        child,
        id=child.parent_id,
        text=text[start:end],
        start=start,
        end=end,
        lead=white_space_before(text, start),
        header=child.header if start == child.start else "",
        parent=None,
        parent_id="",
    )
